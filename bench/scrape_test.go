package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// maxScrape is the promise for one scrape beside 100 k locks.
const maxScrape = 20 * time.Millisecond

// BenchmarkScrape100k scrapes the program while 100 k healthy locks are in its
// table, a quarter of them of our own library: between sweeps, while it sweeps at
// its default pace, and while it sweeps without throttle.
func BenchmarkScrape100k(b *testing.B) {
	const locks, scrapes = 100_000, 500
	binary := buildAgent(b)
	for b.Loop() {
		srv := testredis.Start(b)
		client := srv.Client(b)
		loadHealthy(b, client, locks*3/4)
		loadOurs(b, client, locks/4)
		table := results.Table{
			Title:  "Scrapes beside 100 k locks",
			Header: []string{"The agent", "p50, ms", "p99, ms", "worst, ms", "KiB"},
			Note:   fmt.Sprintf("Of %d scrapes each, one every 20 ms, on the cores that agent and server have together. Promised: 20 ms, kept also by the slowest hundredth unless it sweeps without throttle, which takes all cores there are.", scrapes),
		}
		const unthrottled, rests = "    pace: {idle: 80%, busy: 80%}\n", "    schedule: '@every 24h'\n"
		a := startAgentOn(b, "0-"+lastCore(), binary, srv.URL(), unthrottled+rests+"    jitter: 1ms")
		first := a.await(5*time.Minute, "first sweep", func(m map[string]float64) bool {
			return sum(m, "locksteward_sweep_last_success_timestamp_seconds") > 0
		})
		if n := sum(first, "locksteward_locks"); int(n) != locks {
			b.Fatalf("%g locks, want %d", n, locks)
		}
		for _, state := range []struct {
			name, from, to string
			sweeps, paced  bool
		}{
			{"between sweeps", "", "", false, true},
			{"sweeps without throttle", rests, "    schedule: '@every 1s'\n", true, false},
			{"sweeps at its default pace", unthrottled, "", true, true},
		} {
			if state.from != "" {
				ended := func(m map[string]float64) float64 {
					return sum(m, "locksteward_sweep_last_success_timestamp_seconds")
				}
				last := ended(a.samples(b.Context()))
				a.reload(state.from, state.to)
				// The end of a sweep of the state before, with its merge, is not this one's.
				a.await(time.Minute, "the end of a sweep", func(m map[string]float64) bool { return ended(m) > last })
			}
			if before := scans(b, client); state.sweeps {
				testredis.Eventually(b, time.Minute, func() bool { return scans(b, client) > before }, "a sweep")
			} else {
				a.settle()
			}
			before := scans(b, client)
			var all []time.Duration
			var size int64
			for next := range time.Tick(20 * time.Millisecond) {
				_ = next
				took, n := a.scrape()
				size = n
				if all = append(all, took); len(all) == scrapes {
					break
				}
			}
			if swept := scans(b, client) > before; swept != state.sweeps {
				b.Fatalf("%s: it swept meanwhile: %t", state.name, swept)
			}
			slices.Sort(all)
			p50, p99, worst := all[scrapes/2], all[scrapes*99/100], all[scrapes-1]
			table.Rows = append(table.Rows, []string{state.name, millis(p50), millis(p99), millis(worst), fmt.Sprintf("%.0f", float64(size)/1024)})
			name := strings.ReplaceAll(state.name, " ", "-")
			b.ReportMetric(float64(p50.Microseconds())/1000, name+"-p50-ms")
			b.ReportMetric(float64(p99.Microseconds())/1000, name+"-p99-ms")
			if p50 > maxScrape || state.paced && p99 > maxScrape {
				b.Errorf("%s: scrapes take %s, one in a hundred %s; promised are %s", state.name, p50, p99, maxScrape)
			}
		}
		a.stop()
		b.ReportMetric(0, "ns/op")
		writeFigures(b, client, "scrape", "A scrape of an agent", "BenchmarkScrape100k", "The whole program as a process of its own, watch included.", table)
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// reload changes a part of the configuration and has the program read it.
func (a *agentProc) reload(from, to string) {
	a.b.Helper()
	text, err := os.ReadFile(a.config)
	if err != nil {
		a.b.Fatal(err)
	}
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		a.b.Fatalf("no %q in the configuration", from)
	}
	if err := os.WriteFile(a.config, []byte(changed), 0o600); err != nil {
		a.b.Fatal(err)
	}
	if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		a.b.Fatal(err)
	}
}

// scans is how many commands of a sweep the server ran.
func scans(b *testing.B, client *redis.Client) int {
	b.Helper()
	info, err := client.InfoMap(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	calls := 0
	if line := info["Commandstats"]["cmdstat_scan"]; line != "" {
		if _, err := fmt.Sscanf(line, "calls=%d", &calls); err != nil {
			b.Fatalf("%q: %v", line, err)
		}
	}
	return calls
}
