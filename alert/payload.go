package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
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
	typeSurvey   = "findings.survey"
	typeTest     = "test"
)

// Payload is the body of one message: docs/webhook.md, docs/webhook.schema.json.
// Every kind of receiver is told from it.
type Payload struct {
	Version string `json:"version"`
	// Lang is the language of all texts in it.
	Lang string `json:"lang,omitempty"`
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

	// Reason is why a message about findings comes now, and Group what they share.
	Reason Reasoning `json:"reason,omitempty"`
	Group  *Group    `json:"group,omitempty"`
	// Counts sum up all findings of the message, also those that it does not list:
	// Omitted is how many these are, OmittedBy how many of each severity: "resolved" are
	// over, and of those "told_before" no more is known here than that they fire still.
	Counts    []Count        `json:"counts,omitempty"`
	Omitted   int            `json:"omitted,omitempty"`
	OmittedBy map[string]int `json:"omitted_by,omitempty"`
	// URL leads to the console: to what the message is about.
	URL string `json:"url,omitempty"`

	// Loud says that no filter, silence or mute may keep the message back.
	Loud bool `json:"loud,omitempty"`
	// Release is the event of a message about a release.
	Release *ReleaseEvent `json:"release,omitempty"`
	// Text is the sentence of a test, Team who is asked where a class has no team, and
	// RunbookURL the page about receivers. All other messages have team and runbook on
	// each finding and on the release.
	Text       string `json:"text,omitempty"`
	Team       string `json:"team,omitempty"`
	RunbookURL string `json:"runbook_url,omitempty"`
}

// Event is one transition of a finding. EventID is unique to it, whatever
// message it comes in.
type Event struct {
	EventID string    `json:"event_id"`
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	api.Finding
	// URL leads to the finding's page in the console.
	URL string `json:"url,omitempty"`
}

// Reasoning is why a message about findings comes.
type Reasoning string

// The reasons of messages about findings.
const (
	// ReasonNews is something that the receiver was not told before.
	ReasonNews Reasoning = "news"
	// ReasonRepeat is that the group fires still.
	ReasonRepeat Reasoning = "repeat"
	// ReasonSurvey is that a target was swept for the first time.
	ReasonSurvey Reasoning = "first_survey"
	// ReasonDigest is that more was to be told than the service takes: the message is
	// about several groups.
	ReasonDigest Reasoning = "digest"
)

// Group is what the findings of a message share.
type Group struct {
	// Key is the same for all messages of the group.
	Key string `json:"key"`
	// Labels are those by which findings are grouped.
	Labels map[string]string `json:"labels"`
	// Firing is how many findings of the group the receiver knows to fire, this
	// message included.
	Firing int `json:"firing"`
}

// Count is how many findings of a message have a rule, class, severity and status.
type Count struct {
	Rule     string `json:"rule"`
	Target   string `json:"target"`
	Class    string `json:"class"`
	Severity string `json:"severity"`
	Status   string `json:"status"`
	Findings int    `json:"findings"`
}

func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// eventID falls back to what is unique within one agent.
func eventID(t locksteward.Transition) string {
	if t.EventID != "" {
		return t.EventID
	}
	return fmt.Sprintf("%s-%d", t.Finding.Fingerprint(), t.Seq)
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
	return Message{ID: p.ID, Receiver: to.name, Ordering: ordering, EventID: events[0], Target: target, Body: locksteward.EscapeJSON(body)}, nil
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

// subject is what the sender must know of a message: to keep fires and resolves
// together the fingerprints of the findings that it lists, and what it asks for.
type subject struct {
	// fires are the findings that begin in it and were not told before, raises those
	// that were.
	fires, raises, resolves []string
	rules                   []string
	// asks is the request on which somebody is to decide; "" for all other messages.
	asks string
}

func subjectOf(body []byte) subject {
	var p Payload
	if json.Unmarshal(body, &p) != nil {
		return subject{}
	}
	if asks(p.Type) && p.Release != nil && p.Release.Request != nil && !p.Loud {
		return subject{asks: p.Release.Request.ID}
	}
	if !strings.HasPrefix(p.Type, typeFindings) {
		return subject{}
	}
	var s subject
	for _, e := range p.Findings {
		switch {
		case e.Status == string(locksteward.StatusResolved):
			s.resolves = append(s.resolves, e.Fingerprint)
		// A change of severity is another fire, later than the first.
		case e.At.After(e.FiredAt.Add(time.Millisecond)) && !e.FiredAt.IsZero():
			s.raises = append(s.raises, e.Fingerprint)
		default:
			s.fires = append(s.fires, e.Fingerprint)
		}
		if !slices.Contains(s.rules, e.Rule) {
			s.rules = append(s.rules, e.Rule)
		}
	}
	return s
}
