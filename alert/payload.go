package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// PayloadVersion is the version of [Payload]; fields may be added within it.
const PayloadVersion = "1"

// Payload is the body of one message: docs/webhook.md, docs/webhook.schema.json.
type Payload struct {
	Version string `json:"version"`
	// Type is "findings.firing" or "findings.resolved".
	Type string `json:"type"`
	// ID is the webhook-id header: the same over all attempts.
	ID string `json:"id"`
	// Seq is that of the newest transition in the message.
	Seq uint64 `json:"seq"`
	// Timestamp is the time of the newest transition in the message.
	Timestamp time.Time `json:"timestamp"`
	Status    string    `json:"status"`
	Findings  []Event   `json:"findings"`
}

// Event is one transition of a finding. EventID is unique to it, whatever
// message it comes in.
type Event struct {
	EventID string    `json:"event_id"`
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	api.Finding
}

func newEvent(t locksteward.Transition, lang string) Event {
	return Event{
		EventID: eventID(t),
		Seq:     t.Seq,
		At:      t.At.UTC().Truncate(time.Millisecond),
		Finding: api.NewFinding(t.Finding, lang),
	}
}

// eventID falls back to what is unique within one agent.
func eventID(t locksteward.Transition) string {
	if t.EventID != "" {
		return t.EventID
	}
	return fmt.Sprintf("%s-%d", t.Finding.Fingerprint(), t.Seq)
}

// message is what one or more attempts deliver.
type message struct {
	id     string
	status locksteward.Status
	body   []byte
	fps    []string // fingerprints, one for each finding
	rules  []string // rules, for the log
	queued time.Time
	// reached says that an attempt may have arrived although it failed.
	reached bool
}

// compose makes the message of transitions that all have one status. The id
// depends on nothing but the receiver and the events.
func compose(receiver, lang string, batch []queued) (message, error) {
	status := batch[0].t.Finding.Status
	p := Payload{
		Version: PayloadVersion, Type: "findings." + string(status), Status: string(status),
		Findings: make([]Event, 0, len(batch)),
	}
	m := message{status: status, queued: batch[0].at}
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(receiver), receiver)
	for _, q := range batch {
		e := newEvent(q.t, lang)
		p.Findings = append(p.Findings, e)
		p.Seq = max(p.Seq, e.Seq)
		if e.At.After(p.Timestamp) {
			p.Timestamp = e.At
		}
		m.fps = append(m.fps, e.Fingerprint)
		m.rules = append(m.rules, e.Rule)
		fmt.Fprintf(h, " %d:%s", len(e.EventID), e.EventID)
	}
	m.id = "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
	p.ID = m.id
	body, err := json.Marshal(p)
	if err != nil {
		return message{}, fmt.Errorf("encode message: %w", err)
	}
	m.body = body
	return m, nil
}
