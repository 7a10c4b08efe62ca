package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/class"
)

// InvalidError lists everything that is wrong with a configuration.
type InvalidError struct {
	File     string
	Problems []error
}

// Error is one problem after the other; one of an expression has two more lines,
// which show the place.
func (e *InvalidError) Error() string {
	var b bytes.Buffer
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Error())
	}
	return b.String()
}

// Unwrap gives the problems to errors.Is.
func (e *InvalidError) Unwrap() []error { return e.Problems }

// Load reads a configuration file over the defaults, then the files of targets
// that it names and those of classes.d beside it in the order of their names, then
// the environment, and checks it. It asks no DNS: see [Discovery]. An error is an *InvalidError with all problems, or the file could
// not be read.
func Load(file string) (Config, error) { return load(file, Config.Validate) }

// Check is Load, and opens the files of receivers, the heartbeat and audit sinks, as the
// agent does at its start.
func Check(file string) (Config, error) {
	return load(file, func(c Config) error { return errors.Join(c.Validate(), c.checkFiles()) })
}

func (c Config) checkFiles() error {
	return errors.Join(prefixed("alert", c.Alert.CheckFiles()), prefixed("audit", c.Audit.CheckFiles()))
}

func load(file string, check func(Config) error) (Config, error) {
	c, d, err := read(file)
	if err != nil {
		return Config{}, err
	}
	return d.finish(c, check)
}

// read reads a configuration with the files beside it and the environment. What is wrong in
// them is in the decoder.
func read(file string) (Config, *decoder, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Config{}, nil, fmt.Errorf("read configuration: %w; name another file, or print one with 'locksteward config show --example'", err)
	}
	c, d := parse(file, raw, processEnviron())
	d.loadTargets(&c, filepath.Dir(file))
	if err := d.loadClasses(&c, filepath.Join(filepath.Dir(file), "classes.d")); err != nil {
		return Config{}, nil, err
	}
	return c, d, nil
}

// Parse reads a configuration from memory and checks it; name is used as the
// file in problems.
func Parse(name string, raw []byte) (Config, error) {
	c, d := parse(name, raw, processEnviron())
	return d.finish(c, Config.Validate)
}

// finish checks what was read and returns it, or all problems. Where something
// could not be read the rest is checked all the same, so that nobody has to mend
// a file twice; but nothing is said of what stands at, above or below a path with
// a problem already: that would be a consequence.
func (d *decoder) finish(c Config, check func(Config) error) (Config, error) {
	if problems := d.all(d.problems, check(c)); len(problems) > 0 {
		return Config{}, &InvalidError{File: d.file, Problems: problems}
	}
	return c, nil
}

// all joins what could not be read with what is wrong otherwise.
func (d *decoder) all(unread []problem, invalid error) []error {
	var out []error
	for _, p := range unread {
		out = append(out, p.err)
	}
	for _, err := range flatten(invalid) {
		path, _, _ := strings.Cut(err.Error(), ": ")
		if !slices.ContainsFunc(unread, func(p problem) bool { return related(p.path, path) || p.instead == path }) {
			out = append(out, d.places.locate(d.file, err))
		}
	}
	return out
}

var index = regexp.MustCompile(`\[\d+\]`)

var inFile = regexp.MustCompile(`_files?$`)

// related says whether one path is the other, or above it. Places in lists do not
// count: elements may be missing. A value and the file for it are one.
func related(a, b string) bool {
	a, b = index.ReplaceAllString(a, ""), index.ReplaceAllString(b, "")
	a, b = inFile.ReplaceAllString(a, ""), inFile.ReplaceAllString(b, "")
	return a == "" || a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// parse decodes strictly over the defaults, without the checks of Validate.
func parse(name string, raw []byte, env environ) (Config, *decoder) {
	c := Default()
	d := newDecoder(name, raw)
	if root := d.document(raw); root != nil {
		d.expand(root, "", func(name string) (string, bool) { value, ok := env[name]; return value, ok })
		d.into(root, reflect.ValueOf(&c).Elem(), "")
	}
	d.overlay(reflect.ValueOf(&c).Elem(), "", env)
	d.strangers(env)
	return c, d
}

// document parses the one YAML document of a file; nil if it is empty or
// cannot be parsed, which is then a problem.
func (d *decoder) document(raw []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		d.problems = append(d.problems, problem{path: "", err: fmt.Errorf("%s: %w", d.file, err)})
		return nil
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		d.problems = append(d.problems, problem{path: "(top)", err: fmt.Errorf("%s: more than one YAML document, keep one (drop the line ---)", d.file)})
	}
	return doc.Content[0]
}

// classFile is one file of classes.d.
type classFile struct {
	Classes []class.Class `yaml:"classes"`
}

// loadClasses appends the classes of the files of classes.d to those of c, and
// their problems to d.
func (d *decoder) loadClasses(c *Config, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read classes: %w", err)
		}
		one := newDecoder(file, raw)
		var f classFile
		if root := one.document(raw); root != nil {
			one.expand(root, "", os.LookupEnv)
			one.into(root, reflect.ValueOf(&f).Elem(), "")
		}
		d.places.shift(one.places, "classes", len(c.Classes))
		c.Classes = append(c.Classes, f.Classes...)
		d.problems = append(d.problems, one.problems...)
	}
	return nil
}
