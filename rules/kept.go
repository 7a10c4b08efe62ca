package rules

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// kept is a finding as the table keeps it, a quarter of its size: a storm of them is
// most of what an agent has in memory. It never changes; the next verdict makes
// another one.
type kept struct {
	kind           *kind
	since, firedAt time.Time
	messages       string // summary, evidence and counter-evidence, packed
}

// trait is what findings share that one rule says of the locks of one class.
type trait struct {
	rule, risk, target, class, library string
	db                                 int
	severity                           locksteward.Severity
	status                             locksteward.Status
	cause, remedy                      string // packed
	team, runbookURL                   string
	proof                              locksteward.Proof
	inhibitedBy                        string
	scope                              Scope
}

// kind is a trait with the ids of the messages of the first finding that had it. It
// never changes.
type kind struct {
	trait
	ids []string
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
		cause: string(pack(nil, nil, f.Cause)), remedy: string(pack(nil, nil, f.Remedy)), team: f.Team, runbookURL: f.RunbookURL, proof: f.Proof, inhibitedBy: f.InhibitedBy, scope: scope,
	}
	one := k[at]
	if one == nil {
		if len(k) >= maxKinds {
			clear(k)
		}
		one = &kind{at, idsOf(slices.Concat([]locksteward.Message{f.Summary}, f.Evidence, f.CounterEvidence))}
		k[at] = one
	}
	var room [256]byte
	packed := packAll(packAll(pack(room[:0], one.ids, f.Summary), one.ids, f.Evidence), one.ids, f.CounterEvidence)
	return &kept{kind: one, since: f.Since, firedAt: f.FiredAt, messages: string(packed)}
}

// finding is the finding as it was, on a key and with a subject.
func (k *kept) finding(key, subject string) locksteward.Finding {
	f := k.outline(key, subject)
	in := unpacker{k.kind.ids, k.messages}
	f.Summary, f.Evidence, f.CounterEvidence = in.message(), in.messages(), in.messages()
	return f
}

// outline is the finding without its texts, which have to be made.
func (k *kept) outline(key, subject string) locksteward.Finding {
	t := &k.kind.trait
	cause, remedy := unpacker{rest: t.cause}, unpacker{rest: t.remedy}
	return locksteward.Finding{
		Rule: t.rule, Risk: t.risk, Target: t.target, Class: t.class, Library: t.library, DB: t.db, Severity: t.severity, Status: t.status,
		Cause: cause.message(), Remedy: remedy.message(), Team: t.team, RunbookURL: t.runbookURL, Proof: t.proof, InhibitedBy: t.inhibitedBy,
		Key: key, Subject: subject, Since: k.since, FiredAt: k.firedAt,
	}
}
