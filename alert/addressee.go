package alert

import (
	"encoding/json"

	"github.com/locksteward/locksteward"
)

// addressee is what it takes to write messages to one receiver.
type addressee struct {
	name, lang string
	grouping   Grouping
	manner
	match    Matchers
	keyNames string
	hooks    Hooks
	team     string
	links    links
}

// matchersOf parses matchers that are valid.
func matchersOf(texts []string) Matchers {
	m, _ := ParseMatchers(texts)
	return m
}

// newAddressee expects a configuration with its defaults that is valid.
func newAddressee(c Config, r Receiver, m manner, hooks Hooks) addressee {
	if r.MaxFindings > 0 {
		m.cap = r.MaxFindings
	}
	return addressee{
		name: r.Name, lang: r.Lang, grouping: c.Grouping.but(r.Grouping), manner: m, match: matchersOf(r.Match), keyNames: r.KeyNames,
		hooks: hooks, team: c.Team, links: links(c.ConsoleURL),
	}
}

// address is where a change waits for the receiver; false if it is not told.
func (a addressee) address(t Change, survey string) (Address, bool) {
	switch {
	// The end of a finding is for all who know it: its labels may have changed.
	case t.Finding.Status == locksteward.StatusFiring && !a.match.Match(t.Finding):
		a.hooks.suppress(a.name, SuppressedMatch, 1)
		return Address{}, false
	case t.Survey && survey == SurveyMute:
		a.hooks.suppress(a.name, SuppressedSurvey, 1)
		return Address{}, false
	case t.Survey:
		wait, interval := surveyWaits(t.Finding.Severity, t.surveying)
		return Address{Receiver: a.name, Group: SurveyGroup(t.Finding.Target), Wait: wait, Interval: interval, Urgency: urgencyOf(t.Finding)}, true
	default:
		to := Address{
			Receiver: a.name, Group: a.grouping.key(t.Finding), Wait: a.grouping.Wait, Interval: a.grouping.Interval, Urgency: urgencyOf(t.Finding),
		}
		if t.urgentFor(to.Wait) {
			to.Wait, to.Interval = 0, min(to.Interval, to.Wait)
		}
		return to, true
	}
}

// finish completes a payload and makes it a message.
func (a addressee) finish(p *Payload, ordering, target string, events ...string) (Message, error) {
	a.dress(p)
	return p.message(a, ordering, target, events...)
}

// dress completes what the receiver is told: teams, links, runbooks, and placeholders
// for names of locks.
func (a addressee) dress(p *Payload) {
	for i := range p.Findings {
		if p.Findings[i].Team == "" {
			p.Findings[i].Team = a.team
		}
	}
	if p.Type == typeTest {
		p.Team = a.team
	}
	a.links.fill(p)
	a.hideNames(p)
	p.withRunbooks()
}

// tellOne is the message of one change alone, and of no other: for when it cannot
// wait in the outbox.
func (a addressee) tellOne(t Change, group string) (Message, error) {
	c := composer{addressee: a}
	made := c.message(ReasonNews, &Group{Key: group, Labels: a.grouping.labels(t.Finding)}, "", []Change{t})
	if len(made) == 0 {
		return Message{}, c.err
	}
	return made[0], nil
}

// payloadOf decodes the body of a message.
func payloadOf(body []byte) (Payload, error) {
	var p Payload
	err := json.Unmarshal(body, &p)
	return p, err
}

// held says why a firing finding is not told now.
func (h Hooks) held(f locksteward.Finding) string {
	if h.Held == nil {
		return ""
	}
	return h.Held(f)
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
