package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/rules"
)

// guide is what the console's pages say before anybody asks for anything.
type guide struct{ agent *Agent }

func (g guide) Possible(l locksteward.Lock) console.Possible {
	ctx, cancel := context.WithTimeout(context.Background(), fleetWithin)
	defer cancel()
	p, err := read(ctx, g.agent, callPossible, explainAsked{Lock: l})
	if err != nil {
		return console.Possible{Refusal: err.Error()}
	}
	return p
}

func (g guide) WhyNotApprove(actor console.Actor, r locksteward.Request) error {
	return g.agent.releases.WhyNotApprove(person(actor), r)
}

func (g guide) Resolved(fingerprint string) (locksteward.Finding, bool) {
	f, ok := g.agent.resolved.get(fingerprint)
	if !ok && g.agent.fleet != nil {
		return g.agent.fleet.resolved(fingerprint)
	}
	return f, ok
}

func (g guide) Rules(lang string) []api.Rule {
	cfg := g.agent.current().cfg.Rules
	return RuleList(cfg, lang).Rules
}

// RuleList lists the rules as a configuration runs them, their texts in lang.
func RuleList(cfg rules.Config, lang string) api.RuleList {
	out := api.RuleList{Rules: []api.Rule{}}
	for _, r := range cfg.Rules() {
		d := r.Doc()
		rule := api.Rule{
			Rule: d.Name, Title: d.Title, Severity: d.Severity.String(), SeverityNote: d.SeverityNote,
			ForMs: d.For.Milliseconds(), Risk: d.Risk, Judges: string(d.Scope), Since: d.Since,
			Cause: d.Cause.In(lang), Remedy: d.Remedy.In(lang), Page: d.Page(), Entries: []api.RuleEntry{},
		}
		all := false // an entry for all classes came already
		for _, entry := range cfg {
			if entry.Rule != d.Name {
				continue
			}
			shown := api.RuleEntry{Classes: append([]string{}, entry.Classes...), Severity: entry.Severity, Off: entry.Off}
			if entry.For != nil {
				shown.ForMs = new(entry.For.Milliseconds())
			}
			rule.Entries = append(rule.Entries, shown)
			if entry.When != "" {
				rule.When = entry.When
			}
			if (len(entry.Classes) == 0 || entry.When != "") && !all {
				all = true
				applyEntry(&rule, shown)
			}
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}

// applyEntry changes a rule's defaults to what an entry for all classes gives.
func applyEntry(r *api.Rule, e api.RuleEntry) {
	if e.Severity != "" {
		r.Severity = e.Severity
	}
	if e.ForMs != nil {
		r.ForMs = *e.ForMs
	}
	r.Off = e.Off
}

// maxResolved bounds the findings that are kept after their end.
const maxResolved = 2000

// resolvedFindings keeps the last findings that were resolved, so that the link of a
// notification still leads to its finding.
type resolvedFindings struct {
	mu    sync.Mutex
	by    map[string]locksteward.Finding
	order []string // fingerprints, the oldest first
}

func (e *resolvedFindings) add(transitions []locksteward.Transition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range transitions {
		id := t.Finding.Fingerprint()
		if _, known := e.by[id]; known {
			delete(e.by, id)
			e.order = slices.DeleteFunc(e.order, func(other string) bool { return other == id })
		}
		if t.Finding.Status != locksteward.StatusResolved {
			continue
		}
		if e.by == nil {
			e.by = map[string]locksteward.Finding{}
		}
		if len(e.order) == maxResolved {
			delete(e.by, e.order[0])
			e.order = e.order[1:]
		}
		e.by[id] = t.Finding
		e.order = append(e.order, id)
	}
}

func (e *resolvedFindings) get(fingerprint string) (locksteward.Finding, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, ok := e.by[fingerprint]
	return f, ok
}

var _ console.Guide = guide{}
