package alert

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// deliveryState is what one receiver is known to have received since the start of the
// agent. It is ahead of the outbox, which learns of a delivery after it.
type deliveryState struct {
	mu sync.Mutex
	// fires tells by fingerprint whether a fire arrived or (false) certainly did not.
	// Without an entry it counts as arrived: a resolve too many closes nothing.
	fires    map[string]bool
	missed   map[string]int         // attempts that certainly did not arrive, by notification
	resolved map[string]resolvedEnd // the resolvedCache: ends that arrived, by fingerprint
}

// resolvedEnd is the end of a finding that a receiver was notified of.
type resolvedEnd struct {
	at    time.Time // of the event
	noted time.Time
}

// outgoing is a notification with its payload, which is decoded once.
type outgoing struct {
	id      string
	body    []byte
	payload Payload
	err     error // why the body cannot be decoded
}

func newOutgoing(id string, body []byte) outgoing {
	o := outgoing{id: id, body: body}
	o.payload, o.err = payloadOf(body)
	return o
}

// subject is what a notification is about, for decisions on its delivery.
type subject struct {
	// fires are the fingerprints of findings whose first fire it lists; raises have a new
	// severity.
	fires, raises, resolves []string
	rules                   []string
	// request is the release request that it asks somebody to decide on; "" for all
	// other notifications.
	request string
}

func (o outgoing) subject() subject {
	p := o.payload
	if needsDecision(p.Type) && p.Release != nil && p.Release.Request != nil && !p.Loud {
		return subject{request: p.Release.Request.ID}
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

// neverFired reports whether a notification only resolves findings of which every
// fire was given up and none arrived.
func (d *deliveryState) neverFired(s subject) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(s.resolves) > 0 && len(s.fires) == 0 && len(s.raises) == 0 && !slices.ContainsFunc(s.resolves, func(id string) bool {
		arrived, known := d.fires[id]
		return arrived || !known
	})
}

// attemptFailed records why an attempt failed.
func (d *deliveryState) attemptFailed(id string, why Reason) {
	if !why.certainlyMissed() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.missed == nil {
		d.missed = map[string]int{}
	}
	d.missed[id]++
}

// delivered records that a notification arrived.
func (d *deliveryState) delivered(id string, s subject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.missed, id)
	for _, print := range slices.Concat(s.fires, s.raises) {
		d.setFire(print, true)
	}
	d.endFires(s)
}

// givenUp records that a notification was given up.
func (d *deliveryState) givenUp(n locksteward.Notification, s subject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// Attempts of another process may have arrived.
	certain := d.missed[n.ID] == n.Attempts
	delete(d.missed, n.ID)
	for _, print := range s.fires {
		if certain && !d.fires[print] {
			d.setFire(print, false)
		}
	}
	d.endFires(s)
}

// forget drops the fires of findings that a notification resolves.
func (d *deliveryState) forget(s subject) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endFires(s)
}

// reset drops everything: another process may have delivered since.
func (d *deliveryState) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fires, d.missed, d.resolved = nil, nil, nil
}

// endFires expects the caller to hold d.mu.
func (d *deliveryState) endFires(s subject) {
	for _, print := range s.resolves {
		delete(d.fires, print)
	}
}

// setFire expects the caller to hold d.mu.
func (d *deliveryState) setFire(print string, arrived bool) {
	if d.fires == nil {
		d.fires = map[string]bool{}
	}
	d.fires[print] = arrived
}

// noteResolved records which findings a delivered payload resolves or fires again.
func (d *deliveryState) noteResolved(p Payload, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range p.Findings {
		if e.Status != string(locksteward.StatusResolved) {
			delete(d.resolved, e.Fingerprint)
			continue
		}
		if d.resolved == nil {
			d.resolved = map[string]resolvedEnd{}
		}
		d.resolved[e.Fingerprint] = resolvedEnd{e.At, now}
	}
}

// resolvedSince reports whether the receiver was notified that a finding ended at or
// after a time.
func (d *deliveryState) resolvedSince(fingerprint string, at time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.resolved[fingerprint]
	return ok && !at.After(e.at)
}

// forgetResolved drops ends that were noted before a pass over all firing findings and
// are not among those that the outbox still lists as firing.
func (d *deliveryState) forgetResolved(before time.Time, listed map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.resolved, func(id string, e resolvedEnd) bool { return e.noted.Before(before) && !listed[id] })
}
