package agent_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/internal/testredis"
	"github.com/locksteward/locksteward/lock"
)

// All locks of a living process are flushed away: people are told once, of all of
// them, and not once for each.
func TestFlushIsToldOnce(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 48)
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	c, err := lock.New(rdb, lock.Options{App: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	const locks = 30
	for i := range locks {
		if _, err := c.Acquire(t.Context(), fmt.Sprint("lock:order:", i), lock.Lease{TTL: time.Hour, NoRenew: true}); err != nil {
			t.Fatal(err)
		}
	}
	b := newBed(t, target(srv.URL())+orders+
		"alert: {first_survey: fire, grouping: {wait: 1s}, receivers: [{name: ops, webhook: {url: '"+e.url+"', allow_private: true}}]}")
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	b.awaitMetric(fmt.Sprintf(`locksteward_locks{class="orders",dialect="locksteward",target="main"} %d`, locks))
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range b.logs.All() {
			if t.Failed() && l.Level >= zap.InfoLevel {
				t.Log(l.Time.Format(time.TimeOnly+".000"), l.Message, l.ContextMap())
			}
		}
	})
	told := map[string]bool{}
	testredis.Eventually(t, 3*within, func() bool {
		for _, h := range e.of("") {
			for _, f := range h.Findings {
				if f.Rule == "hold/lost" && h.Status == "firing" {
					told[f.Key.Key] = true
				}
			}
		}
		return len(told) == locks
	}, "not every loss is told")
	if n := len(e.of("")); n > 3 {
		t.Errorf("%d messages about one flush of %d locks", n, locks)
	}
}
