package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Config is `rules:` of the configuration: changes to the rules' defaults, in
// order. For each rule and class the first entry that names both applies. An
// empty Config runs every rule at its default.
type Config []RuleConfig

// RuleConfig changes one rule, for all classes or for some.
type RuleConfig struct {
	// Rule is the id of the rule.
	Rule string `yaml:"rule"`
	// Classes are the classes this entry is for; none: all.
	Classes []string `yaml:"classes"`
	// Severity replaces the rule's default: info, warning or critical. A finding
	// that the rule itself calls less severe than its default stays at most that.
	Severity string `yaml:"severity"`
	// For replaces how long the rule must say so before its finding fires.
	For *time.Duration `yaml:"for"`
	// Off switches the rule off.
	Off bool `yaml:"off"`

	// When makes a rule of one's own: a CEL expression over one lock that says
	// when the rule fires (docs/expressions.md). Rule is then custom/NAME, and
	// is in one entry only. The default severity is warning.
	When string `yaml:"when"`
	// Summary is the finding's sentence in place of the rule's id, Remedy what to
	// do; both for a rule of one's own alone.
	Summary string `yaml:"summary"`
	Remedy  string `yaml:"remedy"`
}

// DefaultConfig returns the empty list: every rule at its default.
func DefaultConfig() Config { return Config{} }

// Validate reports all problems, each beginning with its path in the
// configuration. Class names are checked by [New], which knows the classes.
func (c Config) Validate() error { return errors.Join(c.problems(nil)...) }

// problems lists what is wrong; class names are judged only if classes is not
// nil.
func (c Config) problems(classes *class.Set) []error {
	var errs []error
	for i, rc := range c {
		bad := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("rules[%d].%s: %w", i, field, fmt.Errorf(format, args...)))
		}
		if _, known := Lookup(rc.Rule); !known && !isCustom(rc.Rule) {
			bad("rule", "must be one of %s, got %q", strings.Join(Names(), ", "), rc.Rule)
		}
		errs = append(errs, rc.customProblems(fmt.Sprintf("rules[%d]", i))...)
		if rc.Severity != "" {
			if _, err := locksteward.ParseSeverity(rc.Severity); err != nil {
				bad("severity", "must be info, warning or critical, got %q", rc.Severity)
			}
		}
		if rc.For != nil && *rc.For < 0 {
			bad("for", "must not be negative, got %s; write 0s to fire at first sight", *rc.For)
		}
		if rc.Off && !isCustom(rc.Rule) && (rc.Severity != "" || rc.For != nil) {
			bad("off", "must stand alone, got true beside severity or for; remove one of them")
		}
		if rc.Classes != nil && len(rc.Classes) == 0 {
			bad("classes", "must name at least one class, got []; leave the key out for all classes")
		}
		for j, name := range rc.Classes {
			if classes == nil {
				continue
			}
			if _, known := classes.Get(name); !known {
				bad(fmt.Sprintf("classes[%d]", j), "must be one of %s, got %q", strings.Join(classNames(classes), ", "), name)
			}
		}
		if first := c.sameCustom(i); first >= 0 {
			bad("rule", "must be unique, got %q of rules[%d] again; write another name, or one expression with ||", rc.Rule, first)
		} else if first := c.hiddenBy(i); first >= 0 {
			bad("rule", "can never apply, got %q again after rules[%d]; merge the two, or give each its own classes", rc.Rule, first)
		}
	}
	if classes != nil {
		errs = append(errs, c.ValidateDeadWhen(classes.All())...)
	}
	return errs
}

// sameCustom returns the index of an earlier entry with the same rule of one's
// own, or -1: the two would share a fingerprint.
func (c Config) sameCustom(i int) int {
	if !isCustom(c[i].Rule) {
		return -1
	}
	return slices.IndexFunc(c[:i], func(rc RuleConfig) bool { return rc.Rule == c[i].Rule })
}

// hiddenBy returns the index of an earlier entry that leaves entry i nothing to
// apply to, or -1.
func (c Config) hiddenBy(i int) int {
	for j, earlier := range c[:i] {
		if earlier.Rule != c[i].Rule {
			continue
		}
		if len(earlier.Classes) == 0 || len(c[i].Classes) > 0 && subset(c[i].Classes, earlier.Classes) {
			return j
		}
	}
	return -1
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}

func classNames(classes *class.Set) []string {
	names := []string{class.Default}
	for _, c := range classes.All() {
		if c.Name != class.Default {
			names = append(names, c.Name)
		}
	}
	return names
}
