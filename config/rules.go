package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules"
)

// Judging is the part of a configuration by which locks are judged. Its zero
// value is the rules as they are.
type Judging struct {
	Classes *class.Set // nil: the locks keep their classes
	Rules   rules.Config
	Redlock []rules.Redlock
}

// LoadRules reads classes, rules and Redlocks alone from a configuration file,
// with the files of classes.d beside it. Everything else of the file may be wrong
// or missing: a test of rules has neither the targets nor their secrets, so
// the masters of a Redlock need not be among its targets. The error is as that of
// [Load].
func LoadRules(file string) (Judging, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return Judging{}, fmt.Errorf("read configuration: %w; name another file", err)
	}
	c, d := parse(file, raw, processEnviron())
	if err := d.loadClasses(&c, filepath.Join(filepath.Dir(file), "classes.d")); err != nil {
		return Judging{}, err
	}
	var unread []problem
	for _, p := range d.problems {
		if p.judging() {
			unread = append(unread, p)
		}
	}
	classes, invalid := c.judging()
	for _, r := range c.Redlock {
		for _, name := range r.Targets {
			c.Targets = append(c.Targets, Target{Name: name})
		}
	}
	if problems := d.all(unread, errors.Join(invalid, errors.Join(c.redlocks()...))); len(problems) > 0 {
		return Judging{}, &InvalidError{File: file, Problems: problems}
	}
	return Judging{Classes: classes, Rules: c.Rules, Redlock: c.Redlock}, nil
}

// judging says whether a problem is one of classes, rules or Redlocks, of the
// whole file, or a top key that may be one of these misspelt.
func (p problem) judging() bool {
	key, _, below := strings.Cut(strings.ReplaceAll(p.path, "[", "."), ".")
	_, known := yamlFields(reflect.ValueOf(Config{}))[key]
	return key == "classes" || key == "rules" || key == "redlock" || !below && !known
}

// judging checks classes and rules, which know of each other.
func (c Config) judging() (*class.Set, error) {
	classes, err := class.NewSet(c.Classes)
	if err != nil {
		return nil, errors.Join(err, c.Rules.Validate(), errors.Join(c.Rules.ValidateDeadWhen(c.Classes)...))
	}
	_, err = rules.New(c.Rules, classes, nil)
	return classes, err
}
