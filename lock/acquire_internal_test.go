package lock

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// A repeat that finds itself counts its validity from the first attempt.
func TestRepeatCountsFromTheFirstAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, n int) (any, error) {
			switch {
			case s == acquireScript && n == 0:
				time.Sleep(2 * time.Second)
				return nil, io.ErrUnexpectedEOF
			case s == acquireScript:
				return []any{int64(2), "7", "1000"}, nil
			}
			return nil, nil
		}
		began := time.Now()
		h := b.take(t, Lease{TTL: 10 * time.Second, NoRenew: true})
		<-h.Context().Done()
		if d := time.Since(began); d != 10*time.Second-102*time.Millisecond {
			t.Errorf("ended %s after the first attempt", d)
		}
		ids := map[any]bool{}
		for _, c := range b.db.of("acquire") {
			ids[c.args[1]] = true
		}
		if len(ids) != 1 {
			t.Errorf("%d request ids in one acquire", len(ids))
		}
	})
}

// An outage is retried for Options.Timeout and no longer; an error that will not
// go away is not retried at all.
// fault: 15
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		many bool
	}{
		"temporary": {redisError("LOADING Redis is loading the dataset in memory"), true},
		"permanent": {redisError("NOPERM no"), false},
		"lost":      {io.EOF, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, _ int) (any, error) {
					if s == acquireScript {
						return nil, tc.err
					}
					return int64(0), nil
				}
				began := time.Now()
				_, err := b.Acquire(context.Background(), "k", Lease{TTL: time.Minute})
				if !errors.Is(err, tc.err) {
					t.Errorf("got %v", err)
				}
				n, took := len(b.db.of("acquire")), time.Since(began)
				if tc.many && (n < 5 || n > 60 || took > 2*defaultTimeout) || !tc.many && (n != 1 || took != 0) {
					t.Errorf("%d attempts in %s", n, took)
				}
				time.Sleep(time.Minute) // the clean-up ends
				if cleaned := len(b.db.of("release")) > 0; cleaned != (name == "lost") {
					t.Errorf("cleaned up: %t", cleaned)
				}
			})
		})
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// B22: the lease is checked after the wait for a connection, not before.
// fault: 2
func TestLateSuccessIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == acquireScript {
				time.Sleep(950 * time.Millisecond)
				return "7", nil
			}
			return nil, nil
		}
		_, err := b.TryAcquire(context.Background(), "k", Lease{TTL: time.Second})
		if !errors.Is(err, ErrTooLate) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		if n := len(b.db.of("release")); n != 1 {
			t.Errorf("%d releases", n)
		}
	})
}

// Acquires that hang do not keep others from being renewed.
func TestAcquiresDoNotStarveRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		h := b.take(t, Lease{TTL: 6 * time.Second})
		block := make(chan struct{})
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == acquireScript {
				<-block
				return nil, io.EOF
			}
			return nil, nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := b.TryAcquire(ctx, "other", Lease{TTL: time.Hour}); err == nil {
					t.Error("acquired")
				}
			})
		}
		time.Sleep(time.Minute)
		if n := len(b.db.of("renew")); n < 25 || h.Err() != nil {
			t.Errorf("%d renewals, %v", n, h.Err())
		}
		cancel()
		close(block)
		wg.Wait()
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}
