// Command licenses prints the licence of every module whose code is compiled into the
// programs, tests and tools of this repository, and fails when one is not on the
// list of those that are allowed, or cannot be determined.
//
//	go -C tools/licenses run . ../..
//
// It reads the licence files in the module cache, with the classifier that Google
// keeps for this. What is compiled is what `go list -deps -test` says, in each
// folder below the argument that has a go.mod, for this system.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are SPDX identifiers of licences that let everybody use, change and pass
// on a binary without giving out its source.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "Unlicense", "Zlib"}

// toolsOnly may be used to build and check, and are in nothing that is passed on.
var toolsOnly = []string{"MPL-2.0"}

// passedOver are files that do not license the code of their module, and why.
var passedOver = map[string]string{
	"github.com/opencontainers/go-digest LICENSE.docs": "README.md and CONTRIBUTING.md alone are under it, as README.md says",
	"modernc.org/sqlite LICENSE-3RD-PARTY.md":          "lists all of its module graph, with what only its tests use; what is compiled is judged here by itself",
}

// module is one module that is compiled.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// finding is the licences of one module.
type finding struct {
	module   module
	licences []string
	product  bool // is in the binary
	problem  string
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(root string, out io.Writer) error {
	c, err := assets.DefaultClassifier()
	if err != nil {
		return fmt.Errorf("load classifier: %w", err)
	}
	modules, product, err := compiled(root)
	if err != nil {
		return err
	}
	var found []finding
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		found = append(found, judge(c, modules[key], product[key]))
	}
	bad := 0
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range found {
		use := "tests and tools"
		if f.product {
			use = "binary"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", f.module.Path, f.module.Version, strings.Join(f.licences, " AND "), use, f.problem)
		if f.problem != "" {
			bad++
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d modules: replace them, or argue for the licence in tools/licenses/main.go", bad, len(found))
	}
	if len(found) == 0 {
		return errors.New("no modules found: is the argument the root of the repository?")
	}
	fmt.Fprintf(out, "%d modules, all of licences that are allowed\n", len(found))
	return nil
}

// compiled lists what is compiled, by path and version, and what of it is in the
// binary.
func compiled(root string) (all map[string]module, product map[string]bool, err error) {
	all, product = map[string]module{}, map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || d.Name() != "go.mod" {
			return nil
		}
		dir := filepath.Dir(path)
		patterns := []string{"./..."}
		if tools, err := exec.Command("go", "-C", dir, "list", "tool").Output(); err == nil && len(bytes.TrimSpace(tools)) > 0 {
			patterns = append(patterns, "tool")
		}
		listed, err := list(dir, append([]string{"-test"}, patterns...))
		if err != nil {
			return err
		}
		maps.Copy(all, listed)
		if dir == filepath.Clean(root) {
			if listed, err = list(dir, []string{"./cmd/..."}); err != nil {
				return err
			}
			for key := range listed {
				product[key] = true
			}
		}
		return nil
	})
	return all, product, err
}

// list returns the modules of a list of packages and all that they import.
func list(dir string, args []string) (map[string]module, error) {
	cmd := exec.Command("go", append([]string{"-C", dir, "list", "-e", "-deps", "-json=Module"}, args...)...)
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w", dir, err)
	}
	out := map[string]module{}
	for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p struct{ Module *module }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages of %s: %w", dir, err)
		}
		m := p.Module
		if m == nil || m.Main {
			continue // the standard library (BSD-3-Clause), and our own
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if strings.HasPrefix(m.Path, ".") {
			continue // our own, from a folder
		}
		out[m.Path+" "+m.Version] = *m
	}
}

// licenceFile matches the names that licences have.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|copyright)([.-].*)?$`)

// judge reads a module's licence files and compares them with the lists.
func judge(c *classifier.Classifier, m module, product bool) finding {
	f := finding{module: m, product: product}
	names, err := os.ReadDir(m.Dir)
	if err != nil {
		f.problem = err.Error()
		return f
	}
	found := map[string]bool{}
	for _, entry := range names {
		_, over := passedOver[m.Path+" "+entry.Name()]
		if over || entry.IsDir() || !licenceFile.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(m.Dir, entry.Name()))
		if err != nil {
			f.problem = err.Error()
			return f
		}
		for _, id := range identify(c, raw) {
			found[id] = true
		}
	}
	f.licences = slices.Sorted(maps.Keys(found))
	f.problem = f.verdict()
	return f
}

// verdict is what is wrong with a module; "" if nothing is.
func (f finding) verdict() string {
	if len(f.licences) == 0 {
		return "NO LICENCE FOUND"
	}
	for _, id := range f.licences {
		if !slices.Contains(allowed, id) && (f.product || !slices.Contains(toolsOnly, id)) {
			return "NOT ALLOWED: " + id
		}
	}
	return ""
}

// identify returns the licences that a text has in full, or nearly; or else those
// that it names in the words that the licence itself gives for that.
func identify(c *classifier.Classifier, raw []byte) []string {
	matches := c.Match(raw).Matches
	for _, kind := range []string{"License", "Header"} {
		var out []string
		for _, m := range matches {
			if m.MatchType == kind && m.Confidence >= 0.9 && !slices.Contains(out, m.Name) {
				out = append(out, m.Name)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
