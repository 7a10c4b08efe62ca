package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

const (
	clusterMasters = 12
	clusterKeys    = 1_000_000 // of each
	clusterCores   = 0.5       // of the agent, at most
	clusterEvery   = 5 * time.Second
)

// BenchmarkCluster12 has an agent of default settings make its first sweep of a Cluster of 12 masters with 1 M keys each, all on this machine: how much
// of a core the agent needs meanwhile, over the whole sweep and in the worst five seconds.
func BenchmarkCluster12(b *testing.B) {
	cluster := testredis.StartClusterOf(b, clusterMasters, testredis.WithConfig("enable-debug-command yes"))
	for _, n := range cluster.Nodes {
		if err := n.Client(b).Do(b.Context(), "DEBUG", "POPULATE", clusterKeys).Err(); err != nil {
			b.Fatal(err)
		}
	}
	client := cluster.Client(b)
	for i := range 1000 {
		if err := client.Set(b.Context(), fmt.Sprintf("lock:order:%d", i), fmt.Sprintf("0d9f3f7e-52f9-4a38-9a53-%012x", i), time.Hour).Err(); err != nil {
			b.Fatal(err)
		}
	}
	binary := buildAgent(b)
	for b.Loop() {
		began := time.Now()
		a := startAgent(b, binary, cluster.URL())
		a.await(30*time.Second, "the agent sweeps", func(m map[string]float64) bool { return sum(m, "locksteward_pace_share") > 0 })
		first, since := a.cpu(), time.Now()
		last, at, worst := first, since, 0.0
		m := a.await(10*time.Minute, "the sweep ends", func(m map[string]float64) bool {
			if now := time.Now(); now.Sub(at) >= clusterEvery {
				used := a.cpu()
				worst = max(worst, (used-last).Seconds()/now.Sub(at).Seconds())
				last, at = used, now
			}
			return sum(m, "locksteward_sweep_last_success_timestamp_seconds") != 0
		})
		took := time.Since(began)
		mean := (a.cpu() - first).Seconds() / time.Since(since).Seconds()
		own, _ := a.memory()
		a.stop()
		if keys := sum(m, "locksteward_sweep_keys_total"); keys < clusterMasters*clusterKeys || sum(m, "locksteward_locks") != 1000 {
			b.Fatalf("%g keys, %g locks", keys, sum(m, "locksteward_locks"))
		}
		b.ReportMetric(mean, "cores")
		b.ReportMetric(worst, "worst-cores")
		b.ReportMetric(took.Seconds(), "sweep-s")
		b.ReportMetric(0, "ns/op")
		if worst > clusterCores {
			b.Errorf("the agent took %.2f cores in its worst five seconds, promised %g", worst, clusterCores)
		}
		writeFigures(b, cluster.Nodes[0].Client(b), "cluster12", "A Cluster of twelve masters", "BenchmarkCluster12",
			"1 M keys on each of 12 masters and 1,000 locks, all on one address, so that they share one allowance; the first sweep of an agent of default settings.",
			results.Table{
				Title:  "One run",
				Header: []string{"The sweep, s", "agent, cores", "in its worst 5 s", "own memory, MiB", "promised"},
				Rows:   [][]string{{results.Number(took.Seconds()), fmt.Sprintf("%.2f", mean), fmt.Sprintf("%.2f", worst), results.Number(own), fmt.Sprintf("≤ %g cores", clusterCores)}},
			})
	}
}
