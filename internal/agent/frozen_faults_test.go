package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// omem is what a server keeps for our subscriber, in bytes, -1 if there is none.
func omem(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	list, err := c.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(list) {
		if _, rest, ok := strings.Cut(line, " omem="); ok && strings.Contains(line, " name=locksteward-subscriber ") {
			var n int64
			_, _ = fmt.Sscan(rest, &n)
			return n
		}
	}
	return -1
}

// An agent whose process is stopped (SIGSTOP) costs the server at most 32 MiB, then
// it is cut off. How long it is stopped does not matter beyond that: not ten minutes
// but until the server has cut it off and a lock has come and another gone meanwhile.
// It goes on, looks at everything again, and counts that time as blind.
// fault: 8
func TestStoppedAgentIsCutOffAndStartsOver(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c, ctx := srv.Client(t), t.Context()
	a := testagent.New(t, testagent.Options{Name: "agent", Config: fmt.Sprintf(`targets: [{name: main, url: %q, schedule: '@every 5s'}]
classes: [{class: kept, match: ['lock:kept:*']}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0'}
store: {dsn: 'sqlite:%s/store.db'}
`, srv.URL(), t.TempDir())})
	set := func(key string) {
		t.Helper()
		if err := c.Set(ctx, key, "token", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("lock:kept:goes")
	set("lock:kept:stays")
	a.Start()
	// value is that of a series; all of a metric are added up.
	value := func(series string) float64 {
		ask, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		samples, err := testagent.Scrape(ask, a.Where().Metrics)
		if err != nil {
			return -1
		}
		sum := 0.0
		for _, s := range samples {
			if s.Series == series || s.Name == series {
				sum += s.Value
			}
		}
		return sum
	}
	watching := func() bool { return value(`locksteward_watch_mode{mode="tracking",target="main"}`) == 1 }
	testredis.Eventually(t, 2*within, func() bool { return watching() && value(`locksteward_locks`) == 2 }, "the agent watches two locks")
	blind := value("locksteward_watch_blind_seconds_total")

	a.Freeze()
	began := time.Now()
	const most = 32 << 20
	long, peak := strings.Repeat("x", 4096), int64(0)
	kept := omem(t, c)
	for n := 0; n < 400 && kept >= 0; n++ {
		if _, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 100 {
				p.Set(ctx, fmt.Sprintf("lock:kept:%s:%d:%d", long, n, i), "t", time.Second)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		kept = omem(t, c)
		peak = max(peak, kept)
	}
	if kept >= 0 {
		t.Fatalf("the server still feeds the stopped agent, %d bytes wait", peak)
	}
	// The limit is checked when something is added: one batch may be on top.
	if peak > most+2<<20 {
		t.Errorf("the stopped agent cost %d bytes", peak)
	}
	set("lock:kept:comes")
	if err := c.Del(ctx, "lock:kept:goes").Err(); err != nil {
		t.Fatal(err)
	}
	a.Thaw()
	stood := time.Since(began)
	t.Logf("cut off after %.1f MiB; stopped for %s", float64(peak)/(1<<20), stood)
	testredis.Eventually(t, 2*within, func() bool {
		return watching() && value("locksteward_watch_blind_seconds_total") > blind
	}, "it does not watch again, or no time was blind")
	// What came and what went while it stood still, and what comes now.
	set("lock:kept:after")
	testredis.Eventually(t, 2*within, func() bool {
		return value(`locksteward_locks{class="kept",library="token",target="main"}`) == 3
	}, "the locks are not those of the server")
	if missed := value("locksteward_watch_missed_total"); missed != 0 {
		t.Errorf("%v changes were missed outside of the blind time", missed)
	}
	if now := value("locksteward_watch_blind_seconds_total"); now-blind < stood.Seconds() {
		t.Errorf("blind for %.1f s, stopped for %s", now-blind, stood)
	}
}
