// Command release makes the files of a release from binaries that are built
// already: archives, a bill of materials (CycloneDX) for each binary, and
// SHA256SUMS. scripts/dist.sh builds the binaries and calls it.
//
//	release -version V -epoch SECONDS -out DIR -root DIR BINARY...
//
// A binary is OS/ARCH=FILE. The same binaries, version and epoch give the same
// bytes, wherever and whenever they are packed: names are sorted, times are the
// epoch, owners are 0, and nothing is random.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// program is one binary and the platform that it is for.
type program struct {
	os, arch, file string
}

func (p program) exe() string {
	if p.os == "windows" {
		return "locksteward.exe"
	}
	return "locksteward"
}

func run(args []string, stderr io.Writer) error {
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.SetOutput(stderr)
	version := set.String("version", "", "version of the release")
	epoch := set.Int64("epoch", 0, "time of all files, in seconds since 1970")
	out := set.String("out", "", "directory for the files of the release")
	root := set.String("root", "", "directory with what goes beside the binary, as it lies in an archive")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *version == "" || *out == "" || *root == "" || set.NArg() == 0 {
		return errors.New("-version, -out, -root and a binary as OS/ARCH=FILE are needed")
	}
	// A zip file knows no time before 1980.
	at := time.Unix(max(*epoch, 315532800), 0).UTC()
	var made []string
	for _, arg := range set.Args() {
		platform, file, ok1 := strings.Cut(arg, "=")
		system, arch, ok2 := strings.Cut(platform, "/")
		if !ok1 || !ok2 {
			return fmt.Errorf("binary %q: must be OS/ARCH=FILE", arg)
		}
		p := program{system, arch, file}
		name := fmt.Sprintf("locksteward_%s_%s_%s", strings.TrimPrefix(*version, "v"), p.os, p.arch)
		members, err := collect(*root, p)
		if err != nil {
			return err
		}
		archive := name + ".tar.gz"
		pack := packTar
		if p.os == "windows" {
			archive, pack = name+".zip", packZip
		}
		if err := create(filepath.Join(*out, archive), func(w io.Writer) error { return pack(w, name, members, at) }); err != nil {
			return err
		}
		bill := name + ".cdx.json"
		if err := create(filepath.Join(*out, bill), func(w io.Writer) error { return writeBill(w, p, *version) }); err != nil {
			return err
		}
		made = append(made, archive, bill)
	}
	slices.Sort(made)
	return create(filepath.Join(*out, "SHA256SUMS"), func(w io.Writer) error {
		for _, name := range made {
			sum, err := digest(filepath.Join(*out, name))
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s  %s\n", sum, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// create writes a new file; after an error there is none.
func create(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
		}
	}()
	return write(f)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
