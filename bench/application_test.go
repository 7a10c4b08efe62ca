package bench

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

var loadRounds = flag.Int("rounds", 24, "rounds of each part of BenchmarkApplication and BenchmarkUsedServer; 24 are four times each order of three parts")

var resultsFile = flag.String("results", "", "file whose section the figures replace, such as RESULTS.md")

// What is promised for an application that saturates its server, beside an agent of default settings (issue 29).
const (
	maxDearer  = 1.5                     // % of the server's CPU per command
	maxP99More = 0.1                     // ms
	slowFrom   = 500                     // µs of server execution time
	loadRuns   = 5                       // of each part, whose medians count
	loadFor    = 1500 * time.Millisecond // roughly, of each run
)

// BenchmarkApplication runs redis-benchmark (SET, then GET, in
// a database with 10 k locks) without and with an agent of default settings that
// sweeps and watches, in turn, and reports the medians over the pairs: how much
// throughput was lost and how much longer the 99th percentile became. The server
// has one core, load and agent share the other.
func BenchmarkApplication(b *testing.B) {
	srv := testredis.Start(b)
	client := srv.Client(b)
	load(b, client, 1_000_000, 10_000)
	pin(b, srv.PID(), 0)
	realtime(b, srv.PID())
	binary := buildAgent(b)
	for b.Loop() {
		measureApplication(b, srv, client, binary)
	}
}

func measureApplication(b *testing.B, srv *testredis.Server, client *redis.Client, binary string) {
	ctx := b.Context()
	for _, set := range [][2]string{{"slowlog-log-slower-than", strconv.Itoa(slowFrom)}, {"slowlog-max-len", "100000"}} {
		if err := client.ConfigSet(ctx, set[0], set[1]).Err(); err != nil {
			b.Fatal(err)
		}
	}
	requests := calibrate(b, srv, client)
	for _, reset := range [][]any{{"SLOWLOG", "RESET"}, {"CONFIG", "RESETSTAT"}} {
		if err := client.Do(ctx, reset...).Err(); err != nil {
			b.Fatal(err)
		}
	}
	var alone, again, beside []applied
	var busy []float64       // of the agent, in % of a core
	pause := 3 * time.Second // as long as the last agent took to start
	rest := func() {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	parts := [3]func(){
		func() { rest(); alone = append(alone, warm(b, srv, client, requests)) },
		func() { rest(); again = append(again, warm(b, srv, client, requests)) },
		func() {
			began := time.Now()
			a := startAgent(b, binary, srv.URL())
			defer a.stop()
			a.await(30*time.Second, "agent watches", func(m map[string]float64) bool {
				return sum(m, "locksteward_watch_mode", `mode="tracking"`) == 1
			})
			a.settle() // what it does from now on is what it does all day
			pause = time.Since(began)
			used, since := a.cpu(), time.Now()
			beside = append(beside, warm(b, srv, client, requests))
			busy = append(busy, 100*(a.cpu()-used).Seconds()/time.Since(since).Seconds())
		},
	}
	for round := range *loadRounds {
		for _, i := range orders[round%len(orders)] {
			parts[i]()
		}
		b.Logf("round %d: %.0f/s, again %.0f/s, beside an agent %.0f/s; p99 %.3f, %.3f and %.3f ms; the agent took %.2f %% of a core",
			round+1, alone[round].rate, again[round].rate, beside[round].rate, alone[round].p99, again[round].p99, beside[round].p99, busy[round])
	}
	ofLoad, ofAgent := executed(b, client)
	compare := func(of []applied, what func(a, b applied) float64) []float64 {
		list := make([]float64, len(of))
		for i := range of {
			list[i] = what(alone[i], of[i])
		}
		return list
	}
	lost := func(a, b applied) float64 { return 100 * (1 - b.rate/a.rate) }
	longer := func(a, b applied) float64 { return b.p99 - a.p99 }
	dearer := func(a, b applied) float64 { return 100 * (b.cpu/a.cpu - 1) }
	own := func(what func(applied) float64) func(a, b applied) float64 {
		return func(_, b applied) float64 { return what(b) }
	}
	rate, p99, cpu := own(func(a applied) float64 { return a.rate }), own(func(a applied) float64 { return a.p99 }), own(func(a applied) float64 { return a.cpu })
	loss, more := median(compare(beside, lost)), median(compare(beside, longer))
	ours, others := slow(b, client)
	counts, counted := witness(b, srv, client, requests)
	b.ReportMetric(loss, "loss-%")
	b.ReportMetric(more, "p99-more-ms")
	b.ReportMetric(float64(ours), "slow-ours")
	b.ReportMetric(float64(others), "slow-others")
	b.ReportMetric(0, "ns/op")
	cpuMore, slowOurs, slowCounts := median(compare(beside, dearer)), float64(ours)/ofAgent.Seconds(), float64(counts)/counted.Seconds()
	if cpuMore > maxDearer || more > maxP99More || slowOurs > slowCounts {
		b.Errorf("server CPU a command %+.2f %%, p99 %+.3f ms, %.2f slow commands of ours per second of their execution; promised %g %%, %g ms, %.2f as the witness",
			cpuMore, more, slowOurs, maxDearer, maxP99More, slowCounts)
	}
	row := func(what string, value, differs func(a, b applied) float64, unit, promised string) []string {
		difference := func(of []applied) string {
			list := compare(of, differs)
			slices.Sort(list)
			n := len(list)
			return fmt.Sprintf("%+.2f%s (%+.2f to %+.2f)", median(list), unit, list[n/4], list[n-1-n/4])
		}
		return []string{
			what, results.Number(median(compare(alone, value))), results.Number(median(compare(beside, value))),
			difference(beside), difference(again), promised,
		}
	}
	writeFigures(b, client, "application", "An application beside an agent", "BenchmarkApplication",
		"redis-benchmark (SET, then GET; 50 clients, each waits for its answer) among 1 M keys and 10 k locks: alone, alone again, and beside an agent of default settings whose start is over, in turn. "+
			"The server is pinned to one core; the load and the agent share the other.",
		results.Table{
			Title:  fmt.Sprintf("Medians of %d rounds", *loadRounds),
			Header: []string{"What", "alone", "beside an agent", "difference", "of alone again (noise)", "promised"},
			Rows: [][]string{
				row("commands/s", rate, lost, " % lost", "–"),
				row("p99 ms", p99, longer, "", fmt.Sprintf("≤ +%g", maxP99More)),
				row("server CPU µs/command", cpu, dearer, " %", fmt.Sprintf("≤ +%g %%", maxDearer)),
				{"the agent, % of the load's core", "–", fmt.Sprintf("%.2f", median(busy)), "–", "–", "–"},
				{fmt.Sprintf("commands over %d µs in SLOWLOG", slowFrom), strconv.Itoa(others) + " of the load", strconv.Itoa(ours) + " of the agent", "–", "–", "–"},
				{"per second of their execution", perSecond(others, ofLoad), perSecond(ours, ofAgent), "–", "–", "≤ " + perSecond(counts, counted) + " of the witness"},
			},
			Note: fmt.Sprintf("Of each part the median of %d runs behind one that warms up; all parts begin with the same pause. Differences are taken round by round; in brackets the middle half of them. "+
				"SLOWLOG counts the time in which another process, or another virtual machine, had the server's core, too: the load's own commands, which take 2 µs, are never slow by themselves. "+
				"The server goes before all others on its core (SCHED_FIFO). The witness is a script that only counts, for %s, beside the same load in place of the agent.",
				loadRuns, witnessTakes),
		})
}

// orders are those of three parts: none always goes first, or behind the same other.
var orders = [][3]int{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}}

// applied is what redis-benchmark measured.
type applied struct {
	rate float64 // commands per second
	p99  float64 // ms, the worse of SET and GET
	cpu  float64 // µs of server CPU per command, ours included
}

// apply runs the load on the core that the server has not.
func apply(b *testing.B, srv *testredis.Server, client *redis.Client, requests int) applied {
	b.Helper()
	cpu := serverCPU(b, client)
	host, port, _ := strings.Cut(srv.Addr(), ":")
	common := []string{
		"-c", lastCore(), "redis-benchmark", "-h", host, "-p", port, "-c", "50",
		"-n", strconv.Itoa(requests), "-r", "1000000", "-d", "64", "-t", "set,get", "--csv",
	}
	var took, worst float64
	out, err := exec.CommandContext(b.Context(), "taskset", common...).Output()
	if err != nil {
		b.Fatalf("redis-benchmark: %v\n%s", err, out)
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 3 {
		b.Fatalf("redis-benchmark says %q, %v", out, err)
	}
	for _, row := range rows[1:] {
		rate, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		p99, err := strconv.ParseFloat(row[6], 64)
		if err != nil {
			b.Fatal(err)
		}
		took += float64(requests) / rate
		worst = max(worst, p99)
	}
	cpu = serverCPU(b, client) - cpu
	return applied{rate: 2 * float64(requests) / took, p99: worst, cpu: 1000 * cpu / (2 * float64(requests))}
}

// warm runs the load once, since after a pause it is up to a sixth slower, and then
// loadRuns times, of which it tells the medians.
func warm(b *testing.B, srv *testredis.Server, client *redis.Client, requests int) applied {
	b.Helper()
	apply(b, srv, client, requests)
	var rate, p99, cpu []float64
	for range loadRuns {
		one := apply(b, srv, client, requests)
		rate, p99, cpu = append(rate, one.rate), append(p99, one.p99), append(cpu, one.cpu)
	}
	return applied{rate: median(rate), p99: median(p99), cpu: median(cpu)}
}

// calibrate returns how many requests last about loadFor.
func calibrate(b *testing.B, srv *testredis.Server, client *redis.Client) int {
	b.Helper()
	apply(b, srv, client, 40_000)
	return int(apply(b, srv, client, 40_000).rate * loadFor.Seconds() / 2)
}

// executed returns how long the server was executing the commands of the load and of
// the agents. What this benchmark asks itself is in neither.
func executed(b *testing.B, client *redis.Client) (load, agents time.Duration) {
	b.Helper()
	all := executions(b, client)
	if all["scan"] == 0 {
		b.Fatal("no agent swept meanwhile")
	}
	for command, took := range all {
		switch command {
		case "set", "get":
			load += took
		case "config", "slowlog", "info":
		default:
			agents += took
		}
	}
	return load, agents
}

// executions returns how long the server was executing each command.
func executions(b *testing.B, client *redis.Client) map[string]time.Duration {
	b.Helper()
	text, err := client.Info(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	all := map[string]time.Duration{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":")
		var calls, usec int64
		if _, err := fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &usec); err != nil {
			continue // the heading
		}
		command, _, _ := strings.Cut(name, "|")
		all[command] += time.Duration(usec) * time.Microsecond
	}
	return all
}

// perSecond is how many of them fell into each second.
func perSecond(n int, took time.Duration) string {
	return fmt.Sprintf("%.2f (%d in %.1f s)", float64(n)/took.Seconds(), n, took.Seconds())
}

// slow counts the slow commands, those of the agent and the others.
func slow(b *testing.B, client *redis.Client) (ours, others int) {
	b.Helper()
	list, err := client.SlowLogGet(b.Context(), -1).Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range list {
		if !strings.HasPrefix(entry.ClientName, "locksteward") {
			others++
			continue
		}
		ours++
		b.Logf("slow: %s %v", entry.Duration, clipped(entry.Args))
	}
	return ours, others
}

func clipped(args []string) []string { return args[:min(len(args), 4)] }

func lastCore() string { return strconv.Itoa(runtime.NumCPU() - 1) }

// realtime has a process go before all others on its core: what it is kept waiting
// for is not its execution time, and SLOWLOG does not tell one from the other.
func realtime(b *testing.B, pid int) {
	b.Helper()
	// Else the kernel has such a process stand still for a twentieth of each second.
	const limit = "/proc/sys/kernel/sched_rt_runtime_us"
	was, err := os.ReadFile(limit)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(limit, []byte("-1"), 0); err != nil {
		b.Fatalf("the server gets no real-time priority, which takes root: %v", err)
	}
	b.Cleanup(func() {
		if err := os.WriteFile(limit, was, 0); err != nil {
			b.Error(err)
		}
	})
	if out, err := exec.CommandContext(b.Context(), "chrt", "--all-tasks", "--fifo", "--pid", "1", strconv.Itoa(pid)).CombinedOutput(); err != nil {
		b.Fatalf("the server gets no real-time priority: %v\n%s", err, out)
	}
}

// pin ties a process to a core.
func pin(b *testing.B, pid, core int) {
	b.Helper()
	if out, err := exec.CommandContext(b.Context(), "taskset", "-a", "-p", "-c", strconv.Itoa(core), strconv.Itoa(pid)).CombinedOutput(); err != nil {
		b.Fatalf("taskset: %v\n%s", err, out)
	}
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// writeFigures writes a section of the results, if a file for them was named.
func writeFigures(b *testing.B, client *redis.Client, name, title, benchmark, about string, tables ...results.Table) {
	b.Helper()
	if *resultsFile == "" {
		return
	}
	info, err := client.InfoMap(b.Context(), "server").Result()
	if err != nil {
		b.Fatal(err)
	}
	err = results.Put(*resultsFile, results.Section{
		Name: name, Title: title, About: about,
		Machine: results.Describe(info["Server"]["redis_version"], "go test . -run '^$' -bench "+benchmark+" -benchtime 1x"),
		Tables:  tables,
	})
	if err != nil {
		b.Fatal(err)
	}
}
