package alert

import (
	"time"

	"github.com/locksteward/locksteward/api"
)

// templateSamples are notifications of all types, with everything that one can have and
// with as little as one can have: a template that works for them works.
func templateSamples() []Payload {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	full := PayloadFinding{
		EventID: "e1", Seq: 7, At: at, URL: "https://locks.example/findings/0f5d",
		Finding: api.Finding{
			Rule: "ttl/none", Severity: "critical", Target: "redis", DB: 1, Key: api.Key{Key: "lock:order:42", KeyB64: "bG9jaw=="},
			Class: "orders", Library: "redsync", Subject: "s", Status: "firing", Risk: "deadlock", Summary: "never expires",
			Evidence: []string{"PTTL is -1"}, CounterEvidence: []string{"it was written 2s ago"}, Cause: "a crash", Remedy: "release it",
			Team: "checkout", RunbookURL: "https://wiki.example/locks", Fingerprint: "0f5d", Proof: "proven",
			Since: at.Add(-time.Minute), FiredAt: at, Unlock: "locksteward unlock",
		},
	}
	ended := full
	ended.Status, ended.ResolvedAt, ended.Summary = "resolved", at.Add(time.Hour), "the hold ended: the lock was released or deleted"
	bare := PayloadFinding{EventID: "e2", At: at, Finding: api.Finding{Rule: "target/down", Severity: "warning", Target: "redis", Status: "firing"}}
	group := &Group{Key: "g", Labels: map[string]string{"class": "orders"}, Firing: 2}
	count := Count{Rule: "ttl/none", Target: "redis", Class: "orders", Severity: "critical", Status: "firing", Findings: 2}
	base := Payload{Version: PayloadVersion, ID: "msg_0", Seq: 7, Timestamp: at}
	with := func(alter func(*Payload)) Payload {
		p := base
		alter(&p)
		return p
	}
	request := &ReleaseRequest{
		ID: "r-1", State: "pending", Act: "release", Target: "redis", Key: api.Key{Key: "lock:order:42"}, Class: "orders", Library: "redsync",
		Identity: "strong", Findings: []string{"ttl/none"}, Requester: "ana", Reason: "checkout is down",
		Decisions: []api.Decision{{By: "ben", Verdict: "approve", Reason: "seen", At: at}}, Outcome: "Released.",
		CreatedAt: at, ExpiresAt: at.Add(time.Hour), FinishedAt: at.Add(time.Minute), URL: "https://locks.example/requests/r-1",
	}
	out := []Payload{
		with(func(p *Payload) {
			p.Type, p.Status, p.Findings = "findings.firing", "firing", []PayloadFinding{full, bare}
			p.Reason, p.Group, p.Counts, p.Omitted, p.OmittedBy, p.URL = ReasonNews, group, []Count{count}, 3, map[string]int{"critical": 3}, "https://locks.example/findings"
		}),
		with(func(p *Payload) {
			p.Type, p.Status, p.Findings, p.Reason = "findings.resolved", "resolved", []PayloadFinding{ended}, ReasonNews
		}),
		with(func(p *Payload) {
			p.Type, p.Status, p.Reason, p.Counts, p.Omitted, p.OmittedBy = "findings.first_sweep", "firing", ReasonFirstSweep, []Count{count}, 2, map[string]int{"critical": 2}
		}),
		with(func(p *Payload) { p.Type, p.Status, p.Findings = "findings.firing", "firing", []PayloadFinding{bare} }),
		with(func(p *Payload) { p.Type, p.Text = typeTest, "This is a test." }),
	}
	for _, kind := range releaseTypes {
		out = append(out,
			with(func(p *Payload) {
				p.Type, p.Loud = kind, true
				p.Release = &ReleaseEvent{EventID: "r", At: at, Actor: "ana", Target: "redis", Text: "A sentence.", Team: "checkout", RunbookURL: "https://wiki.example", Request: request}
			}),
			with(func(p *Payload) {
				p.Type, p.Release = kind, &ReleaseEvent{EventID: "r", At: at, Actor: "ana", Text: "A sentence."}
			}))
	}
	return out
}

// releaseTypes are the types of notifications about releases.
var releaseTypes = []string{
	"release.requested", "release.reminder", "release.self_approved", "release.auto", "release.break_glass",
	"release.final", "release.unknown", "release.resurrected", "release.paused", "release.breaker",
}
