package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// BenchmarkScan10M runs the program `locksteward scan` at the default pace, and once without one, on a server with 10 M keys and 10 k locks that nobody
// else uses: how long it takes, and what the program itself needs.
func BenchmarkScan10M(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("needs a core for the server and one for the agent")
	}
	srv := testredis.Start(b)
	client := srv.Client(b)
	loadFrom(b, client, 0, 10_000_000)
	loadHealthy(b, client, 10_000)
	binary := buildAgent(b)
	pin(b, srv.PID(), 0)
	for b.Loop() {
		var rows [][]string
		row := func(what, promised string, args ...string) {
			var own program
			c := measure(b, client, func() { own = scanProgram(b, binary, srv.URL(), args...) })
			rows = append(rows, []string{
				what, results.Number(c.took), results.Number(c.cpu), results.Number(float64(own.cpu.Milliseconds()) / 10), results.Number(own.memory), promised,
			})
			b.Log(strings.Join(rows[len(rows)-1], " | "))
		}
		row("`scan --pace unlimited`", "–", "--pace", "unlimited")
		for range 2 {
			row("`scan`", "150,000 ms")
		}
		writeFigures(b, client, "scan10m", "Ten million keys", "BenchmarkScan10M",
			"10 M ordinary keys and 10 k locks on a server that nobody else uses, which has a core of its own; each line is one run.",
			results.Table{
				Title:  "Runs of `locksteward scan`",
				Header: []string{"What", "time, ms", "server CPU, ms", "own CPU per million keys, ms", "own memory at most, MiB", "promised"},
				Rows:   rows,
			})
	}
}

// program is what one run of the program needed.
type program struct {
	cpu    time.Duration
	memory float64 // MiB at most
}

// scanProgram runs `locksteward scan`, which must be complete and find 10 k locks, on the last core.
func scanProgram(b *testing.B, binary, url string, args ...string) program {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "taskset", append([]string{"-c", lastCore(), binary, "scan", url, "--output", "json"}, args...)...)
	out, err := cmd.Output()
	var found struct {
		Complete bool             `json:"complete"`
		Locks    []map[string]any `json:"locks"`
	}
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil || !found.Complete || len(found.Locks) != 10_000 {
		b.Fatalf("scan: %v, %v, complete %v, %d locks", err, jsonErr, found.Complete, len(found.Locks))
	}
	p := program{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.memory = float64(usage.Maxrss) / 1024
	}
	return p
}

// BenchmarkScan1M runs the program `locksteward scan` on a server with 1 M keys and 10 k locks that nobody else uses, as
// often as rounds says: at the default pace, the same with a busy loop on the agent's core, and without a pace, in turn
// with a loop of SCAN COUNT 1000. The server has the first core, all else the last one.
func BenchmarkScan1M(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("needs a core for the server and one for the agent")
	}
	srv := testredis.Start(b)
	client := srv.Client(b)
	loadFrom(b, client, 0, 1_000_000)
	loadHealthy(b, client, 10_000)
	binary := buildAgent(b)
	pin(b, srv.PID(), 0)
	own := map[string][]float64{} // CPU of the program, ms
	scan := func(what string, args ...string) {
		own[what] = append(own[what], float64(scanProgram(b, binary, srv.URL(), args...).cpu.Milliseconds()))
	}
	var bare, unlimited, idle, busy runs
	for b.Loop() {
		for range rounds {
			bare.add(measure(b, client, func() { scanLoop(b, client) }))
			unlimited.add(measure(b, client, func() { scan("unlimited", "--pace", "unlimited") }))
			idle.add(measure(b, client, func() { scan("idle") }))
			loop := exec.Command("taskset", "-c", lastCore(), "sh", "-c", "while :; do :; done")
			loop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := loop.Start(); err != nil {
				b.Fatal(err)
			}
			busy.add(measure(b, client, func() { scan("busy") }))
			_ = loop.Process.Kill()
			_ = loop.Wait() // it was killed
		}
	}
	base := bare.median()
	cells := func(what, key, promised string, c cost) []string {
		program := "–"
		if list := own[key]; len(list) > 0 {
			program = results.Number(median(list))
		}
		return []string{what, results.Number(c.took), results.Number(c.cpu), results.Number(c.took / base.took), results.Number(c.cpu / base.cpu), program, promised}
	}
	rows := [][]string{
		cells("bare SCAN", "", "–", base),
		cells("`scan --pace unlimited`", "unlimited", "1.2 × time, 1.1 × CPU", unlimited.median()),
		cells("`scan`", "idle", "12,000 ms, own CPU at most twice that without a pace", idle.median()),
		cells("`scan`, a busy loop on its core", "busy", "24,000 ms", busy.median()),
	}
	for _, row := range rows {
		b.Log(strings.Join(row, " | "))
	}
	writeFigures(b, client, "scan", "The program `scan` at its pace", "BenchmarkScan1M",
		"1 M ordinary keys and 10 k locks on a server that nobody else uses, which has a core of its own. The program's start and its output are part of the time; all locks have a TTL, so that none needs a second look.",
		results.Table{
			Title:  fmt.Sprintf("Medians of %d rounds", len(idle)),
			Header: []string{"What", "time, ms", "server CPU, ms", "time, ×", "CPU, ×", "own CPU, ms", "promised"},
			Rows:   rows,
		})
}
