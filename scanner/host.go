package scanner

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// host is the scanner as its source sees it ([source.Host]).
type host struct{ s *Scanner }

func (h host) Target() locksteward.Target                       { return h.s.target }
func (h host) Throttle() *source.Throttle                       { return h.s.throttle }
func (h host) Len() int                                         { return h.s.table.Len() }
func (h host) ClockOffset(node string) time.Duration            { return h.s.table.offset(node) }
func (h host) SetClockOffset(node string, offset time.Duration) { h.s.table.clock(node, offset) }
func (h host) ClockRead(node string, now, began, ended time.Time) {
	h.s.table.clockBetween(node, now, began, ended)
}
func (h host) SetLine(node, line string)                    { h.s.table.onLine(node, line) }
func (h host) Lost(node string, at time.Time, ordered bool) { h.s.table.flush(node, at, ordered) }
func (h host) Alive()                                       { h.s.stall.progress() }
func (h host) RequestSweep()                                { h.s.requestSweep() }

func (h host) Lookup(name string) (source.Known, bool) {
	t := h.s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.entries[name]
	if !ok {
		return source.Known{}, false
	}
	return e.known(), true
}

func (h host) Each(yield func(source.Known)) {
	t := h.s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.entries {
		yield(e.known())
	}
}

func (e *entry) known() source.Known {
	return source.Known{
		Name: e.key, Type: e.traits.typ, Library: e.traits.library, TooLarge: e.traits.tooLarge,
		At: e.at, ExpireAt: e.expireAt, Waiters: e.waiters,
	}
}

// Apply passes an update of the watch on, unless nothing changed.
func (h host) Apply(ctx context.Context, b source.Batch) {
	s := h.s
	s.order.Lock()
	defer s.order.Unlock()
	update, _ := s.apply(b, false)
	if len(update.Endings) > 0 {
		update.Events = s.table.flushes()
	}
	if len(update.Locks)+len(update.Endings)+len(update.Losses) > 0 {
		s.watchSink(ctx, update)
	}
}
