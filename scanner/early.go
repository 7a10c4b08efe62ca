package scanner

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// readWithin is how long a key that may be a lock waits for others before it is looked at, where locks are handed on
// before the sweep ends.
const readWithin = 200 * time.Millisecond

// readIfWaiting reads the queued keys if the first has waited for readWithin.
func (p *pass) readIfWaiting(ctx context.Context) error {
	if p.s.found == nil || len(p.todo) == 0 || time.Since(p.todoSince) < readWithin {
		return nil
	}
	return p.readTodo(ctx)
}

// isNews reports whether a reading should not wait for the end of the sweep: it saw an unknown lock or hold, a TTL that
// is gone, or a lock whose next verdict is due. While no watch runs deadlines are not kept, and every reading is news.
func (p *pass) isNews(s *keyReading) bool {
	if s.last == nil || !sameHold(&s.last.lockState, s.lock) || s.lock.ttl == locksteward.NoExpiry && s.last.ttl != locksteward.NoExpiry {
		return true
	}
	t := p.s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.deadlines.on {
		return true
	}
	e := t.entries[s.key]
	return e != nil && e.asked != 0 && e.asked <= time.Now().UnixMicro()
}

// deliver applies readings to the table and passes the update to Options.Found. Heartbeats and waiters are not read yet
// and stay as they were.
func (p *pass) deliver(ctx context.Context, news []*keyReading) {
	if len(news) == 0 {
		return
	}
	s := p.s
	s.order.Lock()
	defer s.order.Unlock()
	s.table.asKnown(news)
	update, _ := s.applyReadings(p.master.Addr, p.inspectedAt, news, false)
	if len(update.Locks) > 0 {
		s.found(ctx, update)
	}
	s.stall.progress()
}

// asKnown fills in heartbeats and waiters as they were known before.
func (t *Table) asKnown(results []*keyReading) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, s := range results {
		if id := s.lock.holderInstance(); id != "" {
			s.lock.instance = t.lastInstance(s.key, id)
		}
		if s.lock.traits.library == formats.Locksteward {
			s.lock.waiters = -1
			if e := t.entries[s.key]; e != nil {
				s.lock.waiters = e.waiters
			}
		}
	}
}
