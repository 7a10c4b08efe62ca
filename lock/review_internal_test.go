package lock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/internal/faults"
)

// Ten thousand locks are looked at within a second or so, one round trip of a few
// hundred at a time and not in a storm.
func TestReviewIsSpread(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 27)
	synctest.Test(t, func(t *testing.T) {
		const locks = 10_000
		h := &hub{}
		list := make([]*hold, locks)
		for i := range list {
			list[i] = &hold{}
		}
		began, last := time.Now(), time.Time{}
		seen := map[*hold]bool{}
		h.lookAt(t.Context(), list, func(_ context.Context, some []*hold) []*hold {
			if now := time.Now(); now.Sub(last) < 25*time.Millisecond {
				t.Errorf("the next ones after %s", now.Sub(last))
			}
			if len(some) > 256 {
				t.Errorf("%d at once", len(some))
			}
			last = time.Now()
			for _, o := range some {
				seen[o] = true
			}
			return nil
		})
		if took := time.Since(began); len(seen) != locks || took > 1100*time.Millisecond || took < 900*time.Millisecond {
			t.Errorf("%d of %d in %s", len(seen), locks, took)
		}
	})
}

// Those without an answer are asked for again, with growing pauses, the others not;
// while nothing answers one request at a time is made, and none after the connection
// has broken again.
func TestReviewAsksAgain(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 27)
	synctest.Test(t, func(t *testing.T) {
		list := make([]*hold, 700)
		for i := range list {
			list[i] = &hold{}
		}
		h := &hub{own: &topic{live: true}}
		var asked []int
		h.lookAt(t.Context(), list, func(_ context.Context, some []*hold) []*hold {
			asked = append(asked, len(some))
			switch len(asked) {
			case 1:
				return some[:3]
			case 2:
				return some
			default:
				return nil
			}
		})
		// 700 are 256, 256 and 188; the second lot hangs, so that the third waits.
		if want := []int{256, 256, 256, 191}; len(asked) != len(want) || asked[2] != want[2] || asked[3] != want[3] {
			t.Errorf("asked for %v, want %v", asked, want)
		}

		began, tries := time.Now(), 0
		h.lookAt(t.Context(), list, func(_ context.Context, some []*hold) []*hold {
			if tries++; tries == 30 {
				h.own.live = false
			}
			return some
		})
		if took := time.Since(began); tries != 30 || took < 13*time.Second || took > 30*time.Second {
			t.Errorf("asked %d times in %s", tries, took)
		}
	})
}
