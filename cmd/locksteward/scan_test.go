package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// A scan that saw a FLUSHALL shows what it found, though no lock is left to list.
func TestScanAcrossAFlushShowsTheFinding(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	ctx, client := t.Context(), srv.Client(t)
	for _, key := range []string{"lock:a", "lock:b", "lock:c"} {
		if err := client.Set(ctx, key, "9a2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flushed := false
	result, err := scan.Run(ctx, scan.Options{
		Connect: connect.Config{URL: srv.URL()}, Observe: 1500 * time.Millisecond, NoThrottle: true,
		Record: func(locksteward.Sweep) error {
			if flushed {
				return nil
			}
			flushed = true
			return client.FlushAll(ctx).Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := api.NewScan(result.Sweep, result.Findings, "en")
	if len(out.Locks) != 0 || len(out.Findings) == 0 {
		t.Fatalf("%d locks, findings %+v", len(out.Locks), out.Findings)
	}
	var b bytes.Buffer
	if err := writeScan(&b, out, true); err != nil {
		t.Fatal(err)
	}
	for _, f := range out.Findings {
		if !strings.Contains(b.String(), f.Rule) {
			t.Errorf("finding %s is not shown:\n%s", f.Rule, b.String())
		}
	}
}

// "No locks" of a scan that was cut short is not the same as of a whole one.
func TestScanWithoutLocksSaysThatItIsIncomplete(t *testing.T) {
	t.Parallel()
	out := api.Scan{KeysScanned: 7, Incomplete: []api.Incomplete{{Node: "a:1", Reason: "timeout"}}}
	var b bytes.Buffer
	if err := writeScan(&b, out, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "INCOMPLETE") {
		t.Errorf("got %s", b.String())
	}
	b.Reset()
	out.Complete, out.Incomplete = true, nil
	if err := writeScan(&b, out, true); err != nil || b.String() != "no locks; 7 names read in 0s\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

// How far a long sweep is stands in one line: on a terminal it is replaced, elsewhere one a minute is written.
func TestProgressWords(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for want, p := range map[string]scanner.Progress{
		"50 % of 1000000 keys in 5.0s, 100000 keys/s, about 5.0s left": {Started: now.Add(-5 * time.Second), Keys: 500_000, OfKeys: 1_000_000},
		"700 keys in 500ms": {Started: now.Add(-500 * time.Millisecond), Keys: 700, OfKeys: -1},
	} {
		if got := progressWords(p, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var b strings.Builder
	p := newProgress(&b)
	words := func(time.Time) string { return "far" }
	p.update(words)
	if b.Len() > 0 {
		t.Errorf("at once: %q", b.String())
	}
	p.next = time.Now()
	p.update(words)
	p.update(words)
	p.done()
	if b.String() != "locksteward: far\n" {
		t.Errorf("after a minute: %q", b.String())
	}
}
