package rules

import (
	"time"

	"github.com/locksteward/locksteward"
)

// kept is a finding as the table keeps it, a quarter of its size: a storm of them is
// most of what an agent has in memory. It never changes; the next verdict makes
// another one.
type kept struct {
	kind           *kind
	since, firedAt time.Time
	text           string // see kind.squeeze
}

// trait is what findings share that one rule says of the locks of one class.
type trait struct {
	rule, risk, target, class, library string
	db                                 int
	severity                           locksteward.Severity
	status                             locksteward.Status
	cause, remedy                      locksteward.Text
	team, runbookURL                   string
	proof                              locksteward.Proof
	inhibitedBy                        string
	scope                              Scope
}

// kind is a trait with the texts of the first finding that had it. It never changes.
type kind struct {
	trait
	texts []locksteward.Text
}

// kinds finds the kind that was made before. There are few, but a rule can say of each
// lock that another finding explains it: it begins anew before it grows.
type kinds map[trait]*kind

// maxKinds bounds how many are found again.
const maxKinds = 1024

// keep makes a finding smaller. Key and subject are the tracked's own.
func (k kinds) keep(f locksteward.Finding, scope Scope) *kept {
	at := trait{
		rule: f.Rule, risk: f.Risk, target: f.Target, class: f.Class, library: f.Library, db: f.DB, severity: f.Severity, status: f.Status,
		cause: f.Cause, remedy: f.Remedy, team: f.Team, runbookURL: f.RunbookURL, proof: f.Proof, inhibitedBy: f.InhibitedBy, scope: scope,
	}
	texts := textsOf(f)
	one := k[at]
	if one == nil {
		if len(k) >= maxKinds {
			clear(k)
		}
		one = &kind{at, texts}
		k[at] = one
	}
	return &kept{kind: one, since: f.Since, firedAt: f.FiredAt, text: one.squeeze(texts, f.Evidence, f.CounterEvidence)}
}

// finding is the finding as it was, on a key and with a subject.
func (k *kept) finding(key, subject string) locksteward.Finding {
	f := k.outline(key, subject)
	f.Summary, f.Evidence, f.CounterEvidence = k.kind.expand(k.text)
	return f
}

// outline is the finding without its texts, which have to be made.
func (k *kept) outline(key, subject string) locksteward.Finding {
	t := &k.kind.trait
	return locksteward.Finding{
		Rule: t.rule, Risk: t.risk, Target: t.target, Class: t.class, Library: t.library, DB: t.db, Severity: t.severity, Status: t.status,
		Cause: t.cause, Remedy: t.remedy, Team: t.team, RunbookURL: t.runbookURL, Proof: t.proof, InhibitedBy: t.inhibitedBy,
		Key: key, Subject: subject, Since: k.since, FiredAt: k.firedAt,
	}
}
