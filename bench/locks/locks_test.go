package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == waiterArg {
		os.Exit(waitUntilKilled(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == memberArg {
		os.Exit(wantOverAndOver(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// needServer skips where there is no redis-server; CI must have it.
func needServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server")
	}
	if _, err := redisproc.Binary(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// tiny is a whole run in a few seconds.
var tiny = []string{
	"-rounds", "2", "-duration", "50ms", "-warmup", "20ms", "-goroutines", "1,4", "-cost-pairs", "100",
	"-contended", "300ms", "-waiters", "4", "-holds", "0s,1ms", "-dead", "0,2", "-held", "100", "-ttl", "3s", "-renew-window", "2500ms",
}

// All sections with all contestants: every cell has sane numbers. Not parallel,
// since it sets GOMAXPROCS for a moment.
func TestWholeRun(t *testing.T) {
	needServer(t)
	var progress bytes.Buffer
	s, err := parse(tiny, &progress)
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure(t.Context(), s, tiny, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	checkPairs(t, r)
	checkCosts(t, r)
	checkHandoff(t, r)
	checkDead(t, r)
	checkRenewal(t, r)
	if len(r.Promises) == 0 {
		t.Error("no promise was judged")
	}
	checkOutput(t, r)
}

// sane checks a number of each round.
func sane(t *testing.T, what string, s series, rounds int, least, most float64) {
	t.Helper()
	if len(s) != rounds {
		t.Errorf("%s: %d rounds, want %d", what, len(s), rounds)
	}
	for _, x := range s {
		if math.IsNaN(x) || x < least || x > most {
			t.Errorf("%s: %v, want %g to %g", what, s, least, most)
		}
	}
}

func checkPairs(t *testing.T, r *report) {
	t.Helper()
	if want := len(in(pairs)) * 2; len(r.Pairs) != want {
		t.Errorf("pairs: %d rows, want %d", len(r.Pairs), want)
	}
	for _, row := range r.Pairs {
		name := fmt.Sprintf("%s at %d: ", row.Library, row.Goroutines)
		sane(t, name+"pairs/s", row.PerSecond, 2, 20, 1e6)
		sane(t, name+"p50", row.P50, 2, 5, 1e6)
		sane(t, name+"p99", row.P99, 2, row.P50.min(), 1e6)
		sane(t, name+"server CPU", row.ServerCPU, 2, 1, 1e5)
		sane(t, name+"client CPU", row.ClientCPU, 2, 1, 1e5)
		sane(t, name+"allocations", row.Allocs, 2, 5, 1000)
		sane(t, name+"bytes", row.Bytes, 2, 100, 1e6)
	}
}

func checkCosts(t *testing.T, r *report) {
	t.Helper()
	if len(r.Costs) != len(in(costs)) {
		t.Errorf("costs: %d rows, want %d", len(r.Costs), len(in(costs)))
	}
	for _, row := range r.Costs {
		// A heartbeat may fall into the 100 pairs.
		sane(t, row.Library+": commands", row.Commands, 2, 2, 2.03)
		sane(t, row.Library+": allocations", row.Allocs, 2, 5, 200)
		sane(t, row.Library+": bytes", row.Bytes, 2, 100, 20_000)
		if row.Library == bareName {
			sane(t, row.Library+": inside scripts", row.Inside, 2, 0, 0)
		} else {
			sane(t, row.Library+": inside scripts", row.Inside, 2, 1, 30)
		}
		if row.Library == redsyncName && (row.Sent["set"] != 1 || row.Sent["evalsha"] != 1) {
			t.Errorf("redsync sends %v", row.Sent)
		}
	}
}

func checkHandoff(t *testing.T, r *report) {
	t.Helper()
	if want := len(in(handoff)) * 2; len(r.Handoff) != want {
		t.Errorf("handoff: %d rows, want %d", len(r.Handoff), want)
	}
	for _, row := range r.Handoff {
		name := fmt.Sprintf("%s, holds of %s: ", row.Library, row.Hold)
		most := 1000.0
		if row.Hold == 0 {
			most = 1e6
		}
		sane(t, name+"holds/s", row.PerSecond, 2, 5, most)
		sane(t, name+"held", row.Held, 2, micros(row.Hold), 1e5)
		sane(t, name+"smallest", row.Smallest, 2, 0, 0.3*most)
		sane(t, name+"largest", row.Largest, 2, 1, 0.3*most)
		sane(t, name+"ratio", row.Fairness, 2, 0, 1)
		sane(t, name+"passed on", row.Passed, 2, 0, 1)
		sane(t, name+"longest wait", row.LongestWait, 2, 1, 5000)
		sane(t, name+"inversions", row.Inversions, 2, 0, most)
		sane(t, name+"commands", row.Commands, 2, 1.5, 5000)
		sane(t, name+"server CPU", row.ServerCPU, 2, 10, 1e6)
		for i, passed := range row.Passed {
			if passed > 0 && (row.FromCall50[i] <= 0 || row.FromCall99[i] < row.FromCall50[i] || row.FromReturn50[i] >= row.FromCall50[i]) {
				t.Errorf("%shand-off p50 %v, p99 %v, p50 from return %v", name, row.FromCall50, row.FromCall99, row.FromReturn50)
			}
		}
	}
}

func checkDead(t *testing.T, r *report) {
	t.Helper()
	if want := len(in(dead)) * 2; len(r.Dead) != want {
		t.Errorf("dead: %d rows, want %d", len(r.Dead), want)
	}
	for _, row := range r.Dead {
		name := fmt.Sprintf("%s, %d dead: ", row.Library, row.Dead)
		sane(t, name+"wait", row.Wait, 2, 0.01, 10_000)
		if row.Dead > 0 {
			sane(t, name+"each", row.Each, 2, -1000, 10_000)
		}
	}
}

func checkRenewal(t *testing.T, r *report) {
	t.Helper()
	if len(r.Renewal) != len(in(renewal)) {
		t.Errorf("renewal: %d rows, want %d", len(r.Renewal), len(in(renewal)))
	}
	for _, row := range r.Renewal {
		// Due each second, and up to a tenth earlier: 100 to 111 a second.
		sane(t, row.Library+": renewals/s", row.PerSecond, 1, 60, 160)
		sane(t, row.Library+": client CPU", row.ClientCPU, 1, 0.01, 150)
		sane(t, row.Library+": server CPU", row.ServerCPU, 1, 0.01, 100)
		if row.Library != rueidisName {
			sane(t, row.Library+": late p99", row.Late99, 1, 0, 1000)
		}
	}
}

func checkOutput(t *testing.T, r *report) {
	t.Helper()
	var text, data bytes.Buffer
	markdown := section(r).Markdown()
	for _, err := range []error{writeText(&text, r), writeJSON(&data, r)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range tables(r) {
		if !strings.Contains(text.String(), "\n"+table.Title+"\n") || !strings.Contains(markdown, "\n### "+table.Title+"\n") {
			t.Errorf("table %q is not written", table.Title)
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Header) {
				t.Errorf("table %q: row %q for header %q", table.Title, row, table.Header)
			}
		}
	}
	if n := len(tables(r)); n != 7 {
		t.Errorf("%d tables, want 7", n)
	}
	var back struct {
		Pairs []struct {
			Library string
			Rate    struct{ Median float64 } `json:"pairs_per_s"`
		}
	}
	if err := json.Unmarshal(data.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Pairs) != len(r.Pairs) || back.Pairs[0].Rate.Median != r.Pairs[0].PerSecond.median() {
		t.Errorf("JSON has %+v", back)
	}
}

func TestFilesAreWritten(t *testing.T) {
	needServer(t)
	dir := t.TempDir()
	out, md := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.md")
	var stdout bytes.Buffer
	args := []string{"-sections", "costs", "-rounds", "1", "-cost-pairs", "20", "-json", out, "-markdown", md}
	if err := run(t.Context(), args, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{out: `"commands_per_pair"`, md: "### Costs of one pair"} {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", path, err, text)
		}
	}
	if !strings.Contains(stdout.String(), "Costs of one pair") {
		t.Errorf("stdout: %s", stdout.String())
	}
}

// cancelled cancels a run at its first line of progress that has a word in it.
type cancelled struct {
	word   string
	cancel context.CancelFunc
}

func (c *cancelled) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		c.cancel()
	}
	return len(p), nil
}

func TestInterrupt(t *testing.T) {
	needServer(t)
	for _, section := range sectionNames[:4] {
		ctx, cancel := context.WithCancel(t.Context())
		var stdout bytes.Buffer
		args := append([]string{"-sections", section}, tiny...)
		began := time.Now()
		err := run(ctx, args, &stdout, &cancelled{section + ", round 1", cancel})
		cancel()
		if !errors.Is(err, context.Canceled) || stdout.Len() > 0 {
			t.Errorf("%s: %v, stdout %q", section, err, stdout.String())
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %s to stop", section, took)
		}
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"-rounds", "0", "-goroutines", "1,x", "-holds", "-1s,y", "-sections", "pairs,nonsense", "-ttl", "1ms", "left"}, io.Discard)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"-rounds", "-goroutines", "-holds", "nonsense", "-ttl", "left"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s:\n%v", want, err)
		}
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}
