package backend

import (
	"context"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/rules"
)

// releaseAdvisor is what the console's pages say before anybody asks for anything.
type releaseAdvisor struct{ backend *Backend }

func (g releaseAdvisor) Possible(l locksteward.Lock) console.Possible {
	ctx, cancel := context.WithTimeout(context.Background(), remote.Timeout)
	defer cancel()
	p, err := forwardRead(ctx, g.backend, callPossible, explainInput{Lock: l})
	if err != nil {
		return console.Possible{Refusal: err.Error()}
	}
	return p
}

func (g releaseAdvisor) WhyNotApprove(actor console.Actor, r locksteward.Request) error {
	return g.backend.deps.Releases.WhyNotApprove(person(actor), r)
}

func (g releaseAdvisor) Resolved(fingerprint string) (locksteward.Finding, bool) {
	f, ok := g.backend.deps.Resolved.Get(fingerprint)
	if !ok && g.backend.deps.Remote != nil {
		return g.backend.remoteResolved(fingerprint)
	}
	return f, ok
}

func (g releaseAdvisor) Rules(lang string) []api.Rule {
	cfg := g.backend.deps.Targets.Now().Config.Rules
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
			Cause: catalogue.Text(lang, d.Cause), Remedy: catalogue.Text(lang, d.Remedy), Page: d.Page(), Entries: []api.RuleEntry{},
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

var _ console.ReleaseAdvisor = releaseAdvisor{}
