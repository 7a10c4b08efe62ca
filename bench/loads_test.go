package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// What is promised for an application that does not saturate its server (issue 29).
const (
	usedP99More  = 100 * time.Microsecond
	halfSweep    = 60 * time.Second
	tenthSweep   = 20 * time.Second
	firstSecond  = 1.5 // times the p99 without an agent
	usedWindow   = 4 * time.Second
	usedConns    = 50
	sweepsToSee  = 5
	beginsWindow = 3 * time.Second
)

// BenchmarkUsedServer has a steady load use half of a server, and then a tenth, alone, alone again, and while an agent of default settings makes its
// first sweep of 1 M keys, in turn; and has the load of half a server begin in the middle of such a sweep. The server has one core, load and agent
// share the other.
func BenchmarkUsedServer(b *testing.B) {
	srv := testredis.Start(b)
	client := srv.Client(b)
	load(b, client, 1_000_000, 10_000)
	pin(b, srv.PID(), 0)
	realtime(b, srv.PID())
	binary := buildAgent(b)
	pin(b, os.Getpid(), 1)
	for b.Loop() {
		var rows [][]string
		for _, part := range []struct {
			name  string
			use   float64
			sweep time.Duration
		}{{"half used", 0.5, halfSweep}, {"used at 10 %", 0.1, tenthSweep}} {
			rows = append(rows, measureUsed(b, srv, client, binary, part.name, part.use, part.sweep)...)
		}
		rows = append(rows, measureBegin(b, srv, client, binary)...)
		for _, row := range rows {
			b.Log(strings.Join(row, " | "))
		}
		writeFigures(b, client, "used", "An application on a server that it does not fill", "BenchmarkUsedServer",
			fmt.Sprintf("SET and GET of 64 bytes over %d connections, each waits for its answer, at a rate that takes half or a tenth of the server's main thread, among 1 M keys and 10 k locks: "+
				"alone, alone again, and while an agent of default settings makes its first sweep, in turn, for %s each. The server is pinned to one core; the load and the agent share the other.", usedConns, usedWindow),
			results.Table{
				Title:  fmt.Sprintf("Medians of %d rounds; times in µs from the write of a command to its answer", *loadRounds),
				Header: []string{"What", "alone", "beside an agent", "difference", "of alone again (noise)", "promised"},
				Rows:   rows,
				Note:   fmt.Sprintf("Differences are taken round by round; in brackets the middle half of them. The length of a sweep is the median of the first %d rounds.", sweepsToSee),
			})
	}
}

// measureUsed measures beside a load that uses so much of the server.
func measureUsed(b *testing.B, srv *testredis.Server, client *redis.Client, binary, name string, use float64, promised time.Duration) [][]string {
	b.Helper()
	s := newSteady(b, srv)
	defer s.close()
	s.calibrate(b, client, use)
	var alone, again, beside, sweeps []float64
	window := func(into *[]float64) {
		s.run(b, time.Second) // warms up
		*into = append(*into, p99(s.run(b, usedWindow)))
	}
	parts := [3]func(){
		func() { window(&alone) },
		func() { window(&again) },
		func() {
			stop := s.background(b)
			a := startAgent(b, binary, srv.URL())
			defer a.stop()
			a.awaitSweep()
			stop()
			window(&beside)
			if done := a.samples(b.Context()); sum(done, "locksteward_sweep_last_success_timestamp_seconds") != 0 {
				b.Errorf("%s: the sweep ended within the window of %s", name, usedWindow)
			}
			if len(sweeps) < sweepsToSee {
				stop := s.background(b)
				m := a.await(5*time.Minute, "the sweep ends", func(m map[string]float64) bool {
					return sum(m, "locksteward_sweep_last_success_timestamp_seconds") != 0
				})
				stop()
				sweeps = append(sweeps, sum(m, "locksteward_sweep_duration_seconds"))
			}
		},
	}
	for round := range *loadRounds {
		for _, i := range orders[round%len(orders)] {
			parts[i]()
		}
		b.Logf("%s, round %d: p99 %.0f, again %.0f, beside an agent %.0f µs; sweeps of %.1f s", name, round+1, alone[round], again[round], beside[round], sweeps)
	}
	return [][]string{
		{
			name + ": p99", results.Number(median(alone)), results.Number(median(beside)), differences(alone, beside), differences(alone, again),
			fmt.Sprintf("≤ +%d", usedP99More.Microseconds()),
		},
		{name + ": length of a sweep, s", "–", results.Number(median(sweeps)), "–", "–", fmt.Sprintf("≤ %.0f", promised.Seconds())},
	}
}

// measureBegin has the load begin while an agent sweeps a server that nobody used.
func measureBegin(b *testing.B, srv *testredis.Server, client *redis.Client, binary string) [][]string {
	b.Helper()
	s := newSteady(b, srv)
	defer s.close()
	s.calibrate(b, client, 0.5)
	type begun struct{ first, rest []float64 }
	var alone, again, beside begun
	window := func(into *begun) {
		got := s.run(b, beginsWindow)
		cut, _ := slices.BinarySearchFunc(got, time.Second, func(t timed, d time.Duration) int { return int(t.at - d) })
		into.first = append(into.first, p99(got[:cut]))
		into.rest = append(into.rest, p99(got[cut:]))
	}
	rest := func() {
		select {
		case <-b.Context().Done():
		case <-time.After(2 * time.Second):
		}
	}
	parts := [3]func(){
		func() { rest(); window(&alone) },
		func() { rest(); window(&again) },
		func() {
			a := startAgent(b, binary, srv.URL())
			defer a.stop()
			a.awaitSweep()
			window(&beside)
		},
	}
	for round := range *loadRounds {
		for _, i := range orders[round%len(orders)] {
			parts[i]()
		}
		b.Logf("begins, round %d: p99 of the first second %.0f, again %.0f, beside %.0f µs; then %.0f, %.0f, %.0f", round+1,
			alone.first[round], again.first[round], beside.first[round], alone.rest[round], again.rest[round], beside.rest[round])
	}
	ratios := func(of []float64) string {
		list := make([]float64, len(of))
		for i := range of {
			list[i] = of[i] / alone.first[i]
		}
		return fmt.Sprintf("× %.2f", median(list))
	}
	return [][]string{
		{"begins within a sweep: p99 of its first second", results.Number(median(alone.first)), results.Number(median(beside.first)), ratios(beside.first), ratios(again.first), fmt.Sprintf("≤ × %g", firstSecond)},
		{
			"p99 of the two seconds after it", results.Number(median(alone.rest)), results.Number(median(beside.rest)), differences(alone.rest, beside.rest),
			differences(alone.rest, again.rest), fmt.Sprintf("≤ +%d", usedP99More.Microseconds()),
		},
	}
}

// awaitSweep waits until the agent watches and is in the middle of its first sweep, the start of the program over.
func (a *agentProc) awaitSweep() {
	a.b.Helper()
	a.await(30*time.Second, "the agent sweeps", func(m map[string]float64) bool {
		return sum(m, "locksteward_watch_mode", `mode="tracking"`) == 1 && sum(m, "locksteward_pace_share") > 0 &&
			sum(m, "locksteward_budget_throttled_seconds_total") > 1
	})
}

// differences are those of b from a, round by round.
func differences(a, b []float64) string {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = b[i] - a[i]
	}
	slices.Sort(list)
	n := len(list)
	return fmt.Sprintf("%+.0f (%+.0f to %+.0f)", median(list), list[n/4], list[n-1-n/4])
}

// timed is one command: when it was sent, since the load began, and how long its answer took.
type timed struct{ at, took time.Duration }

// p99 is the 99th percentile, in µs.
func p99(list []timed) float64 {
	took := make([]time.Duration, len(list))
	for i, t := range list {
		took[i] = t.took
	}
	slices.Sort(took)
	return float64(took[len(took)*99/100].Nanoseconds()) / 1000
}

// steady is a load of so many commands a second, whatever the server takes for them.
type steady struct {
	conns     []net.Conn
	perSecond float64
}

func newSteady(b *testing.B, srv *testredis.Server) *steady {
	b.Helper()
	s := &steady{perSecond: 5000}
	for range usedConns {
		cn, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			b.Fatal(err)
		}
		s.conns = append(s.conns, cn)
	}
	return s
}

func (s *steady) close() {
	for _, cn := range s.conns {
		_ = cn.Close()
	}
}

// calibrate sets the rate that takes so much of the server's time.
func (s *steady) calibrate(b *testing.B, client *redis.Client, use float64) {
	b.Helper()
	for range 4 {
		const d = 1500 * time.Millisecond
		cpu, began := serverCPU(b, client), time.Now()
		n := len(s.run(b, d))
		used := (serverCPU(b, client) - cpu) / float64(time.Since(began).Milliseconds())
		b.Logf("%.0f commands a second (%.0f wanted) use %.1f %% of the server", float64(n)/d.Seconds(), s.perSecond, 100*used)
		s.perSecond *= use / used
	}
}

// background runs the load until the function that it returns is called, which waits for its end.
func (s *steady) background(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.send(ctx, b, time.Hour)
	}()
	return func() { cancel(); <-done }
}

// run runs the load and returns its commands in the order in which they were sent.
func (s *steady) run(b *testing.B, d time.Duration) []timed {
	b.Helper()
	return s.send(b.Context(), b, d)
}

func (s *steady) send(ctx context.Context, b *testing.B, d time.Duration) []timed {
	lists := make([][]timed, len(s.conns))
	began := time.Now()
	var wg sync.WaitGroup
	for i, cn := range s.conns {
		wg.Go(func() {
			each := time.Duration(float64(len(s.conns)) / s.perSecond * float64(time.Second))
			list := make([]timed, 0, min(int(d/each)+1000, 1<<14))
			value := strings.Repeat("x", 64)
			buf := make([]byte, 128)
			next := rand.N(each)
			for n := 0; next < d && ctx.Err() == nil; n++ {
				if wait := next - time.Since(began); wait > 0 {
					<-time.After(wait)
				}
				next += each/2 + rand.N(each)
				key := fmt.Sprintf("user:steady:%d:%d", i, rand.N(100))
				request, answer := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$64\r\n%s\r\n", len(key), key, value), "+OK\r\n"
				if n%2 == 1 {
					request, answer = fmt.Sprintf("*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key), ""
				}
				at := time.Since(began)
				_, err := io.WriteString(cn, request)
				var got int
				if err == nil {
					got, err = cn.Read(buf)
				}
				took := time.Since(began) - at
				if err != nil || answer != "" && string(buf[:got]) != answer || answer == "" && !bytes.HasPrefix(buf[:got], []byte("$")) {
					b.Errorf("steady load: %q, %v", buf[:got], err)
					return
				}
				list = append(list, timed{at, took})
			}
			lists[i] = list
		})
	}
	wg.Wait()
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(x, y timed) int { return int(x.at - y.at) })
	return all
}
