package scanner

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// lookWithin is how long a key that may be a lock waits for others before it is looked at, where locks are handed on
// before the sweep ends.
const lookWithin = 200 * time.Millisecond

// lookSoon looks at the keys that have waited long enough.
func (p *pass) lookSoon(ctx context.Context) error {
	if p.s.found == nil || len(p.todo) == 0 || time.Since(p.todoSince) < lookWithin {
		return nil
	}
	return p.lookNow(ctx)
}

// isNews says that a look tells something that should not wait for the end of the sweep: a lock or a hold that is not
// known, an expiry that is gone, or a lock for whose verdict the time has come. While no watch runs nobody says when
// that is, so each look does.
func (p *pass) isNews(s *sight, l *look) bool {
	if s.last == nil || !sameHold(&s.last.look, l) || l.ttl == locksteward.NoExpiry && s.last.ttl != locksteward.NoExpiry {
		return true
	}
	t := p.s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.deadlines.on {
		return true
	}
	e := t.entries[l.key]
	return e != nil && e.asked != 0 && e.asked <= time.Now().UnixMicro()
}

// handOn takes looks into the table and hands them on to Options.Found. What other keys tell of the locks is not known
// yet: it stays as it was.
func (p *pass) handOn(ctx context.Context, news []watchGlance) {
	if len(news) == 0 {
		return
	}
	s := p.s
	batch := locksteward.Sweep{Target: s.target.Name, Started: p.looked, Duration: time.Since(p.looked)}
	s.order.Lock()
	defer s.order.Unlock()
	s.table.mu.Lock()
	for _, g := range news {
		if id := g.l.holderInstance(); id != "" {
			g.l.instance = s.lastInstance(g.l.key, id)
		}
		if g.shape.dialect == formats.Locksteward {
			g.l.waiters = -1
			if e := s.table.entries[g.l.key]; e != nil {
				g.l.waiters = e.waiters
			}
		}
		s.take(&batch, g)
	}
	s.table.mu.Unlock()
	if len(batch.Locks) > 0 {
		sortLocks(batch.Locks)
		s.found(ctx, batch)
	}
	s.stall.progress()
}
