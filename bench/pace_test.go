package bench

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testredis"
)

// BenchmarkScan1M runs the program `locksteward scan` on a server with 1 M keys and 10 k locks that nobody else uses, as
// often as rounds says: at the default pace, the same with a busy loop on the agent's core, and without a pace, in turn
// with a loop of SCAN COUNT 1000. The server has the first core, all else the last one.
func BenchmarkScan1M(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("needs a core for the server and one for the agent")
	}
	srv := testredis.Start(b)
	client := srv.Client(b)
	load(b, client, 1_000_000, 10_000)
	binary := buildAgent(b)
	pin(b, srv.PID(), 0)
	scan := func(args ...string) {
		all := append([]string{"-c", lastCore(), binary, "scan", "--redis", srv.URL(), "--output", "json"}, args...)
		out, err := exec.CommandContext(b.Context(), "taskset", all...).Output()
		var found struct {
			Complete bool             `json:"complete"`
			Locks    []map[string]any `json:"locks"`
		}
		if jsonErr := json.Unmarshal(out, &found); jsonErr != nil || !found.Complete || len(found.Locks) != 10_000 {
			b.Fatalf("scan: %v, %v, complete %v, %d locks", err, jsonErr, found.Complete, len(found.Locks))
		}
	}
	var bare, unlimited, idle, busy runs
	for b.Loop() {
		for range rounds {
			bare.add(measure(b, client, func() { scanLoop(b, client) }))
			unlimited.add(measure(b, client, func() { scan("--pace", "unlimited") }))
			idle.add(measure(b, client, func() { scan() }))
			loop := exec.Command("taskset", "-c", lastCore(), "sh", "-c", "while :; do :; done")
			loop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := loop.Start(); err != nil {
				b.Fatal(err)
			}
			busy.add(measure(b, client, func() { scan() }))
			_ = loop.Process.Kill()
			_ = loop.Wait() // it was killed
		}
	}
	base := bare.median()
	cells := func(what, promised string, c cost) []string {
		return []string{what, results.Number(c.took), results.Number(c.cpu), results.Number(c.took / base.took), results.Number(c.cpu / base.cpu), promised}
	}
	rows := [][]string{
		cells("bare SCAN", "–", base),
		cells("`scan --pace unlimited`", "1.2 × time, 1.1 × CPU", unlimited.median()),
		cells("`scan`", "12,000 ms", idle.median()),
		cells("`scan`, a busy loop on its core", "24,000 ms", busy.median()),
	}
	for _, row := range rows {
		b.Log(strings.Join(row, " | "))
	}
	writeFigures(b, client, "scan", "The program `scan` at its pace", "BenchmarkScan1M",
		"1 M ordinary keys and 10 k locks on a server that nobody else uses, which has a core of its own. The program's start, its second look at locks without TTL (2 s) and its output are part of the time.",
		results.Table{
			Title:  fmt.Sprintf("Medians of %d rounds", len(idle)),
			Header: []string{"What", "time, ms", "server CPU, ms", "time, ×", "CPU, ×", "promised"},
			Rows:   rows,
		})
}
