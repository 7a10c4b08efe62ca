package scanner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
)

// Without CLIENT TRACKING, too, deadlines are by the server's clock: locks in their last
// minute are not read again and again where it is a minute behind, and the end of a lease
// is not found a minute late where it is ahead.
func TestDeadlinesWithoutTrackingAreByTheServersClock(t *testing.T) {
	t.Parallel()
	for _, mode := range []source.WatchMode{source.WatchOff, source.WatchKeyspace} {
		for name, off := range map[string]time.Duration{"behind": -time.Minute, "ahead": time.Minute} {
			t.Run(fmt.Sprint(mode, " ", name), func(t *testing.T) {
				t.Parallel()
				srv, clock := testredis.StartClocked(t, testredis.WithConfig("notify-keyspace-events KA"))
				clock.Set(off)
				c, ctx := srv.Client(t), t.Context()
				const idle = 20
				for i := range idle {
					must(t, c.Set(ctx, fmt.Sprint("lock:idle:", i), fmt.Sprintf("%032x", i), 50*time.Second).Err())
				}
				r := fast(srv.URL())
				r.reads.Watch = mode
				w := watch(t, r)
				sweep(t, w.s)
				before := w.s.WatchState().Reads
				must(t, c.Set(ctx, "lock:short", "tok", 2*time.Second).Err())
				sweep(t, w.s)
				w.awaitEnd("lock:short", 1)
				if how := w.ended("lock:short"); how[0] != locksteward.EndedExpired {
					t.Errorf("ended %v", how)
				}
				// Keyspace notifications report lock:short twice; of the others nobody does.
				if n := w.s.WatchState().Reads - before; n > idle {
					t.Errorf("%d reads of %d locks that nobody touched", n, idle)
				}
			})
		}
	}
}
