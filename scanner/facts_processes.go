package scanner

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// Bounds of what is remembered of processes.
const (
	// forgetProcess is after how long one is forgotten that neither beats nor is
	// named by a lock.
	forgetProcess = 10 * time.Minute
	maxProcesses  = 20_000
)

// deletedSlack is how long before its expiry a heartbeat must be gone to count as
// deleted: a round trip lies between the reads of its TTL and of the time.
const deletedSlack = time.Second

// processes are what is known of the processes that use the lock library, by
// id.
type processes map[string]*process

// process is one of them.
type process struct {
	// instance is its last heartbeat.
	instance locksteward.Instance
	lastUse  time.Time // agent's clock

	missing row // that missed its heartbeat
	quiet   row // the end of that: that did not find it connected either
	deleted bool
}

// row is looks in a row; looks is 0 while there is none.
type row struct {
	looks int
	since time.Time // server time
	clock time.Time // agent's clock
}

// more counts a look.
func (r *row) more(h heartbeats) {
	if r.looks == 0 {
		r.since, r.clock = h.at, h.clock
	}
	r.looks++
}

// lasts is how long it has been, by the slower of the two clocks.
func (r *row) lasts(h heartbeats) time.Duration {
	return max(0, min(h.at.Sub(r.since), h.clock.Sub(r.clock)))
}

// heartbeats are those that one sweep read.
type heartbeats struct {
	at      time.Time // server time
	clock   time.Time // agent's clock
	alive   map[string]*locksteward.Instance
	unknown map[string]bool // could not be read
	broken  func(id string) bool
	// listeners are who is subscribed to the channel of a silent process, by id; not
	// there: not known.
	listeners map[string]int
}

// seeAlive takes the heartbeats that are there. It says whether one declares a slot
// that was not known. now is the agent's clock.
func (ps processes) seeAlive(alive map[string]*locksteward.Instance, now time.Time) (slotted bool) {
	for id, i := range alive {
		p, ok := ps[id]
		if !ok {
			if len(ps) >= maxProcesses {
				continue
			}
			p = &process{}
			ps[id] = p
		}
		slotted = slotted || i.Slot != "" && p.instance.Slot != i.Slot
		*p = process{instance: *i, lastUse: now}
		p.instance.Counts = nil
	}
	for id, p := range ps {
		if now.Sub(p.lastUse) > forgetProcess {
			delete(ps, id)
		}
	}
	return slotted
}

// silent returns those of ids whose heartbeat is not there, in their order.
func (ps processes) silent(ids []string, h heartbeats) []locksteward.MissingHeartbeat {
	var out []locksteward.MissingHeartbeat
	for _, id := range ids {
		if h.alive[id] != nil {
			continue
		}
		p, ok := ps[id]
		if !ok {
			if len(ps) >= maxProcesses {
				continue
			}
			p = &process{instance: locksteward.Instance{ID: id}}
			ps[id] = p
		}
		p.lastUse = h.clock
		if h.unknown[id] {
			p.missing, p.quiet, p.deleted = row{}, row{}, false
			continue
		}
		listeners, known := h.listeners[id]
		if !known {
			listeners = -1
		}
		p.missed(h, h.broken(id))
		r := p.proofOf(h, listeners)
		out = append(out, locksteward.MissingHeartbeat{
			Instance:  p.instance,
			Since:     r.since,
			For:       r.lasts(h),
			Looks:     r.looks,
			Deleted:   p.deleted,
			Listeners: listeners,
			Successor: ps.successor(p, h.alive),
		})
	}
	return out
}

// missed counts a look that did not find the heartbeat.
func (p *process) missed(h heartbeats, broken bool) {
	if broken || p.missing.looks == 0 || h.at.Before(p.missing.since) {
		p.missing, p.quiet = row{}, row{}
		// It had time left by its own TTL when it was seen last, and nothing
		// happened to the server since.
		left := p.instance.Beat.Add(record.HeartbeatTTL).Sub(h.at)
		p.deleted = !broken && !p.instance.Beat.IsZero() && left > deletedSlack
	}
	p.missing.more(h)
}

// proofOf takes in who listens for the process, and returns the row that its silence
// is. One that is connected lives, even if its heartbeat was deleted: it writes another,
// which may be gone again at the next look. And a process deletes its heartbeat when its
// connections are closed.
func (p *process) proofOf(h heartbeats, listeners int) *row {
	if listeners != 0 {
		p.quiet, p.deleted = row{}, false
		return &p.missing
	}
	p.quiet.more(h)
	return &p.quiet
}

// successor is a live process in the same declared slot that was started after
// the last heartbeat of p. One that was started before it lived beside p: the
// slot is not what it claims to be, or both are of one process.
func (ps processes) successor(p *process, alive map[string]*locksteward.Instance) *locksteward.Instance {
	if p.instance.Slot == "" || p.instance.Beat.IsZero() {
		return nil
	}
	var found *locksteward.Instance
	for id, i := range alive {
		if id == p.instance.ID || i.Slot != p.instance.Slot || i.App != p.instance.App || !i.Started.After(p.instance.Beat) {
			continue
		}
		if found == nil || i.Started.Before(found.Started) {
			found = i
		}
	}
	if found == nil {
		return nil
	}
	copied := *found
	copied.Counts = nil
	return &copied
}
