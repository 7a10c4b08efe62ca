package scanner

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// lossKey names one lost hold.
type lossKey struct{ key, id string }

// lossByFlush is a hold of ours that a flush took with its metadata. Only the watch
// may say so: it would have seen a release before. Sweeps repeat it for as long as
// they would meet its metadata. The table is locked.
func (t *Table) lossByFlush(e *entry, at time.Time) locksteward.Loss {
	l := e.lock(t.target)
	loss := locksteward.Loss{
		Target: t.target.Name, DB: t.target.DB, Node: l.Node, Key: l.Key, Class: l.Class, At: at,
		Claim: *l.Claim, Holder: l.Holder, Instance: l.Instance, Deadline: l.Claim.Deadline(), How: locksteward.EndedDeleted,
	}
	t.flushLost[lossKey{loss.Key, loss.Claim.ID}] = loss
	return loss
}

// repeatFlushed adds to losses those by a flush that a sweep at at repeats.
func (t *Table) repeatFlushed(losses map[lossKey]locksteward.Loss, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, loss := range t.flushLost {
		if at.Sub(loss.At) > record.Grace {
			delete(t.flushLost, key)
		} else if _, known := losses[key]; !known {
			loss.At, loss.Instance = at, nil
			losses[key] = loss
		}
	}
}

// endingOf says how a hold ended whose key a direct read found gone. lost is the
// loss that its metadata proves, nil if the metadata went too; taken says that
// the server lost keys since the lock was seen: another process answers, its data
// was flushed, or it evicted.
func endingOf(e *entry, target locksteward.Target, at time.Time, lost *locksteward.Loss, taken bool) locksteward.Ending {
	end := locksteward.Ending{Lock: e.lock(target), At: at}
	switch {
	case lost != nil:
		end.How = lost.How
	case e.claim != nil && at.Sub(fromMicros(e.lastSeen)) < record.Grace && !taken:
		// Metadata outlives a lock that expires: it went with the lock, so the
		// holder released it.
		end.How, end.ByHolder = locksteward.EndedReleased, true
	case e.ranOut(micros(at)):
		end.How = locksteward.EndedExpired
	case taken:
		end.How = locksteward.EndedDeleted
	default:
		// A lock that was seen renewed and is gone past the expiry last seen may
		// have been renewed again since: that is no sign of an expiry.
		end.How = locksteward.EndedReleased
	}
	return end
}
