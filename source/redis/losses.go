package redis

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
)

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
	loss := locksteward.Loss{Claim: claim, Holder: holder, Deadline: claim.Deadline()}
	switch {
	case m.Offered > 0:
		loss.How, loss.Deadline = locksteward.EndedLapsed, time.UnixMilli(m.Offered)
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
	switch {
	case m.Lost.Offered:
		loss.How = locksteward.EndedLapsed
	case m.Acquired > 0 && m.Acquired < m.Lost.Deadline:
		// The next one got the lock before the lease had run out.
		loss.How = locksteward.EndedDeleted
	}
	return loss
}
