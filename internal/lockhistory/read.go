package lockhistory

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/store"
)

const (
	// clockSlack is by how much a lock may seem to end before the request that released it did: two clocks, and the way
	// back from the server.
	clockSlack = 5 * time.Second
	// releasedWithin is how long after its release a lock is seen to be gone at the latest.
	releasedWithin = time.Hour
)

// Events returns what happened to one lock, newest first, of the rows of the store and of the release requests for it. A
// hold that a request ended names that request.
func Events(rows []store.LockEvent, requests []locksteward.Request) []api.LockEvent {
	var out []api.LockEvent
	released := releases(rows, requests)
	for i, row := range rows {
		out = append(out, eventsOf(row, released[i])...)
	}
	return out
}

// Fired returns the findings that fired, of the rows of the store. A row that cannot be read is left out.
func Fired(rows []store.LockEvent) []api.LockEvent {
	out := make([]api.LockEvent, 0, len(rows))
	for _, row := range rows {
		var f finding
		if json.Unmarshal([]byte(row.Event), &f) == nil && f.Rule != "" {
			out = append(out, api.LockEvent{At: milli(row.At), Kind: row.Kind, Rule: f.Rule, Severity: f.Severity})
		}
	}
	return out
}

// Current returns the events of a hold that has not ended, newest first.
func Current(l locksteward.Lock) []api.LockEvent {
	h := hold{Digest: l.TokenDigest, Holder: api.NewHolder(l.Holder)}
	h.Began, _ = begin(l)
	h.Renewals, h.LastRenewal = renewals(l)
	return beginning(h)
}

// releases returns, by row, the request that ended the hold: the first end of the request's token after it was executed.
func releases(rows []store.LockEvent, requests []locksteward.Request) map[int]string {
	out := map[int]string{}
	for _, r := range requests {
		if r.State != locksteward.RequestReleased || r.Evidence.Act == locksteward.ActUndo {
			continue
		}
		// Rows are newest first: the last that fits happened first.
		for i, row := range slices.Backward(rows) {
			var h hold
			after := row.At.Sub(r.FinishedAt)
			if after < -clockSlack || after > releasedWithin || out[i] != "" || !isEnd(row.Kind) || json.Unmarshal([]byte(row.Event), &h) != nil {
				continue
			}
			if h.Digest == r.Evidence.TokenDigest && h.Began.Before(r.FinishedAt.Add(clockSlack)) {
				out[i] = r.ID
				break
			}
		}
	}
	return out
}

// isEnd reports whether a kind of event ends a hold.
func isEnd(kind string) bool {
	switch kind {
	case api.EventReleased, api.EventExpired, api.EventDeleted, api.EventGone:
		return true
	}
	return false
}

// eventsOf returns the events of a row, newest first. Of a row that cannot be read only the kind is known.
func eventsOf(row store.LockEvent, requestID string) []api.LockEvent {
	if !isEnd(row.Kind) {
		var f finding
		_ = json.Unmarshal([]byte(row.Event), &f)
		return []api.LockEvent{{At: milli(row.At), Kind: row.Kind, Rule: f.Rule, Severity: f.Severity, Summary: catalogue.Text("en", f.Summary)}}
	}
	var h hold
	_ = json.Unmarshal([]byte(row.Event), &h)
	end := api.LockEvent{
		At: milli(row.At), Kind: row.Kind, HeldMs: h.HeldMs, HeldIsMinimum: h.AtLeast, ByHolder: h.ByHolder, Renewals: h.Renewals, TokenDigest: h.Digest, Holder: h.Holder,
		RequestID: requestID,
	}
	if requestID != "" {
		end.Kind = api.EventForceReleased
	}
	return append([]api.LockEvent{end}, beginning(h)...)
}

// beginning returns the last renewal and the acquisition of a hold.
func beginning(h hold) []api.LockEvent {
	var out []api.LockEvent
	if h.Renewals > 0 && !h.LastRenewal.IsZero() {
		out = append(out, api.LockEvent{At: milli(h.LastRenewal), Kind: api.EventRenewed, Renewals: h.Renewals, TokenDigest: h.Digest, Holder: h.Holder})
	}
	if !h.Began.IsZero() {
		out = append(out, api.LockEvent{At: milli(h.Began), Kind: api.EventAcquired, TokenDigest: h.Digest, Holder: h.Holder})
	}
	return out
}

func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
