package lock

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// reply is an error reply of a server.
type reply string

func (e reply) Error() string { return string(e) }

// RedisError marks it for go-redis.
func (reply) RedisError() {}

// Fault 37: what an Extend is refused with for a while, it asks for again, as a
// renewal, an acquire and a release do; who waits for it does so until the caller's
// deadline, Options.Timeout or the end of the lease, whichever comes first.
// fault: 37
func TestExtendAsksAgain(t *testing.T) {
	t.Parallel()
	const tryAgain = reply("TRYAGAIN Multiple keys request during rehashing of slot")
	const longest = 300 * time.Millisecond // the longest pause between two attempts
	wantTryAgain := func(err error) bool {
		e, ok := errors.AsType[*ServerError](err)
		return ok && errors.Is(e.Err, tryAgain) && e.Code == CodeUnavailable && e.Temporary()
	}
	for name, tc := range map[string]struct {
		answer         func(n int) error // of the n-th attempt
		ttl            time.Duration     // of the lease
		caller         time.Duration     // 0: no deadline
		earliest, most time.Duration
		want           func(error) bool
		least, asked   int // attempts, at least and at most
	}{
		"the slot has moved": {
			answer: func(n int) error {
				if n < 4 {
					return tryAgain
				}
				return nil
			},
			most: time.Second,
			want: func(err error) bool { return err == nil }, least: 5, asked: 5,
		},
		"the reply is lost": {
			answer: func(n int) error {
				if n < 2 {
					return io.ErrUnexpectedEOF
				}
				return nil
			},
			most: time.Second,
			want: func(err error) bool { return err == nil }, least: 3, asked: 3,
		},
		"the slot does not move": {
			answer:   func(int) error { return tryAgain },
			earliest: defaultTimeout - longest, most: defaultTimeout,
			want: wantTryAgain, least: 10, asked: 40,
		},
		"nobody answers": {
			answer:   func(int) error { return context.DeadlineExceeded },
			earliest: defaultTimeout - longest, most: defaultTimeout,
			want: func(err error) bool { return errors.Is(err, ErrUnknown) }, least: 1, asked: 3,
		},
		"refused, and then nobody answers": {
			answer: func(n int) error {
				if n < 3 {
					return tryAgain
				}
				return context.DeadlineExceeded
			},
			earliest: defaultTimeout - longest, most: defaultTimeout,
			want: func(err error) bool { return errors.Is(err, ErrUnknown) && wantTryAgain(err) }, least: 4, asked: 6,
		},
		"the caller's deadline": {
			answer: func(int) error { return tryAgain }, caller: 700 * time.Millisecond,
			earliest: 700*time.Millisecond - longest, most: 700 * time.Millisecond,
			want: wantTryAgain, least: 4, asked: 20,
		},
		"the lease ends": {
			answer: func(int) error { return tryAgain }, ttl: time.Second,
			earliest: time.Second - drift(time.Second), most: time.Second - drift(time.Second),
			want: func(err error) bool { return errors.Is(err, ErrLost) }, least: 5, asked: 30,
		},
		"refused for good": {
			answer: func(int) error { return reply("NOPERM no permissions") },
			want: func(err error) bool {
				e, ok := errors.AsType[*ServerError](err)
				return ok && e.Code == CodeDenied
			}, least: 1, asked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, n int) (any, error) {
					if s == renewScript {
						return nil, tc.answer(n)
					}
					return nil, nil
				}
				ttl := 30 * time.Second
				if tc.ttl > 0 {
					ttl = tc.ttl
				}
				h := b.take(t, Lease{TTL: ttl, NoRenew: true})
				ctx, cancel := context.Background(), func() {}
				if tc.caller > 0 {
					ctx, cancel = context.WithTimeout(ctx, tc.caller)
				}
				defer cancel()
				until := func() time.Time { return time.Now().Add(h.Validity()) }
				before, began := until(), time.Now()
				err := h.Extend(ctx, time.Minute)
				if took := time.Since(began); took < tc.earliest || took > tc.most {
					t.Errorf("took %s, want %s to %s", took, tc.earliest, tc.most)
				}
				if !tc.want(err) {
					t.Errorf("got %v", err)
				}
				if n := len(b.db.of("renew")); n < tc.least || n > tc.asked {
					t.Errorf("asked %d times, want %d to %d", n, tc.least, tc.asked)
				}
				switch after := until(); {
				case err == nil && after.Sub(before) < 25*time.Second:
					t.Errorf("until %s, before %s", after, before)
				case err != nil && h.Err() == nil && !after.Equal(before):
					t.Errorf("the lease lasts until %s, not %s as before", after, before)
				}
			})
		})
	}
}

// Who gives up, and a client that is closed, end an Extend that is asking again, in
// the middle of a pause, and the error says so.
func TestExtendIsGivenUp(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, tc := range map[string]struct {
		end  func(b *bubble, cancel context.CancelCauseFunc)
		want error
	}{
		"cancelled": {func(_ *bubble, cancel context.CancelCauseFunc) { cancel(enough) }, enough},
		"closed":    {func(b *bubble, _ context.CancelCauseFunc) { _ = b.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, _ int) (any, error) {
					if s == renewScript {
						return nil, reply("CLUSTERDOWN the cluster is down")
					}
					return nil, nil
				}
				h := b.take(t, Lease{TTL: 30 * time.Second, NoRenew: true})
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				time.AfterFunc(1234567*time.Microsecond, func() { tc.end(b, cancel) })
				began := time.Now()
				err := h.Extend(ctx, 0)
				if took := time.Since(began); took != 1234567*time.Microsecond {
					t.Errorf("took %s", took)
				}
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A session that takes again what it has asks the server as patiently.
func TestReentryAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, n int) (any, error) {
			if s == renewScript && n < 3 {
				return nil, reply("LOADING the dataset")
			}
			return nil, nil
		}
		ctx := WithSession(context.Background())
		l := Lease{TTL: 30 * time.Second, NoRenew: true}
		first, err := b.Acquire(ctx, "k", l)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Acquire(ctx, "k", l)
		if err != nil {
			t.Fatalf("taken again: %v", err)
		}
		if again.ID() != first.ID() || len(b.db.of("renew")) != 4 {
			t.Errorf("%s and %s, %d renewals", first, again, len(b.db.of("renew")))
		}
	})
}
