package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// BenchmarkListLocks100k asks a running agent for the list of its 100,000 locks over
// HTTP, as the command line and the console do: with the default of 1,000 locks
// and with 100, in the orders and with filters, at rest and while sweep follows
// sweep. The aim is a p99 of at most 50 ms.
func BenchmarkListLocks100k(b *testing.B) {
	const locks = 100_000
	srv := testredis.Start(b)
	fillLocks(b, srv, locks)
	for _, run := range []struct{ name, schedule string }{{"at rest", "@every 1h"}, {"while sweeping", "@every 1s"}} {
		b.Run(run.name, func(b *testing.B) {
			url := startAgent(b, srv.URL(), run.schedule, locks)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for _, query := range []string{
				"", "limit=100", "sort=age", "sort=age&limit=100", "sort=ttl&limit=100", "q=4242&limit=100", "state=firing&limit=100", "match=lock:order:09*&holder=x",
			} {
				b.Run("?"+query, func(b *testing.B) {
					var took []time.Duration
					for b.Loop() {
						begin := time.Now()
						askOnce(b, client, url+"api/v1/locks?"+query)
						took = append(took, time.Since(begin))
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
					b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
				})
			}
		})
	}
}

func fillLocks(tb testing.TB, srv *testredis.Server, n int) {
	tb.Helper()
	rdb := srv.Client(tb)
	pipe := rdb.Pipeline()
	for i := range n {
		ttl := time.Duration(0) // 1 in 100 never expires: a finding on each
		if i%100 > 0 {
			ttl = time.Hour + time.Duration(i)*time.Millisecond
		}
		pipe.Set(tb.Context(), fmt.Sprintf("lock:order:%06d", i), fmt.Sprintf("3f2b8c1e-9d1a-4b6e-8f0a-%012d", i), ttl)
		if pipe.Len() == 5000 || i == n-1 {
			if _, err := pipe.Exec(tb.Context()); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// startAgent runs an agent without users until the benchmark ends, and returns its
// address once it knows all locks.
func startAgent(tb testing.TB, redis, schedule string, locks int) string {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "locksteward.yaml")
	text := fmt.Sprintf(`
targets: [{name: main, url: '%s', schedule: '%s', pace: {idle: 80%%, busy: 80%%}}]
classes: [{class: orders, match: ['lock:order:*']}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '%s', rate: {per_second: 100000}}
store: {dsn: 'sqlite:%s'}
`, redis, schedule, filepath.Join(dir, "users.yaml"), filepath.Join(dir, "store.db"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := agent.New(tb.Context(), zap.NewNop(), cfg, agent.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	all := fmt.Sprintf(`"total":%d`, locks)
	testredis.Eventually(tb, 2*time.Minute, func() bool { return strings.Contains(get(a.ConsoleURL()+"api/v1/locks?limit=1"), all) }, "the locks are not known")
	return a.ConsoleURL()
}

func askOnce(tb testing.TB, client *http.Client, url string) {
	resp, err := client.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || len(raw) == 0 {
		tb.Fatalf("status %d, %v: %s", resp.StatusCode, err, raw)
	}
}
