package api

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// RuleList is what `locksteward rules list --output json` prints.
type RuleList struct {
	Rules []Rule `json:"rules"`
}

// Rule is one rule as it runs.
type Rule struct {
	Rule  string `json:"rule"`
	Title string `json:"title"`
	// Severity and ForMs are the rule's default, or what the configuration gives
	// for all classes.
	Severity string `json:"severity"`
	// SeverityNote says when a finding has another severity.
	SeverityNote string `json:"severity_note,omitempty"`
	ForMs        int64  `json:"for_ms"`
	// Risk is "deadlock" or absent.
	Risk   string `json:"risk,omitempty"`
	Judges string `json:"judges"`
	// Since is the first version that has the rule; absent for a rule of the
	// configuration.
	Since string `json:"since,omitempty"`
	Off   bool   `json:"off"`
	// When is the expression of a rule of the configuration.
	When   string `json:"when,omitempty"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy"`
	Page   string `json:"page"`
	// Entries are the configuration's entries for the rule, in the order in which
	// they apply.
	Entries []RuleEntry `json:"entries"`
}

// RuleEntry is one entry of `rules:` in the configuration.
type RuleEntry struct {
	// Classes is empty for all.
	Classes  []string `json:"classes"`
	Severity string   `json:"severity,omitempty"`
	ForMs    *int64   `json:"for_ms,omitempty"`
	Off      bool     `json:"off"`
}

// RulesTest is what `locksteward rules test FILE --output json` prints.
type RulesTest struct {
	File  string `json:"file"`
	Looks int    `json:"looks"`
	// Locks is how many lock keys there were, each counted once.
	Locks int       `json:"locks"`
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"`
	// Transitions are the changes that would have been notified, in order.
	Transitions []RulesTransition `json:"transitions"`
	// Findings are those that pend or fire after the last look.
	Findings []Finding `json:"findings"`
	// Dead are the locks for which the agent would propose a release.
	Dead []RulesDead `json:"dead"`
	// Mismatches are the differences to --expect; absent without it.
	Mismatches []string `json:"mismatches,omitempty"`
}

// RulesTransition is one change of a finding.
type RulesTransition struct {
	At       time.Time `json:"at"`
	Status   string    `json:"status"`
	Severity string    `json:"severity"`
	Rule     string    `json:"rule"`
	Target   string    `json:"target"`
	DB       int       `json:"db"`
	Key
	Class   string `json:"class"`
	Summary string `json:"summary"`
}

// RulesDead is a lock that its class calls dead.
type RulesDead struct {
	Target string `json:"target"`
	DB     int    `json:"db"`
	Key
	Class string `json:"class"`
	// DeadWhen are the elements of the class's dead_when that fire or hold.
	DeadWhen []string `json:"dead_when"`
}

// NewRulesTransition converts a transition, its text in lang.
func NewRulesTransition(t locksteward.Transition, lang string) RulesTransition {
	f := t.Finding
	return RulesTransition{
		At: stamp(t.At), Status: string(f.Status), Severity: f.Severity.String(), Rule: f.Rule,
		Target: f.Target, DB: f.DB, Key: NewKey(f.Key), Class: f.Class, Summary: catalogue.Text(lang, f.Summary),
	}
}

// NewRulesDead converts a lock that the elements of dead_when in because call
// dead.
func NewRulesDead(l locksteward.Lock, because []string) RulesDead {
	return RulesDead{Target: l.Target, DB: l.DB, Key: NewKey(l.Key), Class: l.Class, DeadWhen: list(because)}
}
