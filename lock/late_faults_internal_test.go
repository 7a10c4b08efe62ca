package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// A renewal counts as late by how long after it was due it has its answer: not up
// to a tenth of the interval, in a calm run never, and from then on whatever took
// that long, attempts that failed among it.
// fault: 4
func TestLateRenewals(t *testing.T) {
	t.Parallel()
	const second = time.Second
	slow := func(d time.Duration) (any, error) {
		time.Sleep(d)
		return nil, nil
	}
	for name, tc := range map[string]struct {
		answer func(n int) (any, error) // of the n-th renewal, which is due each 10 s
		want   []time.Duration
	}{
		"calm":    {func(int) (any, error) { return nil, nil }, []time.Duration{0, 0, 0, 0}},
		"in time": {func(int) (any, error) { return slow(second) }, []time.Duration{0, 0, 0, 0}},
		"stalls": {
			func(n int) (any, error) { return slow(time.Duration(n) * 700 * time.Millisecond) },
			[]time.Duration{0, 0, 1400 * time.Millisecond, 2100 * time.Millisecond},
		},
		"fails": {func(n int) (any, error) {
			if n == 1 {
				return nil, context.DeadlineExceeded // after 3 s
			}
			return nil, nil
		}, []time.Duration{0, 3 * second, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				b.db.answer = func(s *transport.Script, n int) (any, error) {
					if s == renewScript {
						return tc.answer(n)
					}
					return nil, nil
				}
				var mu sync.Mutex
				var late []time.Duration
				b.Observe(func(e Event) {
					if e.Kind == EventRenewed {
						mu.Lock()
						defer mu.Unlock()
						late = append(late, e.Late)
					}
				})
				h := b.take(t, Lease{TTL: 30 * second})
				for n := 0; n < len(tc.want); {
					time.Sleep(second / 10)
					mu.Lock()
					n = len(late)
					mu.Unlock()
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.EqualFunc(late, tc.want, func(got, want time.Duration) bool {
					return (got == 0) == (want == 0) && got >= want && got < want+3*second/2
				}) {
					t.Errorf("late by %v, want %v", late, tc.want)
				}
				if err := h.Err(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An Extend is due when its caller says so: a slow one is not late, whenever it is.
func TestExtendIsNeverLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == renewScript {
				time.Sleep(4 * time.Second)
			}
			return nil, nil
		}
		late := make(chan time.Duration, 10)
		b.Observe(func(e Event) {
			if e.Kind == EventRenewed {
				late <- e.Late
			}
		})
		h := b.take(t, Lease{TTL: 30 * time.Second})
		time.Sleep(8 * time.Second) // the renewal is due a second or two from now
		if err := h.Extend(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if d := <-late; d != 0 {
			t.Errorf("late by %s", d)
		}
		if err := h.Release(context.Background()); err != nil && !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
	})
}
