package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/store"
)

// forcedSlack is by how much the end of a lock may seem to come before the end of
// the request that caused it: two clocks, and the way back from the server.
const forcedSlack = 5 * time.Second

// forcedWithin is how long after its release a lock is seen to be gone at the
// latest; sweeps are seldom less frequent.
const forcedWithin = time.Hour

// LockEvents is what happened to one lock, newest first: what the store has of it,
// and the hold that lasts. A hold that a request here ended says so.
func (a *Agent) LockEvents(ctx context.Context, target string, db int, key string, limit int) ([]api.LockEvent, error) {
	out, err := read(ctx, a, callEvents, lockAsked{target, db, key, limit})
	return out.V, err
}

func (a *Agent) lockEvents(ctx context.Context, target string, db int, key string, limit int) ([]api.LockEvent, error) {
	w, err := a.watched(target)
	if err != nil {
		return nil, err
	}
	if err := w.ownDB(db); err != nil {
		return nil, err
	}
	rows, err := a.store.LockEvents(ctx, target, db, key, limit)
	if err != nil {
		return nil, stored(err)
	}
	requests, err := a.store.RequestsForKey(ctx, target, db, key, limit)
	if err != nil {
		return nil, stored(err)
	}
	var out []api.LockEvent
	forced := ends(rows, requests)
	for i, row := range rows {
		out = append(out, told(row, forced[i])...)
	}
	if l, ok := w.scanner.Table().Get(db, key); ok {
		out = append(out, lasting(l)...)
	}
	slices.SortStableFunc(out, func(a, b api.LockEvent) int { return b.At.Compare(a.At) })
	return out[:min(limit, len(out))], nil
}

// ends says which rows are the ends of holds by a request, and of which: the first
// end of that very token after the request was carried out.
func ends(rows []store.LockEvent, requests []locksteward.Request) map[int]string {
	out := map[int]string{}
	for _, r := range requests {
		if r.State != locksteward.RequestReleased || r.Evidence.Act == locksteward.ActUndo {
			continue
		}
		// Rows are newest first: the last that fits is the first that happened.
		for i, row := range slices.Backward(rows) {
			var h heldEvent
			after := row.At.Sub(r.FinishedAt)
			if after < -forcedSlack || after > forcedWithin || out[i] != "" || !isHold(row.Kind) || json.Unmarshal([]byte(row.Event), &h) != nil {
				continue
			}
			if h.Digest == r.Evidence.TokenDigest && h.Began.Before(r.FinishedAt.Add(forcedSlack)) {
				out[i] = r.ID
				break
			}
		}
	}
	return out
}

func isHold(kind string) bool {
	return kind == kindReleased || kind == kindExpired || kind == kindDeleted || kind == kindGone
}

// told makes events of a row, newest first. A row that nobody can read, of a newer
// version, is its kind alone.
func told(row store.LockEvent, requestID string) []api.LockEvent {
	if !isHold(row.Kind) {
		var f foundEvent
		_ = json.Unmarshal([]byte(row.Event), &f)
		return []api.LockEvent{{At: milli(row.At), Kind: row.Kind, Rule: f.Rule, Severity: f.Severity, Summary: f.Summary}}
	}
	var h heldEvent
	_ = json.Unmarshal([]byte(row.Event), &h)
	end := api.LockEvent{
		At: milli(row.At), Kind: row.Kind, HeldMs: h.HeldMs, HeldIsMinimum: h.AtLeast, Renewals: h.Renewals, TokenDigest: h.Digest, Holder: h.Holder,
		RequestID: requestID,
	}
	if requestID != "" {
		end.Kind = kindForced
	}
	return append([]api.LockEvent{end}, begun(h)...)
}

// begun are the last renewal and the begin of a hold.
func begun(h heldEvent) []api.LockEvent {
	var out []api.LockEvent
	if h.Renewals > 0 && !h.LastRenewal.IsZero() {
		out = append(out, api.LockEvent{At: milli(h.LastRenewal), Kind: kindRenewed, Renewals: h.Renewals, TokenDigest: h.Digest, Holder: h.Holder})
	}
	if !h.Began.IsZero() {
		out = append(out, api.LockEvent{At: milli(h.Began), Kind: kindAcquired, TokenDigest: h.Digest, Holder: h.Holder})
	}
	return out
}

// lasting are the events of a hold that is not over.
func lasting(l locksteward.Lock) []api.LockEvent {
	h := heldEvent{Digest: l.TokenDigest, Holder: api.NewHolder(l.Holder)}
	h.Began, _ = begin(l)
	h.Renewals, h.LastRenewal = renewals(l)
	return begun(h)
}

func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

var _ console.Past = (*Agent)(nil)
