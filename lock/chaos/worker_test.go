package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
	"github.com/locksteward/locksteward/lock"
)

// worker takes locks over and over, writes under them, and records what it saw.
type worker struct {
	name   string
	client *lock.Client
	ledger *ledger
	rec    *lockcheck.Recorder
	locks  []string
	ttl    time.Duration
	// hold is how long to keep a lock; 0 draws it.
	hold time.Duration
	// patient waits in one acquire for as long as it takes.
	patient bool
	// rude goes on writing without a look at its context, as code does that was
	// never told of it.
	rude bool
	rng  *rand.Rand
	// taken counts acquisitions, across workers.
	taken *atomic.Int64

	watch sync.Once
	// asked is the acquisition id of the last acquire that ended.
	asked atomic.Value
}

// run works until ctx ends, and releases what it holds then.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.cycle(ctx)
		idle(ctx, time.Duration(w.rng.IntN(4000))*time.Microsecond)
	}
}

// idle waits for d or the end of ctx.
func idle(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (w *worker) cycle(ctx context.Context) {
	h, hold := w.acquire(ctx)
	if h == nil {
		return
	}
	work := w.hold
	if work == 0 {
		work = time.Duration(w.rng.Int64N(int64(w.ttl / 10)))
		if w.rng.IntN(12) == 0 {
			work = w.ttl * 3 / 2 // needs renewals
		}
	}
	done := time.Now().Add(work)
	for {
		before := hold.Until
		if !look(h, &hold) && !w.rude {
			break
		}
		if hold.Until != before {
			w.rec.Hold(hold)
		}
		w.rec.Wrote(w.ledger.write(context.WithoutCancel(ctx), hold))
		left := time.Until(done)
		if left <= 0 || ctx.Err() != nil {
			break
		}
		idle(ctx, min(left, w.ttl/20))
	}
	w.release(ctx, h, hold)
}

// acquire takes a lock; nil if it could not.
func (w *worker) acquire(ctx context.Context) (*lock.Handle, lockcheck.Hold) {
	key := w.locks[w.rng.IntN(len(w.locks))]
	lease := lock.Lease{TTL: w.ttl, Wait: w.ttl}
	take, try := w.client.Acquire, false
	if w.patient {
		lease.Wait = 0
	} else if w.rng.IntN(4) == 0 {
		take, try = w.client.TryAcquire, true
	}
	w.watch.Do(func() { w.client.Observe(w.ended) })
	queued := !try
	w.asked.Store("")
	invoked := lockcheck.Now()
	h, err := take(ctx, key, lease)
	returned := lockcheck.Now()
	if err != nil {
		a := attempt(key, w.name, invoked, returned, err)
		a.ID, a.Queued = w.asked.Load().(string), queued
		w.rec.Attempt(a)
		return nil, lockcheck.Hold{}
	}
	hold := lockcheck.Hold{
		Lock: key, ID: h.ID(), Client: w.name, Fence: h.Fence(), Invoked: invoked, Acquired: returned,
		Queued: queued,
	}
	look(h, &hold)
	w.rec.Hold(hold)
	if w.taken != nil {
		w.taken.Add(1)
	}
	return h, hold
}

// ended notes which acquisition an acquire was for. The client tells before the
// acquire returns; a worker makes one at a time.
func (w *worker) ended(e lock.Event) {
	switch e.Kind {
	case lock.EventAcquired, lock.EventHeld, lock.EventAcquireFailed:
		w.asked.Store(e.ID)
	}
}

// attempt is the record of an acquire that failed with err.
func attempt(key, client string, invoked, returned int64, err error) lockcheck.Attempt {
	a := lockcheck.Attempt{
		Lock: key, Client: client, Invoked: invoked, Returned: returned,
		Outcome: lockcheck.Unknown, Err: err.Error(),
	}
	// Behind any other error a copy of the request may have gone through.
	if held, ok := errors.AsType[*lock.HeldError](err); ok {
		a.Outcome, a.Holder = lockcheck.Held, held.Holder.ID
		if held.Queued {
			a.Outcome = lockcheck.Queued
		}
	}
	return a
}

// look asks the handle whether it still has its lock, and notes the answer.
func look(h *lock.Handle, hold *lockcheck.Hold) bool {
	// Read before the handle reads it: the end of the lease is then noted a
	// little too early, never too late.
	before := lockcheck.Now()
	if left := h.Validity(); left > 0 {
		hold.Until = max(hold.Until, before+int64(left))
		return true
	}
	if hold.LossSeen == 0 {
		hold.LossSeen = lockcheck.Now()
	}
	return false
}

func (w *worker) release(ctx context.Context, h *lock.Handle, hold lockcheck.Hold) {
	look(h, &hold)
	hold.ReleaseSent, hold.Outcome = lockcheck.Now(), lockcheck.Unknown
	w.rec.Hold(hold) // so that who kills us knows that it was on its way
	err := h.Release(context.WithoutCancel(ctx))
	hold.ReleaseDone = lockcheck.Now()
	switch {
	case err == nil:
		hold.Outcome = lockcheck.Released
	case errors.Is(err, lock.ErrLost):
		hold.Outcome = lockcheck.Lost
	}
	w.rec.Hold(hold)
}
