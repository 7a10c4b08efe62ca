package alert

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// inFlightSet are the notifications of a receiver that are being sent or whose outcome
// the outbox has not recorded. A claim can expire while a slow outbox records an
// outcome. The notification is not sent again for that: its next claim joins the entry
// that exists.
//
// A claim of the outbox and a question whether there was one exclude each other by a
// token, so that no mutex is held while the outbox is read.
type inFlightSet struct {
	claiming chan struct{} // holds a token while notifications are claimed, until they are in byID

	mu   sync.Mutex
	byID map[string]*inFlight
}

type inFlight struct {
	latest locksteward.Notification
	// claims counts the claims, acked is the claim whose outcome was recorded last.
	claims, acked int
}

func newInFlightSet() *inFlightSet {
	return &inFlightSet{claiming: make(chan struct{}, 1), byID: map[string]*inFlight{}}
}

// claim claims notifications from the outbox. It returns those that are to be sent, and
// how many were claimed.
func (f *inFlightSet) claim(ctx context.Context, from Outbox, receiver string, ttl time.Duration, limit int) (fresh []locksteward.Notification, claimed int, err error) {
	f.claiming <- struct{}{}
	defer func() { <-f.claiming }()
	got, err := from.Claim(ctx, receiver, ttl, limit)
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range got {
		entry, known := f.byID[n.ID]
		if !known {
			entry = &inFlight{}
			f.byID[n.ID] = entry
			fresh = append(fresh, n)
		}
		entry.latest = n
		entry.claims++
	}
	return fresh, len(got), nil
}

// latest returns the notification under its latest claim, and the number of that claim.
func (f *inFlightSet) latest(id string) (locksteward.Notification, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := f.byID[id]
	return entry.latest, entry.claims
}

// claimedSince reports whether there was a claim after the given one. It waits for a
// claim in progress.
func (f *inFlightSet) claimedSince(id string, claim int) bool {
	f.claiming <- struct{}{}
	defer func() { <-f.claiming }()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id].claims > claim
}

// acked records that the outbox has the outcome under a claim.
func (f *inFlightSet) acked(id string, claim int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byID[id].acked = claim
}

// done removes a notification, unless it was claimed again after its outcome was
// recorded: then it is returned and has to be sent again.
func (f *inFlightSet) done(id string) (again locksteward.Notification, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := f.byID[id]
	if entry.claims > entry.acked {
		return entry.latest, true
	}
	delete(f.byID, id)
	return locksteward.Notification{}, false
}
