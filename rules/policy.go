package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules/expr"
)

// policy is the rules and classes as configured: immutable once built.
type policy struct {
	classes *class.Set
	locks   []Rule // of ScopeLock
	others  map[Scope][]Rule
	all     []Rule // built-in and of the configuration
	docs    map[string]Doc
	config  Config
	dead    map[string][]*expr.Program // expressions of dead_when, by class
}

func newPolicy(cfg Config, classes *class.Set) *policy {
	p := &policy{classes: classes, others: map[Scope][]Rule{}, docs: map[string]Doc{}, config: cfg, dead: deadWhen(classes)}
	p.all = cfg.Rules()
	for _, r := range p.all {
		d := r.Doc()
		p.docs[d.Name] = d
		if d.Scope == ScopeLock {
			p.locks = append(p.locks, r)
		} else {
			p.others[d.Scope] = append(p.others[d.Scope], r)
		}
	}
	return p
}

// classOf returns the policy of a class; one that is not configured (any more)
// has the defaults under its own name.
func (p *policy) classOf(name string) class.Class {
	if c, ok := p.classes.Get(cmp.Or(name, class.Default)); ok {
		return c
	}
	return class.Class{Name: name}
}

// setting is how one rule runs for one class.
type setting struct {
	severity locksteward.Severity
	wait     time.Duration // `for:`
	usual    bool          // wait is the rule's own default
	off      bool
	entry    int // index in the configuration, -1 for the default
}

// setting returns how the rule runs for the class: the first entry that names
// both, else the default.
func (p *policy) setting(rule, className string) setting {
	d := p.docs[rule]
	s := setting{severity: d.Severity, wait: d.For, usual: true, entry: -1}
	for i, rc := range p.config {
		if rc.Rule != rule || !rc.covers(className) {
			continue
		}
		s.entry, s.off = i, rc.Off
		if sev, err := locksteward.ParseSeverity(rc.Severity); err == nil {
			s.severity = sev
		}
		if rc.For != nil {
			s.wait, s.usual = *rc.For, false
		}
		break
	}
	return s
}

// waitOn is how long the rule must say so of one lock: a `for:` of the configuration
// counts as it stands.
func (s setting) waitOn(l *locksteward.Lock, rule string) time.Duration {
	if rule == TTLNone && s.usual && lostTTL(l) {
		return lostAfter
	}
	return s.wait
}

func (rc RuleConfig) covers(className string) bool {
	if len(rc.Classes) == 0 {
		return true
	}
	return slices.Contains(rc.Classes, className)
}

// plan is how all lock rules run for one class, looked up once per evaluation
// and class rather than once per lock.
type plan struct {
	class    class.Class
	settings []setting // parallel to policy.locks
}

func (p *policy) plan(className string) *plan {
	pl := &plan{class: p.classOf(className)}
	for _, r := range p.locks {
		pl.settings = append(pl.settings, p.setting(r.Doc().Name, pl.class.Name))
	}
	return pl
}

// complete fills in what the rule left to the engine.
func (p *policy) complete(f *locksteward.Finding, rule string, s setting, c class.Class) {
	d := p.docs[rule]
	f.Rule, f.Risk, f.Class = rule, d.Risk, c.Name
	f.Team, f.RunbookURL = c.Team, c.RunbookURL
	// A verdict that the rule itself calls less severe stays so: an override
	// moves the rule's default, not its judgement of the single case.
	if f.Severity == 0 || f.Severity == d.Severity {
		f.Severity = s.severity
	} else {
		f.Severity = min(f.Severity, s.severity)
	}
	if f.Cause.ID == "" {
		f.Cause = d.Cause
	}
	if f.Remedy.ID == "" {
		f.Remedy = d.Remedy
	}
}
