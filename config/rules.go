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

// LoadRules reads classes and rules alone from a configuration file, with the
// files of classes.d beside it. Everything else of the file may be wrong or
// missing: whoever tests rules has neither the targets nor their secrets. The
// error is as that of [Load].
func LoadRules(file string) (*class.Set, rules.Config, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w; give a file with --config", err)
	}
	c, d := parse(file, raw, os.LookupEnv)
	if err := d.loadClasses(&c, filepath.Join(filepath.Dir(file), "classes.d")); err != nil {
		return nil, nil, err
	}
	var unread []problem
	for _, p := range d.problems {
		if p.judging() {
			unread = append(unread, p)
		}
	}
	classes, invalid := c.judging()
	if problems := d.all(unread, invalid); len(problems) > 0 {
		return nil, nil, &InvalidError{File: file, Problems: problems}
	}
	return classes, c.Rules, nil
}

// judging says whether a problem is one of classes or rules, of the whole file,
// or a top key that may be one of the two misspelt.
func (p problem) judging() bool {
	key, _, below := strings.Cut(strings.ReplaceAll(p.path, "[", "."), ".")
	_, known := yamlFields(reflect.ValueOf(Config{}))[key]
	return key == "classes" || key == "rules" || !below && !known
}

// judging checks classes and rules, which know of each other.
func (c Config) judging() (*class.Set, error) {
	classes, err := class.NewSet(c.Classes)
	if err != nil {
		return nil, errors.Join(err, c.Rules.Validate(), errors.Join(c.Rules.ValidateDeadWhen(c.Classes)...))
	}
	_, err = rules.New(c.Rules, classes)
	return classes, err
}
