package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/record"
)

// Acquire takes the lock key, waiting for it if another has it: it is woken by
// the release, and looks again at the end of the lease and every
// Options.PollInterval. The handle's context derives from ctx.
//
// Errors: [ErrInvalid] for bad arguments, before anything is sent; [ErrHeld] (a
// [*HeldError]) when ctx or Lease.Wait ended the waiting, and then also the
// cause of ctx; a [*ServerError] for an error reply; [ErrUnknown] when no reply
// came, [ErrTooLate] when it came too late (in both cases the lock, should it
// have been taken, is given back in the background); [ErrClosed].
func (c *Client) Acquire(ctx context.Context, key string, lease Lease) (*Handle, error) {
	return c.acquire(ctx, key, lease, c.wait)
}

// TryAcquire takes the lock key or says at once who has it. Errors are those of
// [Client.Acquire].
func (c *Client) TryAcquire(ctx context.Context, key string, lease Lease) (*Handle, error) {
	return c.acquire(ctx, key, lease, c.attempt)
}

// Do runs f while it holds the lock key, and releases it. f should do its work
// under the context it is given, which ends when the lock is lost, and hand the
// fence to what it writes to. The error joins that of f and, if the lock was
// lost before f returned, a [*LostError]: then f did not run alone to its end,
// whatever it says.
func (c *Client) Do(ctx context.Context, key string, lease Lease, f func(ctx context.Context, fence int64) error) (err error) {
	h, err := c.Acquire(ctx, key, lease)
	if err != nil {
		return err
	}
	defer func() {
		lost := h.Err()
		released := h.Release(ctx)
		if lost == nil {
			lost = released
		}
		err = errors.Join(err, lost)
	}()
	return f(h.Context(), h.Fence())
}

// request is one call of Acquire or TryAcquire: the same id in every attempt,
// so that a repeat of one that took effect finds itself.
type request struct {
	key   string
	lease Lease
	id    string
	value string
	keys  []string
	args  []any
	began instant

	// base is the earliest moment at which a lease that the server says was
	// taken before may have begun.
	base instant
	// contended says that another had the lock.
	contended bool
	// open says that the last attempt may have taken effect; stray that an
	// earlier one still may.
	open, stray bool
}

// verdict is a definite answer to an attempt.
type verdict struct {
	taken  bool
	sent   instant // a lease taken lasts from here
	fence  int64
	holder Holder
	left   time.Duration // of the lease of another; negative: no TTL
}

func (c *Client) acquire(
	ctx context.Context, key string, lease Lease,
	how func(context.Context, *request) (verdict, error),
) (*Handle, error) {
	if err := lease.validate(key, c.opts); err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", clip(key), err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", key, context.Cause(ctx))
	}
	if !c.enter() {
		return nil, fmt.Errorf("acquire lock %q: %w", key, ErrClosed)
	}
	defer c.wg.Done()
	c.begin()
	r := c.request(key, lease)
	v, err := how(ctx, r)
	took := time.Duration(c.clock.now().mono - r.began.mono)
	if err == nil && !v.taken {
		err = c.heldError(r, v, nil)
	}
	if err != nil {
		if r.open || r.stray {
			c.giveBack(r)
		}
		kind := EventAcquireFailed
		if errors.Is(err, ErrHeld) {
			kind = EventHeld
		}
		c.emit(Event{Kind: kind, Key: key, Class: lease.Class, ID: r.id, Trace: lease.Trace, Took: took, Contended: r.contended, Err: err})
		return nil, err
	}
	h, err := c.hold(ctx, r, v)
	if err != nil {
		c.giveBack(r)
		c.emit(Event{Kind: EventAcquireFailed, Key: key, Class: lease.Class, ID: r.id, Trace: lease.Trace, Took: took, Contended: r.contended, Err: err})
		return nil, err
	}
	c.emit(Event{Kind: EventAcquired, Key: key, Class: lease.Class, ID: r.id, Trace: lease.Trace, Took: took, Contended: r.contended})
	return h, nil
}

// giveBack frees what r took or may have taken: in the background, or before it
// returns when the client is being closed.
func (c *Client) giveBack(r *request) {
	if c.ctx.Err() == nil {
		c.clean(r.key, r.id, r.value, r.lease, 0, r.open || r.stray)
		return
	}
	kind, err := EventCleaned, c.free(context.Background(), min(c.opts.Timeout, time.Second), r.key, r.id, r.value, false)
	if _, ours := errors.AsType[notOurs](err); err != nil && !ours {
		kind = EventCleanFailed
	}
	c.emit(Event{Kind: kind, Key: r.key, Class: r.lease.Class, ID: r.id, Err: err})
}

// hold makes a handle of a lock that was taken, if it is still worth having.
func (c *Client) hold(ctx context.Context, r *request, v verdict) (*Handle, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", r.key, context.Cause(ctx))
	}
	until := v.sent.add(r.lease.TTL - drift(r.lease.TTL))
	now := c.clock.now()
	if now.until(until) < least(r.lease.TTL) {
		return nil, fmt.Errorf("acquire lock %q: %w: %s after the request, for a TTL of %s",
			r.key, ErrTooLate, now.mono-v.sent.mono, r.lease.TTL)
	}
	h := newHandle(ctx, c, r, v, until)
	if !c.add(h) {
		h.end(ErrClosed)
		return nil, fmt.Errorf("acquire lock %q: %w", r.key, ErrClosed)
	}
	h.arm(now)
	return h, nil
}

func (c *Client) heldError(r *request, v verdict, cause error) error {
	e := &HeldError{Key: r.key, Holder: v.holder, Err: cause}
	if v.left >= 0 {
		e.Until = time.Now().Add(v.left)
	}
	return e
}

// attempt asks once for the lock. What fails without an effect, or with an
// unknown one, it asks again for up to Options.Timeout: the request is
// idempotent.
func (c *Client) attempt(ctx context.Context, r *request) (verdict, error) {
	// A reply that comes later than this is of no use.
	useful := r.lease.TTL - drift(r.lease.TTL) - least(r.lease.TTL)
	var giveUp instant
	for n := 0; ; n++ {
		if err := c.sit(ctx, r.key); err != nil {
			return verdict{}, err
		}
		sent := c.clock.now()
		reply, err := c.roundTrip(ctx, min(c.opts.Timeout, useful), acquireScript, r.keys, r.args)
		<-c.seats
		if n == 0 {
			giveUp = sent.add(c.opts.Timeout)
		}
		if err == nil {
			return c.answer(r, sent, reply)
		}
		effect, failure := judge("acquire", r.key, err)
		if effect == effectUnknown {
			if !r.open && !r.stray {
				r.base = sent
			}
			r.open = true
		}
		if ctx.Err() != nil {
			return verdict{}, fmt.Errorf("acquire lock %q: %w", r.key, context.Cause(ctx))
		}
		// A reply that is late for the lease will be as late the next time.
		late := effect == effectUnknown && useful < c.opts.Timeout && c.clock.now().mono-sent.mono >= useful
		if c.ctx.Err() != nil {
			return verdict{}, fmt.Errorf("%w: %w", failure, ErrClosed)
		}
		if effect == effectNone || late || c.clock.now().reached(giveUp) {
			return verdict{}, failure
		}
		if !pause(ctx, backoff(n, 10*time.Millisecond, 300*time.Millisecond)) {
			return verdict{}, fmt.Errorf("acquire lock %q: %w", r.key, context.Cause(ctx))
		}
	}
}

// sit waits for one of the PoolSize places of acquires on their way, so that
// renewals always find a connection.
func (c *Client) sit(ctx context.Context, key string) error {
	select {
	case c.seats <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(c.opts.Timeout)
	defer t.Stop()
	select {
	case c.seats <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("acquire lock %q: %w", key, context.Cause(ctx))
	case <-c.ctx.Done():
		return fmt.Errorf("acquire lock %q: %w", key, ErrClosed)
	case <-t.C:
		return fmt.Errorf("acquire lock %q: %w: %d acquires are on their way (hint: raise Options.PoolSize)",
			key, redis.ErrPoolTimeout, c.opts.PoolSize)
	}
}

// answer reads the reply to an attempt that was sent at sent.
func (c *Client) answer(r *request, sent instant, reply any) (verdict, error) {
	list, _ := reply.([]any)
	state, _ := at(list, 0).(int64)
	switch {
	case len(list) >= 3 && state == 1:
		return verdict{taken: true, sent: sent, fence: number(list[1])}, nil
	case len(list) >= 3 && state == 2:
		return verdict{taken: true, sent: r.base, fence: number(list[1])}, nil
	case len(list) >= 2 && state == 0:
		// An attempt whose reply was lost had no effect before this one. It may
		// be under way still, and then takes effect after it.
		r.stray = r.stray || r.open
		r.contended = true
		r.open = false
		r.base = sent
		return verdict{left: time.Duration(number(list[1])) * time.Millisecond, holder: holderOf(list)}, nil
	default:
		r.open = true
		return verdict{}, fmt.Errorf("acquire lock %q: %w: reply of an unknown form", r.key, ErrUnknown)
	}
}

// holderOf reads the holder behind {0, PTTL, …}; empty if there is none.
func holderOf(list []any) Holder {
	h := Holder{
		ID:       text(at(list, 2)),
		Instance: text(at(list, 3)),
		App:      text(at(list, 4)),
		Host:     text(at(list, 5)),
		PID:      int(number(at(list, 6))),
		Session:  text(at(list, 7)),
		Class:    text(at(list, 8)),
		Purpose:  text(at(list, 9)),
		Fence:    number(at(list, 10)),
	}
	if ms := number(at(list, 11)); ms > 0 {
		h.Acquired = time.UnixMilli(ms)
	}
	return h
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// number reads an integer reply or a decimal text; 0 for anything else.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}

// backoff doubles from low to high, less up to half of it.
func backoff(n int, low, high time.Duration) time.Duration {
	d := high
	if n < 10 {
		d = min(high, low<<n)
	}
	return d - rand.N(d/2+1)
}

func (c *Client) request(key string, lease Lease) *request {
	id, secret := newID(), newID()
	prefix := c.opts.KeyPrefix
	m := record.Meta{
		V:          record.Version,
		ID:         id,
		Session:    id, // a session of its own
		Instance:   c.instance,
		App:        c.opts.App,
		Host:       c.opts.Host,
		PID:        c.pid,
		Class:      lease.Class,
		Purpose:    lease.Purpose,
		TTL:        lease.TTL.Milliseconds(),
		RenewEvery: lease.renewEvery(c.opts).Milliseconds(),
		Expect:     lease.Expect.Milliseconds(),
		MaxHold:    lease.MaxHold.Milliseconds(),
		Holds:      1,
		Trace:      lease.Trace,
	}
	r := &request{
		key:   key,
		lease: lease,
		id:    id,
		value: record.Value(id, secret),
		keys: []string{
			key,
			record.Companion(prefix, record.KindMeta, key),
			record.FenceKey(prefix, key),
		},
		began: c.clock.now(),
	}
	r.args = append([]any{r.value, id, m.TTL, record.Grace.Milliseconds()}, m.Fields()...)
	return r
}
