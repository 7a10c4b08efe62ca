// Package config composes the configuration that each package owns, reads it
// strictly and reports every problem at once, each with its path, the value and
// what to write. It is imported by the program alone.
//
// Unknown keys are errors. ${VAR} in a value is the environment's VAR, which
// must be set. LOCKSTEWARD_<PATH> sets every key. Secrets stand in files that the
// configuration names, or in the environment.
package config

import (
	"errors"
	"fmt"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/store"
)

// Config is the whole configuration. Every key has a default but targets, of the
// list or of elsewhere.
type Config struct {
	Targets []Target      `yaml:"targets"`
	Sources Sources       `yaml:"targets_from"`
	Classes []class.Class `yaml:"classes"`
	Rules   rules.Config  `yaml:"rules"`
	// Redlock names the targets that are the masters of one Redlock.
	Redlock []rules.Redlock `yaml:"redlock"`
	Alert   alert.Config    `yaml:"alert"`
	Release release.Config  `yaml:"release"`
	Store   store.Config    `yaml:"store"`
	// Cluster is how replicas that share a PostgreSQL find each other.
	Cluster cluster.Config  `yaml:"cluster"`
	Audit   audit.Config    `yaml:"audit"`
	Metrics exporter.Config `yaml:"metrics"`
	Console console.Config  `yaml:"console"`
	Log     Log             `yaml:"log"`
}

// Log says what the agent logs, and how.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `yaml:"level"`
	// Format is json or console.
	Format string `yaml:"format"`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Alert:   alert.DefaultConfig(),
		Release: release.DefaultConfig(),
		Store:   store.DefaultConfig(),
		Cluster: cluster.DefaultConfig(),
		Audit:   audit.DefaultConfig(),
		Metrics: exporter.DefaultConfig(),
		Console: console.DefaultConfig(),
		Log:     Log{Level: "info", Format: "json"},
	}
}

// maxClasses bounds the classes of a configuration: each has series of its own for every
// target.
const maxClasses = 500

// Validate reports all problems at once, each with the path of its key.
func (c Config) Validate() error {
	var errs []error
	if len(c.Targets) == 0 && c.Sources.isZero() {
		errs = append(errs, errors.New("targets: empty, write at least one {name: NAME, url: URL}"))
	}
	errs = append(errs, prefixed("targets_from", c.Sources.validate()))
	names := map[string]int{}
	for i, t := range c.Targets {
		path := fmt.Sprintf("targets[%d]", i)
		errs = append(errs, t.validate(path))
		if first, twice := names[t.Name]; twice && t.Name != "" {
			errs = append(errs, fmt.Errorf("%s.name: got %q, which targets[%d] has already, write another", path, t.Name, first))
		} else {
			names[t.Name] = i
		}
	}
	if len(c.Classes) > maxClasses {
		errs = append(errs, fmt.Errorf("classes: got %d, write at most %d: one class can match many patterns, so join those of one owner", len(c.Classes), maxClasses))
	}
	_, err := c.judging()
	errs = append(errs, err)
	errs = append(errs, c.redlocks()...)
	errs = append(errs,
		prefixed("alert", c.Alert.Validate()),
		prefixed("release", c.Release.Validate()),
		prefixed("store", c.Store.Validate()),
		prefixed("store", audit.CheckKeyFile(c.Store)),
		c.cluster(),
		prefixed("audit", c.Audit.Validate()),
		prefixed("metrics", c.Metrics.Validate()),
		prefixed("console", c.Console.Validate()),
		c.Log.validate(),
	)
	return errors.Join(errs...)
}

// cluster checks what replicas need, where there can be any.
func (c Config) cluster() error {
	if !c.Store.Shared() {
		if c.Cluster.IsZero() {
			return nil
		}
		return errors.New("cluster: set, but replicas share a database and store.dsn names none; write a postgres:// dsn or leave cluster out")
	}
	return prefixed("cluster", c.Cluster.Validate())
}

// redlocks checks the sets of masters against the targets and classes.
func (c Config) redlocks() []error {
	var targets []string
	for _, t := range c.Targets {
		targets = append(targets, t.Name)
	}
	classes := []string{class.Default}
	for _, cl := range c.Classes {
		classes = append(classes, cl.Name)
	}
	return rules.ValidateRedlocks(c.Redlock, targets, classes)
}

func (l Log) validate() error {
	var errs []error
	switch l.Level {
	case "debug", "info", "warn", "error":
	default:
		errs = append(errs, fmt.Errorf("log.level: got %q, write debug, info, warn or error", l.Level))
	}
	if l.Format != "json" && l.Format != "console" {
		errs = append(errs, fmt.Errorf("log.format: got %q, write json or console", l.Format))
	}
	return errors.Join(errs...)
}
