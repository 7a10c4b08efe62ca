package scanner

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// isNews reports whether a reading should not wait for the end of the sweep: it saw an unknown lock or hold, a TTL that
// is gone, or a lock whose next verdict is due. While no watch runs deadlines are not kept, and every reading is news.
// t.mu is held.
func (t *Table) isNews(l *lockState) bool {
	e := t.entries[l.key]
	if e == nil || !sameHold(&e.lockState, l) || l.ttl == locksteward.NoExpiry && e.ttl != locksteward.NoExpiry {
		return true
	}
	return !t.deadlines.on || e.asked != 0 && e.asked <= time.Now().UnixMicro()
}

// keep packs the readings of a part and returns copies of those that are news, with
// heartbeats and waiters as they were known before: these are not read yet. Unless early is
// set nothing is news.
func (t *Table) keep(p *sweptPart, readings []source.Reading, early bool) []reading {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var news []reading
	for i := range readings {
		r := &readings[i]
		l := lockStateOf(*r.Lock, r.WaitersApart)
		l.traits = p.traitSet.of(*l.traits)
		e := t.entries[l.key]
		if e != nil {
			l.shareFresh(&e.lockState)
		}
		if int(r.Number) < len(p.locks) {
			p.locks[r.Number] = l
		} else {
			p.locks = append(p.locks, l)
		}
		if len(r.Waiters) > 0 {
			p.waiters[r.Number] = r.Waiters
		} else {
			delete(p.waiters, r.Number)
		}
		if !early || !t.isNews(&l) {
			continue
		}
		if id := l.holderInstance(); id != "" {
			l.instance = t.lastInstance(l.key, id)
		}
		if l.traits.waitersApart {
			l.waiters = -1
			if e != nil {
				l.waiters = e.waiters
			}
		}
		news = append(news, reading{key: l.key, lock: new(l), at: l.at})
	}
	return news
}

// deliver applies readings to the table and passes the update to Options.Found.
func (s *Scanner) deliver(ctx context.Context, b source.Batch, news []reading) {
	var losses []locksteward.Loss
	for i := range b.Readings {
		losses = append(losses, b.Readings[i].Losses...)
	}
	s.order.Lock()
	defer s.order.Unlock()
	update, _ := s.applyReadings(b, news, losses, false)
	if len(update.Locks) > 0 {
		s.found(ctx, update)
	}
	s.stall.progress()
}
