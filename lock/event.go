package lock

import (
	"slices"
	"time"
)

// EventKind says what an [Event] is about.
type EventKind string

// Kinds of events. Each call of Acquire, TryAcquire or Do that was not refused
// before anything was sent (invalid, context ended, client closed) ends with
// exactly one of the first four.
const (
	EventAcquired      EventKind = "acquired"       // Took: how long it took
	EventReentered     EventKind = "reentered"      // the session had it already; Took: how long it took
	EventHeld          EventKind = "held"           // gave up since another has it; Took: how long it waited
	EventAcquireFailed EventKind = "acquire_failed" // Err: why

	EventRenewed        EventKind = "renewed"         // Took: round trip; Late: if its answer came late
	EventRenewFailed    EventKind = "renew_failed"    // Err: why; will be tried again
	EventLost           EventKind = "lost"            // Took: how long it was held; Err: a *LostError
	EventReleased       EventKind = "released"        // Took: how long it was held
	EventReleaseUnknown EventKind = "release_unknown" // Err: why; goes on in the background
	EventCleaned        EventKind = "cleaned"         // a lock of unknown outcome is gone
	EventCleanFailed    EventKind = "clean_failed"    // given up at the lock's TTL; Err: last error
	EventBeatFailed     EventKind = "beat_failed"     // heartbeat not written; Err: why
	EventPushFailed     EventKind = "push_failed"     // notifications of waiters or leaving the queue failed; waiters try again by themselves; Err: why
)

// Event is one thing that happened, for metrics and logs.
type Event struct {
	Kind  EventKind
	Key   string // lock; empty for heartbeat and push
	Class string
	ID    string // acquisition id
	Trace string // W3C traceparent of the lease
	Took  time.Duration
	// Late is how long after it was due a renewal had its answer, whatever took
	// that long: a process or machine that stalls, the network, the server,
	// attempts before it that failed. 0 for one that was late by at most a tenth of
	// the interval of renewals (10 ms at least), as jitter is anyway, and for an
	// Extend, which is never due.
	Late time.Duration
	// Contended says of the end of an acquire that another had the lock when it
	// looked first.
	Contended bool
	Err       error
}

// Observe adds an observer of what happens from now on, as Options.OnEvent is
// one. The returned function takes it away again; an event on its way may still
// reach it.
func (c *Client) Observe(f func(Event)) (stop func()) {
	add := &f
	c.change(func(list []*func(Event)) []*func(Event) { return append(list, add) })
	return func() {
		c.change(func(list []*func(Event)) []*func(Event) {
			return slices.DeleteFunc(list, func(o *func(Event)) bool { return o == add })
		})
	}
}

// change replaces the list of observers by a changed copy.
func (c *Client) change(f func([]*func(Event)) []*func(Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*func(Event)
	if old := c.observers.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = f(list)
	c.observers.Store(&list)
}

// took is what an event says that something took, if there is anybody to tell: reading
// the clock is a good part of what an event costs.
func (c *Client) took(began instant) time.Duration {
	if list := c.observers.Load(); c.opts.OnEvent == nil && (list == nil || len(*list) == 0) {
		return 0
	}
	return c.clock.now().mono - began.mono
}

// emit tells every observer.
func (c *Client) emit(e Event) {
	c.counts.note(&e)
	if c.opts.OnEvent != nil {
		c.opts.OnEvent(e)
	}
	if list := c.observers.Load(); list != nil {
		for _, f := range *list {
			(*f)(e)
		}
	}
}
