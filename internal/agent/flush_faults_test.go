package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// All locks of a living process and of others are flushed away, whether the server
// reports it (FLUSHALL) or not (SWAPDB): people are notified once, of all of them
// together, and not once for each.
// fault: 48
func TestFlushIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]any{"FLUSHALL": {"flushall"}, "SWAPDB": {"swapdb", 0, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, e := testredis.Start(t), newEar(t)
			rdb := srv.Client(t)
			c, err := lock.New(rdb, lock.Options{App: "billing"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			const locks, foreign = 30, 10
			for i := range locks {
				if _, err := c.Acquire(t.Context(), fmt.Sprint("lock:order:", i), lock.Lease{TTL: time.Hour, NoRenew: true}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range foreign {
				if err := rdb.SetNX(t.Context(), fmt.Sprint("lock:order:f", i), fmt.Sprint("token-", i), time.Hour).Err(); err != nil {
					t.Fatal(err)
				}
			}
			b := newBed(t, target(srv.URL())+orders+
				"alert: {first_sweep: fire, grouping: {wait: 1s}, receivers: [{name: ops, kind: webhook, url: '"+e.url+"', allow_private: true}]}")
			b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
			b.awaitMetric(fmt.Sprintf(`locksteward_locks{class="orders",library="locksteward",target="main"} %d`, locks))
			// The first sweep finds classes to watch, for which the watch is set up anew:
			// what a flush takes meanwhile is reported lock by lock.
			was := lastSweep(b)
			testredis.Eventually(t, within, func() bool { return lastSweep(b) != was }, "no second sweep")
			testredis.Eventually(t, within, func() bool { // the metric may be a second old
				list := b.agent.Backend().Targets()
				return len(list) == 1 && list[0].Watch != nil && list[0].Watch.Mode == "tracking"
			}, "the watch is not set up again")
			if err := rdb.Do(t.Context(), command...).Err(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, l := range b.logs.All() {
					if t.Failed() && l.Level >= zap.InfoLevel {
						t.Log(l.Time.Format(time.TimeOnly+".000"), l.Message, l.ContextMap())
					}
				}
			})
			reported := func() (flushed, others []string) {
				for _, h := range e.of("") {
					for _, f := range h.Findings {
						if f.Rule == "server/flushed" {
							flushed = append(flushed, h.Status+" "+f.Summary)
						} else {
							others = append(others, f.Rule+" "+f.Summary)
						}
					}
				}
				return flushed, others
			}
			testredis.Eventually(t, 3*within, func() bool { flushed, _ := reported(); return len(flushed) > 0 }, "nobody is notified of the flush")
			b.awaitNoMetric(`locksteward_locks{class="orders",library="locksteward",target="main"}`)
			// What would be notified of single locks would have been reported by now.
			for range 3 {
				was := lastSweep(b)
				testredis.Eventually(t, within, func() bool { return lastSweep(b) != was }, "no more sweeps")
			}
			flushed, others := reported()
			if len(flushed) != 1 || !strings.HasPrefix(flushed[0], "firing a flush took ") {
				t.Errorf("reported the flush: %q", flushed)
			}
			if len(others) != 0 {
				t.Errorf("%d other things are notified of one flush, %q among them", len(others), others[0])
			}
		})
	}
}

// lastSweep is the metric of when the last sweep was.
func lastSweep(b *bed) string {
	for line := range strings.Lines(b.metrics()) {
		if strings.HasPrefix(line, "locksteward_sweep_last_success_timestamp_seconds{") {
			return line
		}
	}
	return ""
}
