package scanner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
)

// A flush is reported with all the locks that it took, from the first word on, however many
// the watch has read again by then; and sweeps after it say the same.
func TestFlushIsReportedWithAllItsLocks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		after string
		locks int
	}{{"a while", 300}, {"a while", 1000}, {"the agent's restart", 300}, {"the server's restart", 300}} {
		t.Run(fmt.Sprintf("%d after %s", tc.locks, tc.after), func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c, ctx := srv.Client(t), t.Context()
			set := func() {
				t.Helper()
				_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for i := range tc.locks {
						p.Set(ctx, fmt.Sprint("lock:", i), fmt.Sprintf("%032x", i), time.Hour)
					}
					return nil
				})
				must(t, err)
			}
			e, err := rules.New(nil, nil, nil)
			must(t, err)
			var reported []locksteward.Transition
			judge := func(list []locksteward.Transition) {
				for _, tr := range list {
					if tr.Finding.Rule == rules.ServerFlushed {
						reported = append(reported, tr)
					}
				}
			}
			if tc.after == "the agent's restart" {
				set()
			}
			run := tracked(t, fast(srv.URL()))
			func() {
				run.mu.Lock()
				defer run.mu.Unlock()
				run.judge = func(u locksteward.Update) { judge(e.EvaluateWatched(u)) }
			}()
			sweeps := func(n int) {
				t.Helper()
				for range n {
					got := sweep(t, run.s)
					func() {
						run.mu.Lock()
						defer run.mu.Unlock()
						judge(e.Evaluate(got))
					}()
				}
			}
			sweeps(1)
			if tc.after == "the server's restart" {
				since := run.s.WatchState().Nodes[0].Since
				srv.Restart()
				run.awaitState("set up again", func(s source.WatchState) bool { return whole(s) && s.Nodes[0].Since.After(since) })
			}
			if tc.after != "the agent's restart" {
				set()
			}
			testredis.Eventually(t, soon, func() bool { return run.s.Table().Len() == tc.locks }, "not all are known")
			run.awaitClock()
			must(t, c.FlushAll(ctx).Err())
			testredis.Eventually(t, soon, func() bool { return run.s.Table().Len() == 0 }, "not all are found gone")
			sweeps(3)
			run.mu.Lock()
			defer run.mu.Unlock()
			want := fmt.Sprintf("a flush took %d locks", tc.locks)
			if len(reported) != 1 || reported[0].Finding.Status != locksteward.StatusFiring || !strings.HasPrefix(catalogue.Text("en", reported[0].Finding.Summary), want) {
				for _, tr := range reported {
					t.Logf("reported: %s: %s", tr.Finding.Status, catalogue.Text("en", tr.Finding.Summary))
				}
				t.Errorf("%d transitions, want one: %s", len(reported), want)
			}
			for _, f := range e.Findings() {
				if f.Rule == rules.ServerFlushed && !strings.HasPrefix(catalogue.Text("en", f.Summary), want) {
					t.Errorf("in the end: %s", catalogue.Text("en", f.Summary))
				}
			}
		})
	}
}
