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

// The types of notifications about no finding and no release; those of findings are
// "findings.firing" and "findings.resolved", those of releases begin with
// "release.".
const (
	typeFindings   = "findings."
	typeFirstSweep = "findings.first_sweep"
	typeTest       = "test"
)

// Payload is the body of one notification: docs/webhook.md, docs/webhook.schema.json.
// All kinds of receivers are sent from it.
type Payload struct {
	Version string `json:"version"`
	// Lang is the language of all texts in it.
	Lang string `json:"lang,omitempty"`
	// Type is "findings.firing", "findings.resolved", "release." and what happened,
	// or "test".
	Type string `json:"type"`
	// ID is the webhook-id header: the same over all attempts.
	ID string `json:"id"`
	// Seq is that of the newest event in the notification.
	Seq uint64 `json:"seq"`
	// Timestamp is the time of the newest event in the notification.
	Timestamp time.Time `json:"timestamp"`

	// Status and Findings are those of a notification about findings.
	Status   string           `json:"status,omitempty"`
	Findings []PayloadFinding `json:"findings,omitempty"`

	// Reason is why a notification about findings is sent now, and Group what they share.
	Reason Reasoning `json:"reason,omitempty"`
	Group  *Group    `json:"group,omitempty"`
	// Counts sum up all findings of the notification, also those that it does not list:
	// Omitted is how many these are, OmittedBy how many of each severity: "resolved" have
	// ended, and of those "notified_before" it is known only that they still fire.
	Counts    []Count        `json:"counts,omitempty"`
	Omitted   int            `json:"omitted,omitempty"`
	OmittedBy map[string]int `json:"omitted_by,omitempty"`
	// URL leads to the console: to what the notification is about.
	URL string `json:"url,omitempty"`

	// Loud says that no filter, silence or mute applies to the notification.
	Loud bool `json:"loud,omitempty"`
	// Release is the event of a notification about a release.
	Release *ReleaseEvent `json:"release,omitempty"`
	// Text is the sentence of a test, Team the team of classes that have none, and
	// RunbookURL the page about receivers. All other notifications have team and runbook on
	// each finding and on the release.
	Text       string `json:"text,omitempty"`
	Team       string `json:"team,omitempty"`
	RunbookURL string `json:"runbook_url,omitempty"`
}

// PayloadFinding is one transition of a finding. EventID is unique to it, whatever
// notification lists it.
type PayloadFinding struct {
	EventID string    `json:"event_id"`
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	api.Finding
	// URL leads to the finding's page in the console.
	URL string `json:"url,omitempty"`
}

// Reasoning is why a notification about findings is sent.
type Reasoning string

// The reasons of notifications about findings.
const (
	// ReasonNews is something that the receiver was not notified before.
	ReasonNews Reasoning = "news"
	// ReasonRepeat: the group still fires.
	ReasonRepeat Reasoning = "repeat"
	// ReasonFirstSweep: a target was swept for the first time.
	ReasonFirstSweep Reasoning = "first_sweep"
	// ReasonDigest: more is due than the rate limit of the service permits, so that several
	// groups are combined.
	ReasonDigest Reasoning = "digest"
)

// Group is what the findings of a notification share.
type Group struct {
	// Key is the same for all notifications of the group.
	Key string `json:"key"`
	// Labels are those by which findings are grouped.
	Labels map[string]string `json:"labels"`
	// Firing is how many findings of the group the receiver knows to fire, this
	// notification included.
	Firing int `json:"firing"`
}

// Count is how many findings of a notification have a rule, class, severity and status.
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

// notification makes the payload a notification of these events to a receiver. Its id
// depends on nothing else.
func (p Payload) notification(to writer, ordering, target string, events ...string) (locksteward.Notification, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(to.name), to.name)
	for _, e := range events {
		fmt.Fprintf(h, " %d:%s", len(e), e)
	}
	p.ID = "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
	body, err := json.Marshal(p)
	if err != nil {
		return locksteward.Notification{}, fmt.Errorf("encode notification of event %s: %w", events[0], err)
	}
	return locksteward.Notification{ID: p.ID, Receiver: to.name, Ordering: ordering, EventID: events[0], Target: target, Body: locksteward.EscapeJSON(body)}, nil
}

// TypeOf is the type of the payload that is the body of a notification; "" if it is
// none.
func TypeOf(body []byte) string {
	var p struct{ Type string }
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	return p.Type
}
