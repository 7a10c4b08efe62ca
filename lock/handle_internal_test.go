package lock

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// fakeDB answers scripts without a server, so that timers run in a bubble.
type fakeDB struct {
	mu    sync.Mutex
	calls []call
	// answer decides; nil answers as a server that has the lock for us.
	answer func(s *transport.Script, n int) (any, error)
	base   time.Time
}

type call struct {
	at   time.Duration
	op   string
	args []any
}

func (f *fakeDB) Eval(ctx context.Context, s *transport.Script, _ []string, args []any) (any, error) {
	f.mu.Lock()
	n := 0
	for _, c := range f.calls {
		if c.op == s.Op {
			n++
		}
	}
	f.calls = append(f.calls, call{time.Since(f.base), s.Op, plain(args)})
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		if v, err := answer(s, n); v != nil || err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				// A round trip has a deadline, as connections have it.
				deadline, _ := ctx.Deadline()
				retry.Pause(ctx, time.Until(deadline))
				return nil, err
			}
			return v, err
		}
	}
	if s == acquireScript {
		return "7", nil
	}
	return int64(1), nil
}

func (f *fakeDB) Delete(context.Context, string) error { return nil }

func (f *fakeDB) Close() error { return nil }

// plain follows the pointers that arguments are sent as.
func plain(args []any) []any {
	list := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *string:
			list[i] = *a
		case *int64:
			list[i] = *a
		default:
			list[i] = a
		}
	}
	return list
}

func (f *fakeDB) of(op string) []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []call
	for _, c := range f.calls {
		if c.op == op {
			list = append(list, c)
		}
	}
	return list
}

// bubble is a client on a fakeDB whose wall clock can be moved.
type bubble struct {
	*Client
	db    *fakeDB
	shift atomic.Int64
	mono  atomic.Int64
}

func newBubble(t *testing.T) *bubble {
	t.Helper()
	b := &bubble{db: &fakeDB{base: time.Now()}}
	real := newClock()
	clk := clock{now: func() instant {
		i := real.now()
		i.wall += b.shift.Load()
		i.mono += time.Duration(b.mono.Load())
		return i
	}}
	o, err := Options{}.complete()
	if err != nil {
		t.Fatal(err)
	}
	b.Client = newClient(o, b.db, clk)
	b.start.Do(func() {}) // without heartbeat
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bubble) take(t *testing.T, l Lease) *Handle {
	t.Helper()
	h, err := b.Acquire(context.Background(), "k", l)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantLost(t *testing.T, h *Handle, want Reason) {
	t.Helper()
	lost, ok := errors.AsType[*LostError](context.Cause(h.Context()))
	if !ok || lost.Reason != want {
		t.Errorf("cause %v, want reason %s", context.Cause(h.Context()), want)
	}
}

// Rule: valid until request + TTL − (1 % + 2 ms), to the nanosecond, and Done is
// closed then although no renewal gets an answer.
// fault: 3, 19, 23
func TestLeaseEndsByTheLocalClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == renewScript {
				return nil, context.DeadlineExceeded // hangs until its timeout
			}
			return nil, nil
		}
		began := time.Now()
		h := b.take(t, Lease{TTL: 10 * time.Second})
		<-h.Context().Done()
		if d := time.Since(began); d != 10*time.Second-102*time.Millisecond {
			t.Errorf("context ended after %s", d)
		}
		wantLost(t, h, ReasonExpired)
		renewals := b.db.of("renew")
		if len(renewals) < 4 {
			t.Errorf("%d attempts to renew inside the window", len(renewals))
		}
		for i, c := range renewals {
			if i > 0 && c.at-renewals[i-1].at < 10*time.Millisecond {
				t.Errorf("attempts at %s and %s: no floor", renewals[i-1].at, c.at)
			}
		}
	})
}

// Renewals come every f·TTL, at most a tenth early and never late; failures are
// told by the next success.
func TestRenewalSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, n int) (any, error) {
			if s == renewScript && (n == 2 || n == 3) {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, nil
		}
		h := b.take(t, Lease{TTL: 30 * time.Second, RenewFraction: 0.5})
		time.Sleep(5 * time.Minute)
		if err := h.Context().Err(); err != nil {
			t.Fatal(context.Cause(h.Context()))
		}
		calls := b.db.of("renew")
		for i := 1; i < len(calls); i++ {
			gap := calls[i].at - calls[i-1].at
			retry := i == 3 || i == 4
			if !retry && (gap < 13500*time.Millisecond || gap > 15*time.Second) || retry && gap > 3*time.Second {
				t.Errorf("renewal %d came %s after the one before", i, gap)
			}
		}
		for _, n := range []int{4, 5} {
			if tail := calls[n].args[6].(string); !strings.Contains(tail, `"renew_failures":2,`) {
				t.Errorf("renewal %d, after two failures, writes %s", n, tail)
			}
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
		n := len(b.db.of("renew"))
		time.Sleep(5 * time.Minute)
		if len(b.db.of("renew")) != n {
			t.Error("renewed after the release")
		}
	})
}

// Fault 27: who holds a lock that the server has forgotten has its context ended by
// the next renewal that is due, at that very moment: within one period of the loss.
// fault: 27
func TestForgottenLockEndsAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	const period = 10 * time.Second // a third of the TTL
	for _, forgotten := range []time.Duration{0, time.Second, 25 * time.Second, 61 * time.Second} {
		t.Run(forgotten.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, _ int) (any, error) {
					if s == renewScript && time.Since(b.db.base) >= forgotten {
						return int64(0), nil
					}
					return nil, nil
				}
				h := b.take(t, Lease{TTL: 3 * period})
				time.Sleep(forgotten)
				if err := h.Err(); err != nil {
					t.Fatalf("ended before anybody asked: %v", err)
				}
				h.hold.mu.Lock()
				due := h.hold.renewAt.mono - b.clock.now().mono
				h.hold.mu.Unlock()
				before := len(b.db.of("renew"))
				lost := time.Now()
				<-h.Context().Done()
				if took := time.Since(lost); took != due || took > period {
					t.Errorf("ended after %s, the renewal was due after %s", took, due)
				}
				wantLost(t, h, ReasonGone)
				time.Sleep(3 * period)
				if n := len(b.db.of("renew")) - before; n != 1 {
					t.Errorf("asked %d times, want once", n)
				}
			})
		})
	}
}

// B1: a renewal whose reply comes after the release has begun does not revive
// anything, nor is it a loss.
func TestReleaseDuringRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == renewScript {
				time.Sleep(2 * time.Second)
				return int64(0), nil
			}
			return nil, nil
		}
		h := b.take(t, Lease{TTL: 30 * time.Second})
		time.Sleep(10*time.Second + 500*time.Millisecond) // asked at 9 to 10 s
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if !errors.Is(context.Cause(h.Context()), ErrReleased) || !errors.Is(h.Err(), ErrReleased) {
			t.Errorf("cause %v, err %v", context.Cause(h.Context()), h.Err())
		}
		if n := len(b.db.of("renew")); n != 1 {
			t.Errorf("%d renewals", n)
		}
	})
}

// Fault 5: a suspended machine stops the monotonic clock; the wall clock tells,
// at the first look, with no timer due. The other way round the monotonic clock
// tells although the wall clock was set back.
// fault: 5
func TestErrLooksAtBothClocks(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(b *bubble){
		"suspended": func(b *bubble) { b.shift.Store(int64(time.Hour)) },
		"set back":  func(b *bubble) { b.shift.Store(-int64(time.Hour)); b.mono.Store(int64(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				h := b.take(t, Lease{TTL: 30 * time.Second})
				child, stop := context.WithCancel(h.Context())
				defer stop()
				if h.Context().Err() != nil {
					t.Fatal("lost at once")
				}
				move(b)
				if !errors.Is(h.Context().Err(), context.Canceled) {
					t.Error("the first look does not tell")
				}
				if child.Err() == nil {
					t.Error("a child of the context does not tell")
				}
				wantLost(t, h, ReasonPaused)
				if n := len(b.db.of("renew")); n != 0 {
					t.Errorf("asked the server %d times first", n)
				}
			})
		})
	}
}

// A small step of the wall clock, either way, costs nothing.
// fault: 13
func TestSmallClockStepIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		h := b.take(t, Lease{TTL: 30 * time.Second})
		// Not back to 0 from there: forward by more than the lease ends the hold,
		// as it must when the machine was suspended.
		for _, step := range []time.Duration{time.Second, 2 * time.Second, -time.Hour} {
			b.shift.Store(int64(step))
			time.Sleep(25 * time.Second)
			if h.Context().Err() != nil {
				t.Fatalf("step of %s: %v", step, context.Cause(h.Context()))
			}
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestMaxHoldEndsRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		began := time.Now()
		h := b.take(t, Lease{TTL: 10 * time.Second, MaxHold: time.Minute})
		<-h.Context().Done()
		if d := time.Since(began); d != time.Minute {
			t.Errorf("ended after %s", d)
		}
		if !errors.Is(context.Cause(h.Context()), ErrMaxHold) || !errors.Is(h.Err(), ErrLost) {
			t.Errorf("cause %v", context.Cause(h.Context()))
		}
		n := len(b.db.of("renew"))
		time.Sleep(time.Minute)
		if len(b.db.of("renew")) != n {
			t.Error("renewed after MaxHold")
		}
	})
}
