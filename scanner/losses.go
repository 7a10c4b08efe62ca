package scanner

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
)

// lossKey names one lost hold.
type lossKey struct{ key, id string }

// lossesOf returns the losses that s proves: metadata whose hold is gone, and
// what a successor's metadata says of the hold before it.
func lossesOf(s *keyReading, target locksteward.Target, node string) []locksteward.Loss {
	m := s.meta.record
	if m == nil || s.as == unread {
		return nil
	}
	var out []locksteward.Loss
	if s.lost {
		if loss, ok := orphaned(s, m); ok {
			out = append(out, loss)
		}
	} else if m.Lost != nil && m.Lost.ID != "" {
		out = append(out, superseded(s, m))
	}
	for i := range out {
		out[i].Target, out[i].DB, out[i].Node, out[i].Key = target.Name, target.DB, node, s.key
		out[i].Class = s.match.Class
		if out[i].Class == "" {
			out[i].Class = class.Default
		}
		out[i].At = s.at
	}
	return out
}

// orphaned is metadata that outlived its lock.
func orphaned(s *keyReading, m *record.Meta) (locksteward.Loss, bool) {
	claim, holder, ok := asItStood(s.key, m)
	if !ok {
		return locksteward.Loss{}, false
	}
	loss := locksteward.Loss{Claim: claim, Holder: holder, Deadline: deadline(claim)}
	switch {
	case s.as == there:
		loss.How = locksteward.EndedReplaced
	case !loss.Deadline.IsZero() && s.at.Before(loss.Deadline):
		loss.How = locksteward.EndedDeleted
	default:
		loss.How = locksteward.EndedExpired
	}
	return loss, true
}

// superseded is the hold before this one, as the acquire found it.
func superseded(s *keyReading, m *record.Meta) locksteward.Loss {
	loss := locksteward.Loss{
		Claim:    locksteward.Claim{ID: m.Lost.ID, Fence: m.Lost.Fence},
		Holder:   locksteward.Holder{Instance: m.Lost.Holder},
		Deadline: time.UnixMilli(m.Lost.Deadline),
		How:      locksteward.EndedExpired,
	}
	if m.Lost.Deadline <= 0 {
		loss.Deadline = time.Time{}
	}
	if m.Acquired > 0 && m.Acquired < m.Lost.Deadline {
		// The next one got the lock before the lease had run out.
		loss.How = locksteward.EndedDeleted
	}
	return loss
}

// lossByFlush is a hold of ours that a flush took with its metadata. Only the watch
// may say so: it would have told of a release before. Sweeps repeat it for as long as
// they would meet its metadata. The table is locked.
func (t *Table) lossByFlush(e *entry, at time.Time) locksteward.Loss {
	l := e.lock(t.target)
	loss := locksteward.Loss{
		Target: t.target.Name, DB: t.target.DB, Node: l.Node, Key: l.Key, Class: l.Class, At: at,
		Claim: *l.Claim, Holder: l.Holder, Instance: l.Instance, Deadline: deadline(*l.Claim), How: locksteward.EndedDeleted,
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
		} else if _, told := losses[key]; !told {
			loss.At, loss.Instance = at, nil
			losses[key] = loss
		}
	}
}

// deadline returns when the lease of a claim runs out, zero if it does not say.
func deadline(c locksteward.Claim) time.Time {
	if c.Renewed.IsZero() || c.TTL == 0 {
		return time.Time{}
	}
	return c.Renewed.Add(c.TTL)
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
		end.How = locksteward.EndedReleased
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
