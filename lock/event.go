package lock

import (
	"context"
	"slices"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// EventKind says what an [Event] is about.
type EventKind string

// Kinds of events. Each call of Acquire, TryAcquire or Do that was not refused before anything was sent (invalid,
// context ended, client closed) ends with exactly one of the first four.
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
	// Late is how long after it was due a renewal had its answer, attempts before it that failed included. 0 for
	// one that was late by at most a tenth of the interval of renewals (10 ms at least), and for an Extend, which
	// is never due.
	Late time.Duration
	// Contended says of the end of an acquire that another had the lock when it looked first.
	Contended bool
	Err       error
}

// Observe has f called with what happens from now on, also in the background. It is called from many goroutines,
// without any lock held, and must return soon. The returned function ends that; an event on its way may still reach
// f.
func (c *Client) Observe(f func(Event)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append(slices.Clone(*c.observers.Load()), &f)
	c.observers.Store(&list)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		list := slices.DeleteFunc(slices.Clone(*c.observers.Load()), func(o *func(Event)) bool { return o == &f })
		c.observers.Store(&list)
	}
}

// took is what an event says that something took, if there are observers: reading the clock is a good part of what
// an event costs.
func (c *Client) took(began instant) time.Duration {
	if len(*c.observers.Load()) == 0 {
		return 0
	}
	return c.clock.now().mono - began.mono
}

// counted is what an event adds to the counts of the heartbeat.
var counted = map[EventKind]record.Counts{
	EventAcquired: {Acquired: 1}, EventHeld: {Failed: 1}, EventAcquireFailed: {Failed: 1},
	EventRenewed: {Renewed: 1}, EventRenewFailed: {RenewFailures: 1}, EventLost: {Lost: 1},
}

// emit calls every observer.
func (c *Client) emit(e Event) {
	if n, ok := counted[e.Kind]; ok {
		if e.Contended {
			n.Contended = 1
		}
		c.heart.Count(e.Class, n)
	}
	for _, f := range *c.observers.Load() {
		(*f)(e)
	}
}

// Tracer makes spans, for OpenTelemetry or whatever else an application uses; docs/lock.md has one of a few lines.
// It is called when an operation begins: "acquire", which includes the waiting, or "release". traceparent is the
// W3C traceparent of the new span, which goes into the lock's metadata if Lease.Trace is empty; "" for none. end is
// called once. A Tracer must be safe for concurrent use.
type Tracer func(ctx context.Context, op, key, class string) (traceparent string, end func(SpanEnd))

// SpanEnd is how an operation ended.
type SpanEnd struct {
	ID        string // acquisition id, "" for none
	Fence     int64
	Contended bool // another had the lock when it looked first
	Err       error
}

// maxTrace is the longest traceparent that is kept: a tracer must not make an acquire fail.
const maxTrace = 128

// trace begins the span of an operation.
func (c *Client) trace(ctx context.Context, op, key string, lease *Lease) func(*Handle, bool, error) {
	if c.opts.Tracer == nil {
		return func(*Handle, bool, error) {}
	}
	traceparent, end := c.opts.Tracer(ctx, op, key, lease.Class)
	if lease.Trace == "" && len(traceparent) <= maxTrace {
		lease.Trace = traceparent
	}
	return func(h *Handle, contended bool, err error) {
		e := SpanEnd{Contended: contended, Err: err}
		if h != nil {
			e.ID, e.Fence = h.ID(), h.Fence()
		}
		end(e)
	}
}
