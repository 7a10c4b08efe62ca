package alert

import (
	"context"
	"sync"
	"time"
)

// flights are the messages of a receiver that are being sent, or about which word is
// to be said. A claim ends while the outbox is slow to take that word; the message is
// not sent again for it: its next claim belongs to the flight that there is.
type flights struct {
	// claiming is held while messages are claimed, until they are known here.
	claiming sync.Mutex

	mu sync.Mutex
	by map[string]*flight // by message
}

type flight struct {
	latest Message
	// claims is how many came, said under which of them word was said last.
	claims, said int
}

// claim claims messages with from, and returns those that are to be sent, and how
// many came.
func (f *flights) claim(ctx context.Context, from Outbox, receiver string, ttl time.Duration, limit int) (fresh []Message, came int, err error) {
	f.claiming.Lock()
	defer f.claiming.Unlock()
	got, err := from.Claim(ctx, receiver, ttl, limit)
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range got {
		under, known := f.by[m.ID]
		if !known {
			under = &flight{}
			f.by[m.ID] = under
			fresh = append(fresh, m)
		}
		under.latest = m
		under.claims++
	}
	return fresh, len(got), nil
}

// latest is the message under its latest claim, and which claim that is.
func (f *flights) latest(id string) (Message, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	under := f.by[id]
	return under.latest, under.claims
}

// claimedSince is whether a claim came after that one. It waits for one under way.
func (f *flights) claimedSince(id string, claim int) bool {
	f.claiming.Lock()
	defer f.claiming.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by[id].claims > claim
}

func (f *flights) said(id string, claim int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by[id].said = claim
}

// land ends a flight, unless the message was claimed again after word was said: then
// it is to be sent again.
func (f *flights) land(id string) (Message, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	under := f.by[id]
	if under.claims > under.said {
		return under.latest, true
	}
	delete(f.by, id)
	return Message{}, false
}
