package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/class"
)

// InvalidError lists everything that is wrong with a configuration.
type InvalidError struct {
	File     string
	Problems []error
}

// Error is one problem a line.
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

// Load reads a configuration file over the defaults, then the files of
// classes.d beside it in the order of their names, then the environment, and
// checks it. An error is an *InvalidError with all problems, or the file could
// not be read.
func Load(file string) (Config, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w; give a file with --config, or print one with 'locksteward config example'", err)
	}
	c, problems := parse(file, raw, os.LookupEnv)
	more, moreProblems, err := loadClasses(filepath.Join(filepath.Dir(file), "classes.d"))
	if err != nil {
		return Config{}, err
	}
	c.Classes = append(c.Classes, more...)
	problems = append(problems, moreProblems...)
	if len(problems) == 0 {
		problems = flatten(prefixFile(file, c.Validate()))
	}
	if len(problems) > 0 {
		return Config{}, &InvalidError{File: file, Problems: problems}
	}
	return c, nil
}

// Parse reads a configuration from memory and checks it; name stands for the
// file in problems.
func Parse(name string, raw []byte) (Config, error) {
	c, problems := parse(name, raw, os.LookupEnv)
	if len(problems) == 0 {
		problems = flatten(prefixFile(name, c.Validate()))
	}
	if len(problems) > 0 {
		return Config{}, &InvalidError{File: name, Problems: problems}
	}
	return c, nil
}

// parse decodes strictly over the defaults, without the checks of Validate.
func parse(name string, raw []byte, lookup func(string) (string, bool)) (Config, []error) {
	c := Default()
	d := &decoder{file: name}
	if root := d.document(raw); root != nil {
		d.expand(root, "", lookup)
		d.into(root, reflect.ValueOf(&c).Elem(), "")
	}
	d.overlay(reflect.ValueOf(&c).Elem(), "", lookup)
	return c, d.problems
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
		d.problems = append(d.problems, fmt.Errorf("%s: %w", d.file, err))
		return nil
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		d.problems = append(d.problems, fmt.Errorf("%s: more than one YAML document, keep one (drop the line ---)", d.file))
	}
	return doc.Content[0]
}

// classFile is one file of classes.d.
type classFile struct {
	Classes []class.Class `yaml:"classes"`
}

func loadClasses(dir string) ([]class.Class, []error, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(files)
	var (
		out      []class.Class
		problems []error
	)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, fmt.Errorf("read classes: %w", err)
		}
		d := &decoder{file: file}
		var f classFile
		if root := d.document(raw); root != nil {
			d.expand(root, "", os.LookupEnv)
			d.into(root, reflect.ValueOf(&f).Elem(), "")
		}
		out = append(out, f.Classes...)
		problems = append(problems, d.problems...)
	}
	return out, problems, nil
}

func prefixFile(file string, err error) error {
	var errs []error
	for _, e := range flatten(err) {
		errs = append(errs, fmt.Errorf("%s: %w", file, e))
	}
	return errors.Join(errs...)
}
