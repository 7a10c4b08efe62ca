package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// The tests in mutation_*_test.go kill the mutations of lock/mutation that the tests
// of the promises leave alive. B numbers are those of docs/mutation-tests.md.

// B4: whatever becomes of the release, the lock is not renewed from its beginning
// on.
func TestFailedReleaseStopsRenewal(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]error{
		"refused":  redisError("NOPERM no"),
		"no reply": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, _ int) (any, error) {
					if s == releaseScript {
						return nil, reply
					}
					return nil, nil
				}
				h := b.take(t, Lease{TTL: 30 * time.Second})
				time.Sleep(time.Minute)
				if n := len(b.db.of("renew")); n < 5 {
					t.Fatalf("%d renewals in a minute: not what is to be tested", n)
				}
				began := time.Since(b.db.base)
				if err := h.Release(context.Background()); err == nil || errors.Is(err, ErrLost) {
					t.Errorf("release: %v", err)
				}
				time.Sleep(5 * time.Minute)
				for _, c := range b.db.of("renew") {
					if c.at > began {
						t.Errorf("renewed %s after the release had begun", c.at-began)
					}
				}
			})
		})
	}
}

// B5, B17: a context that ends while the reply to the acquire is under way: the
// lock, which was taken, is given back at once, and nothing renews it.
func TestCancelledAcquireIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"try": false, "wait": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, _ int) (any, error) {
					if s == acquireScript {
						time.Sleep(100 * time.Millisecond)
						return "7", nil
					}
					return nil, nil
				}
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(50*time.Millisecond, cancel)
				h, err := b.acquire(ctx, "k", Lease{TTL: 30 * time.Second}, waits)
				if h != nil || !errors.Is(err, context.Canceled) {
					t.Fatalf("got %v, %v", h, err)
				}
				time.Sleep(time.Second)
				if n := len(b.db.of("release")); n != 1 {
					t.Errorf("given back %d times within a second, want once", n)
				}
				time.Sleep(5 * time.Minute)
				if n := len(b.db.of("renew")); n != 0 {
					t.Errorf("%d renewals of a lock that nobody got", n)
				}
				if n := len(b.holds); n != 0 {
					t.Errorf("%d holds are registered", n)
				}
			})
		})
	}
}

// B15: a re-entry that could not be confirmed does not count: the session's lock
// is freed by the release of the handles that it has.
func TestFailedReentryDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		refuse := true
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == renewScript && refuse {
				return nil, redisError("NOREPLICAS Not enough good replicas to write.")
			}
			return nil, nil
		}
		ctx := WithSession(context.Background())
		lease := Lease{TTL: time.Hour}
		outer, err := b.Acquire(ctx, "k", lease)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := b.Acquire(ctx, "k", lease); err == nil {
				t.Fatal("re-entry without a confirmation")
			}
		}
		refuse = false
		inner, err := b.Acquire(ctx, "k", lease)
		if err != nil {
			t.Fatal(err)
		}
		if tail := b.db.of("renew")[3].args[6].(string); !strings.Contains(tail, `"holds":2,`) {
			t.Errorf("the metadata says %s, want that the session has the lock twice", tail)
		}
		for _, h := range []*Handle{inner, outer} {
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if n := len(b.db.of("release")); n != 1 {
			t.Errorf("%d releases reached the server after the last handle, want 1", n)
		}
	})
}

// B7: taking a lock again for a shorter time neither shortens its lease nor
// hurries its renewals, also when the outer handle is the one that is left.
func TestReentryKeepsTheLongerLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		ctx := WithSession(context.Background())
		outer, err := b.Acquire(ctx, "k", Lease{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		inner, err := b.Acquire(ctx, "k", Lease{TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := inner.Release(context.Background()); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		renewals := b.db.of("renew")
		for n, c := range renewals {
			if ttl := c.args[1]; ttl != int64(30000) {
				t.Fatalf("renewal %d asks for %v ms, want 30000", n, ttl)
			}
		}
		if len(renewals) < 25 || len(renewals) > 40 {
			t.Errorf("%d renewals in 5 minutes, want one each 9 to 10 s", len(renewals))
		}
		if err := outer.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// B16: a server that answers with a redirection, or that it cannot now, is asked
// seldom.
// fault: 36
func TestRedirectionsMakeNoStorm(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served"} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(*transport.Script, int) (any, error) { return nil, redisError(reply) }
				began := time.Now()
				_, err := b.TryAcquire(context.Background(), "k", Lease{TTL: time.Minute})
				if e, ok := errors.AsType[*ServerError](err); !ok || !e.Temporary() {
					t.Errorf("got %v", err)
				}
				took := time.Since(began)
				if n := len(b.db.of("acquire")); float64(n) > 50*took.Seconds() || n < 2 {
					t.Errorf("%d requests in %s, want at most 50 in a second", n, took)
				}
			})
		})
	}
}

// B31: locks that were taken in one moment are not all renewed in one moment.
func TestRenewalsAreSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		const many = 2000
		for range many {
			b.take(t, Lease{TTL: 30 * time.Second})
		}
		time.Sleep(10*time.Second + time.Millisecond) // one round of renewals
		at := map[time.Duration]int{}
		for _, c := range b.db.of("renew") {
			at[c.at.Truncate(10*time.Millisecond)]++
		}
		sum, most := 0, 0
		for _, n := range at {
			sum += n
			most = max(most, n)
		}
		if sum < many {
			t.Errorf("%d of %d locks were renewed", sum, many)
		}
		if most > many/20 {
			t.Errorf("%d of %d renewals in one hundredth of a second", most, many)
		}
	})
}
