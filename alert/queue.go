package alert

import (
	"time"

	"github.com/locksteward/locksteward"
)

// maxBatch bounds the findings of one message: what waits together is told
// together, and a message stays of a size that receivers take.
const maxBatch = 50

type queued struct {
	t  locksteward.Transition
	fp string
	at time.Time // when it was queued, by the agent's clock
}

// told is what a receiver is known to know of a finding.
type told int

const (
	toldFire told = iota + 1 // a fire arrived
	toldNone                 // a fire was given up and certainly did not arrive
)

// door is what became of a finding's fires at the queue's door since its last
// resolve.
type door int

const (
	doorOpen door = iota + 1 // at least one was queued
	doorShut                 // all were turned away
)

// refusal is how many transitions did not get into the queue.
type refusal struct {
	full, closed, noFire int
}

// enqueue takes what fits.
func (r *receiver) enqueue(transitions []locksteward.Transition) (no refusal) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range transitions {
		firing := t.Finding.Status == locksteward.StatusFiring
		if !firing && t.Finding.Status != locksteward.StatusResolved {
			continue
		}
		fp := t.Finding.Fingerprint()
		before := r.door[fp]
		limit := r.queueSize
		if !firing {
			delete(r.door, fp)
			if before == doorShut {
				no.noFire++
				continue
			}
			// A lost resolve leaves an alert open for ever, so there is room for
			// the resolve of every fire that fitted.
			limit *= 2
		}
		switch {
		case r.closed:
			no.closed++
		case len(r.queue) >= limit:
			no.full++
			if firing && before != doorOpen {
				r.door[fp] = doorShut
			}
		default:
			r.queue = append(r.queue, queued{t: t, fp: fp, at: now})
			if firing {
				r.door[fp] = doorOpen
			}
		}
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return no
}

// take removes the longest run of transitions from the head that have one
// status and different findings. skipped are resolves that the receiver must not
// see because it never saw their fire.
func (r *receiver) take() (batch []queued, skipped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]bool)
	n := 0
	for _, q := range r.queue {
		if q.t.Finding.Status == locksteward.StatusResolved && r.told[q.fp] == toldNone {
			delete(r.told, q.fp)
			skipped++
			n++
			continue
		}
		if len(batch) > 0 && (q.t.Finding.Status != batch[0].t.Finding.Status || seen[q.fp] || len(batch) == maxBatch) {
			break
		}
		batch = append(batch, q)
		seen[q.fp] = true
		n++
	}
	clear(r.queue[:n])
	r.queue = r.queue[n:]
	if len(r.queue) == 0 {
		r.queue = nil // gives the memory of a storm back
	}
	return batch, skipped
}

// closeIfEmpty refuses what comes from now on if nothing is queued, and says
// whether that is so.
func (r *receiver) closeIfEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) > 0 {
		return false
	}
	r.closed = true
	return true
}

// abandon closes the queue and returns how many transitions were left in it.
func (r *receiver) abandon() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	n := len(r.queue)
	r.queue = nil
	return n
}

// settle remembers what the receiver knows after a message arrived or was given
// up.
func (r *receiver) settle(m message, arrived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fp := range m.fps {
		switch {
		case m.status == locksteward.StatusResolved:
			delete(r.told, fp)
		case arrived:
			r.told[fp] = toldFire
		case !m.reached && r.told[fp] != toldFire:
			r.told[fp] = toldNone
		}
	}
}

// depth returns how many transitions wait and since when the oldest does.
func (r *receiver) depth() (n int, oldest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = len(r.queue)
	if r.sending > 0 {
		return n + r.sending, r.sendingSince
	}
	if n > 0 {
		oldest = r.queue[0].at
	}
	return n, oldest
}
