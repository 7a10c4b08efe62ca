package alert

import (
	"cmp"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/catalogue"
)

// Notice is a release event that receivers are notified of. It holds no token.
type Notice struct {
	// EventID is the same for every notification of the event.
	EventID string
	// Kind is the type of the notification, such as "release.requested".
	Kind   string
	At     time.Time
	Actor  string
	Target string
	// Request is as it is after the event; zero for one about no request.
	Request locksteward.Request
	Message locksteward.Message // one sentence
	// Team and RunbookURL are those of the lock's class; "" for none.
	Team, RunbookURL string
	// Loud cannot be silenced, muted or left out.
	Loud bool
}

// ReleaseEvent is one event of a release, or of what holds for all releases.
type ReleaseEvent struct {
	EventID string    `json:"event_id"`
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Target  string    `json:"target,omitempty"`
	// Text is a sentence in the language of the receiver.
	Text       string `json:"text"`
	Team       string `json:"team,omitempty"`
	RunbookURL string `json:"runbook_url,omitempty"`
	// Request is absent for an event about no request.
	Request *ReleaseRequest `json:"request,omitempty"`
}

// ReleaseRequest is a request as a receiver needs it: to show it, and
// to decide on it through the API.
type ReleaseRequest struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Act    string `json:"act"`
	Target string `json:"target"`
	DB     int    `json:"db"`
	api.Key
	Class        string         `json:"class"`
	Library      string         `json:"library"`
	Identity     string         `json:"identity"`
	Findings     []string       `json:"findings"`
	HolderAlive  bool           `json:"holder_alive,omitempty"`
	BreakGlass   bool           `json:"break_glass,omitempty"`
	Of           string         `json:"of,omitempty"`
	EvidenceHash string         `json:"evidence_hash"`
	Requester    string         `json:"requester"`
	Reason       string         `json:"reason"`
	Decisions    []api.Decision `json:"decisions"`
	Outcome      string         `json:"outcome"`
	CreatedAt    time.Time      `json:"created_at,omitzero"`
	ExpiresAt    time.Time      `json:"expires_at,omitzero"`
	FinishedAt   time.Time      `json:"finished_at,omitzero"`
	// URL leads to the request's page in the console.
	URL string `json:"url,omitempty"`
}

func newReleaseRequest(r locksteward.Request) *ReleaseRequest {
	if r.ID == "" {
		return nil
	}
	v := api.NewRequest(r)
	return &ReleaseRequest{
		ID: v.ID, State: v.State, Act: v.Evidence.Act, Target: v.Evidence.Target, DB: v.Evidence.DB, Key: v.Evidence.Key,
		Class: v.Evidence.Class, Library: v.Evidence.Library, Identity: v.Evidence.Identity, Findings: v.Evidence.Findings,
		HolderAlive: r.Evidence.HolderAlive, BreakGlass: r.Evidence.BreakGlass, Of: v.Evidence.Of, EvidenceHash: v.EvidenceHash,
		Requester: v.Requester, Reason: v.Reason, Decisions: v.Decisions, Outcome: v.Outcome,
		CreatedAt: v.CreatedAt, ExpiresAt: v.ExpiresAt, FinishedAt: v.FinishedAt,
	}
}

// releaseNotification makes the notification of a release event. Those about one request
// keep their order, and so do those about no request, by kind.
func releaseNotification(to writer, n Notice, number uint64) (locksteward.Notification, error) {
	ordering := n.Request.ID
	if ordering == "" {
		ordering = n.Kind
	}
	at := stamp(n.At)
	p := Payload{
		Version: PayloadVersion, Lang: to.lang, Type: n.Kind, Seq: number, Timestamp: at, Loud: n.Loud,
		Release: &ReleaseEvent{
			EventID: n.EventID, Seq: number, At: at, Actor: n.Actor, Target: n.Target, Text: catalogue.Text(to.lang, n.Message),
			Team: cmp.Or(n.Team, to.team), RunbookURL: n.RunbookURL, Request: newReleaseRequest(n.Request),
		},
	}
	m, err := to.notification(&p, ordering, n.Target, n.EventID)
	m.Urgency = n.urgency()
	return m, err
}
