package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// maxTargetFile is how much of one file of targets is read.
const maxTargetFile = 4 << 20

// targetFile is one file of targets_from.files.
type targetFile struct {
	Targets []Target `yaml:"targets"`
}

// isGlob says whether a pattern may match more than one file.
func isGlob(pattern string) bool { return strings.ContainsAny(pattern, `*?[\`) }

// readTargetFiles reads what a pattern matches now, by path. A path that is not one, or
// that cannot be read, is an error; a glob may match nothing.
func readTargetFiles(pattern string) (map[string][]byte, error) {
	files := []string{pattern}
	if isGlob(pattern) {
		var err error
		if files, err = filepath.Glob(pattern); err != nil {
			return nil, fmt.Errorf("list %s: %w", pattern, err)
		}
	}
	out := make(map[string][]byte, len(files))
	for _, file := range files {
		raw, err := readTargetFile(file)
		if err != nil {
			return nil, err
		}
		out[file] = raw
	}
	return out, nil
}

func readTargetFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read targets: %w", err)
	}
	// A pipe would be waited for.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read targets: %s: no regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read targets: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxTargetFile+1))
	if err != nil {
		return nil, fmt.Errorf("read targets: %w", err)
	}
	if len(raw) > maxTargetFile {
		return nil, fmt.Errorf("read targets: %s: larger than %d MiB", file, maxTargetFile>>20)
	}
	return raw, nil
}

// decodeTargets reads one file of targets. What is not meant as one is an error: a
// file that lists none says `targets: []`.
func decodeTargets(file string, raw []byte) (targetFile, *decoder) {
	d := newDecoder(file, raw)
	var f targetFile
	root := d.document(raw)
	if root != nil {
		d.expand(root, "", os.LookupEnv)
		d.into(root, reflect.ValueOf(&f).Elem(), "")
	}
	if f.Targets == nil && len(d.problems) == 0 {
		d.problems = append(d.problems, problem{path: "targets", err: fmt.Errorf("%s: targets: missing, write a list, or [] for none", file)})
	}
	for i := range f.Targets {
		f.Targets[i].source = "file " + file
	}
	return f, d
}

// parseTargets makes targets of the files of one pattern, in the order of their
// names, each checked by itself.
func parseTargets(files map[string][]byte) ([]Target, error) {
	var out []Target
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(files)) {
		f, d := decodeTargets(file, files[file])
		var invalid []error
		for i, t := range f.Targets {
			invalid = append(invalid, t.validate(fmt.Sprintf("targets[%d]", i)))
		}
		errs = append(errs, d.all(d.problems, errors.Join(invalid...))...)
		out = append(out, f.Targets...)
	}
	return out, errors.Join(errs...)
}

// loadTargets appends the targets of targets_from.files to those of c, and their
// problems to d. From then on the patterns are paths from where the program runs.
func (d *decoder) loadTargets(c *Config, dir string) {
	if c.Sources.validate() != nil {
		return // said later
	}
	c.Sources.Files = slices.Clone(c.Sources.Files)
	for i, pattern := range c.Sources.Files {
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
			c.Sources.Files[i] = pattern
		}
		files, err := readTargetFiles(pattern)
		if err != nil {
			path := fmt.Sprintf("targets_from.files[%d]", i)
			d.problems = append(d.problems, problem{path: path, err: fmt.Errorf("%s: %s: %w", d.file, path, err)})
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(files)) {
			f, one := decodeTargets(file, files[file])
			d.places.shift(one.places, "targets", len(c.Targets))
			c.Targets = append(c.Targets, f.Targets...)
			d.problems = append(d.problems, one.problems...)
		}
	}
}
