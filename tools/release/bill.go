package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes the bill of materials of a binary in CycloneDX 1.6: what the
// linker says that it put in, so that it cannot name what is not there nor miss
// what is.
func writeBill(w io.Writer, p program, version string) error {
	info, err := buildinfo.ReadFile(p.file)
	if err != nil {
		return fmt.Errorf("read build info of %s: %w", p.file, err)
	}
	sum, err := digest(p.file)
	if err != nil {
		return err
	}
	main := cdx.Component{
		BOMRef: "locksteward", Type: cdx.ComponentTypeApplication, Name: "locksteward", Version: version,
		Description: "Monitoring and governance of Redis lock keys",
		PackageURL:  goURL(info.Main.Path, version) + "?goos=" + p.os + "&goarch=" + p.arch,
		Licenses:    &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:      &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		ExternalReferences: &[]cdx.ExternalReference{
			{Type: cdx.ERTypeVCS, URL: "https://" + info.Main.Path},
		},
	}
	var settings []cdx.Property
	for _, s := range info.Settings {
		settings = append(settings, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	main.Properties = &settings

	parts := []cdx.Component{{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		Description: "the standard library of Go", PackageURL: goURL("std", strings.TrimPrefix(info.GoVersion, "go")),
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "BSD-3-Clause"}}},
	}}
	for _, m := range info.Deps {
		parts = append(parts, part(m))
	}
	slices.SortFunc(parts, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, len(parts))
	for i, c := range parts {
		refs[i] = c.BOMRef
	}

	bom := cdx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cdx.Metadata{
		Component: &main,
		Tools:     &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "locksteward tools/release"}}},
	}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: "locksteward", Dependencies: &refs}}
	// All parts are listed; which part needs which a binary does not say.
	bom.Compositions = &[]cdx.Composition{{
		Aggregate: cdx.CompositionAggregateComplete, Assemblies: &[]cdx.BOMReference{"locksteward"},
	}, {
		Aggregate: cdx.CompositionAggregateUnknown, Dependencies: new(references(refs)),
	}}
	enc := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON)
	enc.SetPretty(true)
	enc.SetEscapeHTML(false)
	return enc.EncodeVersion(bom, cdx.SpecVersion1_6)
}

func references(refs []string) []cdx.BOMReference {
	out := make([]cdx.BOMReference, len(refs))
	for i, r := range refs {
		out[i] = cdx.BOMReference(r)
	}
	return out
}

// part is one module; of one that was replaced, what replaces it.
func part(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	u := goURL(m.Path, m.Version)
	c := cdx.Component{BOMRef: u, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: u, Scope: cdx.ScopeRequired}
	if m.Sum != "" {
		// A hash over the module's file list, not over a file: no hash in the sense of
		// CycloneDX.
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// goURL is a package URL of the type golang.
func goURL(path, version string) string {
	return "pkg:golang/" + path + "@" + url.PathEscape(version)
}

// serial is a UUID (version 8, of our own making) of the binary's hash: the same
// binary has the same bill.
func serial(sum string) string {
	b := sha256.Sum256([]byte("locksteward bill of materials " + sum))
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
