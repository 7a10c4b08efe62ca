package scanner

import (
	"iter"
	"time"

	"github.com/locksteward/locksteward"
)

// applyAtOnce is how many readings are applied before others may read the table.
const applyAtOnce = 2000

// reading is what the reading of one key came to.
type reading struct {
	key  string
	lock *lockState // nil: there is no lock
	at   int64      // server time, µs
	// gone says that there is no such key; else it holds a lock, or something that is not a lock.
	gone bool
}

// batch is what was read of some keys of one master, with the evidence by which endings
// are judged. Which of its parts are set depends on who read: a sweep knows the server's
// counters and identity, the watch and a recheck know what the server pushed meanwhile.
type batch struct {
	node  string
	began time.Time // when reading began, by our clock
	// readings is consumed with the table locked.
	readings iter.Seq[reading]
	about    int // how many readings there are, roughly
	// losses are the holds of which metadata proves that they ended without a release.
	losses map[lossKey]locksteward.Loss
	// keepGone leaves holds whose keys are gone to the next sweep.
	keepGone bool
	sweep    *sweepEvidence // nil unless a sweep read
}

// sweepEvidence is what a sweep knows of a server beside its keys.
type sweepEvidence struct {
	number uint32 // of the sweep
	// lostKeys says that the server lost keys since the sweep before: it evicted or
	// flushed some, or another process answers.
	lostKeys bool
	// until is the last moment (µs) at which another server or process had the data at
	// the address; 0 for none.
	until int64
	flush *flushWindow
	// suspects asks for the keys that changed since the sweep before, which changed gets.
	suspects bool
	changed  []string
	// stood is how many holds were found that another process's data had.
	stood int
}

// change is what one reading changed.
type change struct {
	// lock is the lock as it is known now; nil if there is none. A sweep, which reads its
	// locks later, has now in its place: nil also if it has that lock already.
	lock  *locksteward.Lock
	now   *entry
	ended *locksteward.Ending
	// loss is a hold of ours that a flush took, which nothing else reports.
	loss *locksteward.Loss
	// unread is a key to be read again, since the reading may be too old to count.
	unread string
}

// apply takes readings into the table and returns what each of them changed, in their
// order. It alone decides whether a hold is the same, was renewed or replaced, is gone,
// or is no lock any more: by the time of the reading, the evidence of the batch, and the
// flushes and restarts that the table knows of. Where these leave a doubt the lock is
// alive.
func (t *Table) apply(b *batch) []change {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes := make([]change, 0, b.about)
	for r := range b.readings {
		changes = append(changes, t.applyOne(b, &r))
		if len(changes)%applyAtOnce == 0 {
			t.mu.Unlock() // readers of the table need not wait for all of it
			t.mu.Lock()
		}
	}
	return changes
}

// applyOne applies one reading. t.mu is held.
func (t *Table) applyOne(b *batch, r *reading) (c change) {
	if r.lock != nil {
		r.lock.traits = t.traitSet.of(*r.lock.traits)
	}
	before := t.entries[r.key]
	if b.sweep != nil && r.lock != nil && (before != nil && r.at >= before.at || before == nil && !t.hasTombstone(r.lock)) {
		b.sweep.suspect(r.key, before, r.lock, r.at, t.tolerance)
	}
	now, ended := t.decide(b, r)
	switch {
	case ended != nil:
		t.ends(b, r, ended, &c)
	case before == nil || now == nil:
	case b.sweep != nil:
		b.sweep.stands(before, r.at)
	case now != before: // else something newer is known
		t.outlived(before, b.began)
	}
	if r.lock != nil && now == nil && t.tombstones.before > 0 {
		c.unread = r.key
	}
	switch {
	case now == nil:
	case b.sweep == nil:
		c.lock = new(now.lock(t.target))
	case now.turn != b.sweep.number: // else two masters have it, since it moved
		now.turn = b.sweep.number
		c.now = now
	}
	return c
}

// stands counts a known hold that a reading at at found.
func (s *sweepEvidence) stands(e *entry, at int64) {
	s.flush.stands(e, at)
	if e.firstSeen <= s.until {
		s.stood++
	}
}

// suspect notes a change that the sweep found: old is nil if the lock was not known, and now
// is nil if it is gone.
func (s *sweepEvidence) suspect(key string, old *entry, now *lockState, at, tolerance int64) {
	if s.suspects && changedBetween(old, now, at, tolerance) {
		s.changed = append(s.changed, key)
	}
}

// changedBetween reports whether a key was written between two readings. That a
// lease ran out is no write.
func changedBetween(old *entry, now *lockState, at, tolerance int64) bool {
	switch {
	case old == nil:
		return now != nil
	case now == nil:
		return old.expireAt <= 0 || at/1000 < old.expireAt
	case !sameHold(&old.lockState, now):
		return true
	default:
		moved := now.expireAt - old.expireAt
		return moved > tolerance || moved < -tolerance
	}
}

// decide puts a reading into the table, unless something newer is known. It returns the
// lock as it is known now, nil for none, and the hold that is over, nil for none. t.mu is
// held.
//
// A sweep goes on in the entry of the same hold: no other sweep has it any more, and
// 100,000 copies would be as much again as the table. Other readings replace it by a
// copy, since a sweep that is being judged may have it.
func (t *Table) decide(b *batch, r *reading) (now, ended *entry) {
	old, known := t.entries[r.key]
	switch {
	case known && older(r.at, b.began, old):
		return old, nil
	case r.lock == nil:
		if b.sweep == nil {
			t.addTombstone(r.key, r.at)
		}
		if !known || b.keepGone {
			return nil, nil
		}
		t.drop(r.key)
		return nil, old
	case !known && t.hasTombstone(r.lock):
		return nil, nil
	case !known:
		t.isBack(r.lock)
		now = t.resume(begin(*r.lock))
	case sameHold(&old.lockState, r.lock):
		return t.goOn(old, r, b.sweep != nil), nil
	default:
		t.forgetRow(old)
		t.dropDue(old)
		if r.lock.idle < 0 && old.idle >= 0 {
			r.lock.idle = 0 // of a known key it is not asked; from here on it adds up
		}
		t.isBack(r.lock)
		now, ended = begin(*r.lock), old
		old.end()
	}
	t.entries[r.key] = now
	t.rank(ended.position(), now)
	t.setDue(now)
	return now, ended
}

// goOn continues the history of the hold of old, in place or in a copy. t.mu is held.
func (t *Table) goOn(old *entry, r *reading, inPlace bool) *entry {
	if inPlace && r.at == old.at {
		// The reading was applied before the sweep ended: what other keys tell is new.
		old.instance, old.waiters = r.lock.instance, r.lock.waiters
		return old
	}
	was, now := old.position(), old
	if !inPlace {
		r.lock.shareFresh(&old.lockState)
		now = new(*old)
		t.takePlace(now)
		t.entries[r.key] = now
		old.end()
	}
	now.stepBack(r.at)
	now.seen(*r.lock, t.tolerance)
	t.rank(was, now)
	t.setDue(now)
	return now
}

// ends says in c how the hold of e ended that r found to be over, by all that is known
// of the server. t.mu is held.
func (t *Table) ends(b *batch, r *reading, e *entry, c *change) {
	var (
		flushed = t.flushedSince(e)
		// Without the identity of its process, another address is another server, which
		// need not have what the one before it had.
		lostKeys = b.sweep == nil && b.node != e.traits.node
		until    int64
	)
	if b.sweep != nil {
		lostKeys, until = b.sweep.lostKeys, b.sweep.until
		b.sweep.flush.ends(e, r.at)
		if r.gone {
			b.sweep.suspect(r.key, e, nil, r.at, t.tolerance)
		}
	} else if flushed {
		t.countFlushed(e, r.at)
	}
	t.endsAt(e, b.node, r.at, until)
	if !r.gone {
		c.ended = &locksteward.Ending{Lock: e.lock(t.target), How: locksteward.EndedReplaced, At: fromMicros(r.at)}
		return
	}
	var lost *locksteward.Loss
	if e.claim != nil {
		if l, ok := b.losses[lossKey{e.key, e.claim.ID}]; ok {
			lost = &l
		}
	}
	end := endingOf(e, t.target, fromMicros(r.at), lost, lostKeys || flushed)
	if flushed && end.How == locksteward.EndedDeleted {
		end.By = t.flushed[e.traits.node].kind()
	}
	if flushed && b.sweep == nil && e.claim != nil && lost == nil {
		loss := t.lossByFlush(e, fromMicros(r.at))
		if t.flushed[e.traits.node].ordered {
			c.loss = &loss
		} // else the next sweep reports what the restart took, and these with it
	}
	c.ended = &end
}
