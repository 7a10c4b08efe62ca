package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// PayloadVersion is the version of [Payload]; fields may be added within it.
const PayloadVersion = "1"

// The types of messages about no finding and no release; those of findings are
// "findings.firing" and "findings.resolved", those of releases begin with
// "release.".
const (
	typeFindings = "findings."
	typeTest     = "test"
)

// Payload is the body of one message: docs/webhook.md, docs/webhook.schema.json.
// Every kind of receiver is told from it.
type Payload struct {
	Version string `json:"version"`
	// Type is "findings.firing", "findings.resolved", "release." and what happened,
	// or "test".
	Type string `json:"type"`
	// ID is the webhook-id header: the same over all attempts.
	ID string `json:"id"`
	// Seq is that of the newest event in the message.
	Seq uint64 `json:"seq"`
	// Timestamp is the time of the newest event in the message.
	Timestamp time.Time `json:"timestamp"`

	// Status and Findings are those of a message about findings.
	Status   string  `json:"status,omitempty"`
	Findings []Event `json:"findings,omitempty"`

	// Loud says that no filter, silence or mute may keep the message back.
	Loud bool `json:"loud,omitempty"`
	// Release is the event of a message about a release.
	Release *ReleaseEvent `json:"release,omitempty"`
	// Text is the sentence of a test.
	Text string `json:"text,omitempty"`
}

// Event is one transition of a finding. EventID is unique to it, whatever
// message it comes in.
type Event struct {
	EventID string    `json:"event_id"`
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	api.Finding
}

func newEvent(t locksteward.Transition, seq uint64, lang string) Event {
	return Event{EventID: eventID(t), Seq: seq, At: stamp(t.At), Finding: api.NewFinding(t.Finding, lang)}
}

func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// eventID falls back to what is unique within one agent.
func eventID(t locksteward.Transition) string {
	if t.EventID != "" {
		return t.EventID
	}
	return fmt.Sprintf("%s-%d", t.Finding.Fingerprint(), t.Seq)
}

// sequenced is a transition with its place among all events.
type sequenced struct {
	locksteward.Transition
	seq uint64
}

// tellFindings makes the message of transitions that all have one status. A sender
// makes one for each: several are for whoever groups them.
func tellFindings(to addressee, batch ...sequenced) (Message, error) {
	first := batch[0].Finding
	p := Payload{
		Version: PayloadVersion, Type: typeFindings + string(first.Status), Status: string(first.Status),
		Findings: make([]Event, 0, len(batch)),
	}
	events := make([]string, 0, len(batch))
	for _, t := range batch {
		e := newEvent(t.Transition, t.seq, to.lang)
		p.Findings = append(p.Findings, e)
		p.Seq = max(p.Seq, e.Seq)
		if e.At.After(p.Timestamp) {
			p.Timestamp = e.At
		}
		events = append(events, e.EventID)
	}
	return p.message(to, first.Fingerprint(), first.Target, events...)
}

// message makes the payload the message of these events to a receiver. Its id
// depends on nothing else.
func (p Payload) message(to addressee, ordering, target string, events ...string) (Message, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(to.name), to.name)
	for _, e := range events {
		fmt.Fprintf(h, " %d:%s", len(e), e)
	}
	p.ID = "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
	body, err := json.Marshal(p)
	if err != nil {
		return Message{}, fmt.Errorf("encode message of event %s: %w", events[0], err)
	}
	return Message{ID: p.ID, Receiver: to.name, Ordering: ordering, EventID: events[0], Target: target, Body: body}, nil
}

// TypeOf is the type of the payload that is the body of a message; "" if it is
// none.
func TypeOf(body []byte) string {
	var p struct{ Type string }
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	return p.Type
}

// subject is what the sender must know of a message to keep fire and resolve
// together.
type subject struct {
	fires, resolves bool
	// first says that no fire of this finding was told before.
	first bool
	rules []string
}

func subjectOf(body []byte) subject {
	var p Payload
	if json.Unmarshal(body, &p) != nil || !strings.HasPrefix(p.Type, typeFindings) {
		return subject{}
	}
	s := subject{
		fires: p.Status == string(locksteward.StatusFiring), resolves: p.Status == string(locksteward.StatusResolved), first: true,
	}
	for _, e := range p.Findings {
		// A change of severity is another fire, later than the first.
		s.first = s.first && !e.At.After(e.FiredAt.Add(time.Millisecond))
		if e.FiredAt.IsZero() {
			s.first = true
		}
		s.rules = append(s.rules, e.Rule)
	}
	return s
}
