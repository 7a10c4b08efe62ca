package alert

import (
	"encoding/json"
	"time"

	"github.com/locksteward/locksteward"
)

// writer writes the notifications of one receiver.
type writer struct {
	name, lang string
	grouping   Grouping
	traits
	// timeout bounds one attempt, maxAttempts and maxAge bound all of one notification.
	timeout     time.Duration
	maxAttempts int
	maxAge      time.Duration
	match       Matchers
	keyNames    string
	hooks       Hooks
	team        string
	links       links
}

// matchersOf parses matchers that are valid.
func matchersOf(texts []string) Matchers {
	m, _ := ParseMatchers(texts)
	return m
}

// newWriter expects a valid configuration with its defaults.
func newWriter(c Config, r Receiver, t traits, hooks Hooks) writer {
	if r.MaxFindings > 0 {
		t.cap = r.MaxFindings
	}
	return writer{
		name: r.Name, lang: r.Lang, grouping: c.Grouping.but(r.Grouping), traits: t,
		timeout: r.Timeout, maxAttempts: r.MaxAttempts, maxAge: r.MaxAge, match: matchersOf(r.Match), keyNames: r.KeyNames,
		hooks: hooks, team: c.Team, links: links(c.ConsoleURL),
	}
}

// timing is what decides how long an event waits, beside its finding.
type timing struct {
	// firstSweepFor is how long the first sweep of the target has been running, negative once
	// it has ended.
	firstSweepFor time.Duration
	// leaseLeft is how long the lease of the lock lasts unless it is renewed; zero if it is
	// not known.
	leaseLeft time.Duration
}

// urgentFor reports whether the lease ends so soon that the event must not wait so long
// for others: half of what is left would be gone.
func (t timing) urgentFor(wait time.Duration) bool { return t.leaseLeft > 0 && t.leaseLeft <= 2*wait }

// recipient is the group in which an event waits for the receiver; false if the receiver
// is not notified of it.
func (w writer) recipient(e locksteward.FindingEvent, t timing, firstSweep string) (locksteward.Recipient, bool) {
	firing := e.Finding.Status == locksteward.StatusFiring
	switch {
	// The end of a finding is for all who know it: its labels may have changed.
	case firing && !w.match.Match(e.Finding):
		w.hooks.suppress(w.name, SuppressedMatch, 1)
		return locksteward.Recipient{}, false
	case e.FirstSweep && firstSweep == FirstSweepMute:
		w.hooks.suppress(w.name, SuppressedFirstSweep, 1)
		return locksteward.Recipient{}, false
	case e.FirstSweep:
		wait, interval := firstSweepWaits(e.Finding.Severity, t.firstSweepFor)
		return locksteward.Recipient{
			Receiver: w.name, Group: FirstSweepGroup(e.Finding.Target), Wait: wait, Interval: interval, Urgency: urgencyOf(e.Finding),
		}, true
	default:
		to := locksteward.Recipient{
			Receiver: w.name, Group: w.grouping.key(e.Finding), Wait: w.grouping.Wait, Interval: w.grouping.Interval, Urgency: urgencyOf(e.Finding),
		}
		if firing && t.urgentFor(to.Wait) {
			to.Wait, to.Interval = 0, min(to.Interval, to.Wait)
		}
		return to, true
	}
}

// notification completes a payload and makes it a notification.
func (w writer) notification(p *Payload, ordering, target string, events ...string) (locksteward.Notification, error) {
	w.complete(p)
	return p.notification(w, ordering, target, events...)
}

// complete adds teams, links and runbooks, and placeholders for names of locks that the receiver is
// not to see.
func (w writer) complete(p *Payload) {
	for i := range p.Findings {
		if p.Findings[i].Team == "" {
			p.Findings[i].Team = w.team
		}
	}
	if p.Type == typeTest {
		p.Team = w.team
	}
	w.links.fill(p)
	w.hideNames(p)
	p.withRunbooks()
}

// single is a notification of one event alone, for one that cannot wait in the outbox.
func (w writer) single(e locksteward.FindingEvent, group string) (locksteward.Notification, error) {
	c := composer{writer: w}
	made := c.message(ReasonNews, &Group{Key: group, Labels: w.grouping.labels(e.Finding)}, "", []locksteward.FindingEvent{e})
	if len(made) == 0 {
		return locksteward.Notification{}, c.err
	}
	return made[0], nil
}

// payloadOf decodes the body of a notification.
func payloadOf(body []byte) (Payload, error) {
	var p Payload
	err := json.Unmarshal(body, &p)
	return p, err
}

// heldBy is why a firing finding is held back now; "" if it is not.
func (h Hooks) heldBy(f locksteward.Finding) string {
	if h.HeldBy == nil {
		return ""
	}
	return h.HeldBy(f)
}

func (h Hooks) suppress(receiver, reason string, n int) {
	if h.Suppressed != nil && n > 0 {
		h.Suppressed(receiver, reason, n)
	}
}

func (h Hooks) omit(receiver string, n int) {
	if h.Omitted != nil && n > 0 {
		h.Omitted(receiver, n)
	}
}
