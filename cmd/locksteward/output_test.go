package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/initcfg"
	"github.com/locksteward/locksteward/source/redis/doctor"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                       "0s",
		340 * time.Millisecond:  "340ms",
		4200 * time.Millisecond: "4.2s",
		190 * time.Second:       "3m10s",
		302 * time.Minute:       "5h02m",
		76 * time.Hour:          "3d04h",
		-2 * time.Second:        "-2.0s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, with \\n escaped": "plain, with \\n escaped",
		"two\nlines":              "two\\nlines",
		"\x1b[2Jgone":             "\\x1b[2Jgone",
		"锁":                       "锁",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestEndlessKeyLeavesTheTableItsColumns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	locks := []api.Lock{
		{Key: api.NewKey("lock:" + strings.Repeat("锁\x1b", 4096)), Holder: api.Holder{App: strings.Repeat("a", 9000)}},
		{Key: api.NewKey("lock:short")},
	}
	if err := writeLocks(&b, locks, true); err != nil {
		t.Fatal(err)
	}
	if err := writeRequests(&b, []api.Request{{ID: "r-1", Evidence: api.Evidence{Key: locks[0].Key}}}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 1200 {
			t.Errorf("a line of %d bytes: %.80s…", len(line), line)
		}
	}
	if !strings.Contains(b.String(), "lock:short ") || !strings.Contains(b.String(), "characters)") {
		t.Errorf("table:\n%s", b.String())
	}
}

// What init proposes fits a terminal, however long the names are, and a pattern is the last to be cut.
func TestProposalsFitTheTerminal(t *testing.T) {
	t.Parallel()
	locks := map[string]locksteward.Lock{}
	for i := range 9 {
		key := fmt.Sprintf("lock:%s:order:%d", strings.Repeat("department-", 9), i)
		locks[key] = locksteward.Lock{Observation: locksteward.Observation{Key: key, Kind: locksteward.KindLock, Library: "token", TTL: locksteward.NoExpiry}}
	}
	plan := initcfg.Propose(initcfg.Seen{Locks: locks, Open: locks, Waits: map[string]initcfg.Wait{}}, 1)
	var b strings.Builder
	if err := writeProposals(screen{&b, 80, false}, plan); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "MATCH") || !strings.Contains(b.String(), "order:*") {
		t.Errorf("table:\n%s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

// TestHeartbeatCannotMoveTheCursor: who can write to Redis can write a heartbeat.
func TestHeartbeatCannotMoveTheCursor(t *testing.T) {
	t.Parallel()
	const evil = "web\x1b[2J\x1b]0;gone\a\nfree: yes"
	var b strings.Builder
	err := writeDetail(&b, api.LockDetail{
		Lock:      api.Lock{Key: api.NewKey("lock:" + evil), Holder: api.Holder{App: evil, Host: evil, Instance: evil}},
		Heartbeat: &api.Instance{Host: evil, App: evil}, Claim: &api.Claim{Purpose: evil, Class: evil, Trace: evil},
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\a") || strings.Contains(b.String(), "\nfree: yes") {
		t.Errorf("the holder's text reaches the terminal: %q", b.String())
	}
}

// A bound that tells nothing is not shown as a length: a median of "≤5m00s" beside a
// 95th percentile of "≥0ms" reads as if the median were the larger.
func TestUnknownLengthIsUnknown(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]api.HoldBounds{
		"unknown":     {AtLeastMs: 0, AtMostMs: new(int64(300_000))},
		"≤4.0s":       {AtLeastMs: 0, AtMostMs: new(int64(4000))},
		"200ms-2.2s":  {AtLeastMs: 200, AtMostMs: new(int64(2200))},
		"30.0s-3m00s": {AtLeastMs: 30_000, AtMostMs: new(int64(180_000))},
		"≥2.0s":       {AtLeastMs: 2000},
	} {
		if got := showBounds(&b); got != want {
			t.Errorf("%+v is shown as %q, want %q", b, got, want)
		}
	}
	if got := showBounds(&api.HoldBounds{}); got != "unknown" {
		t.Errorf("nothing known is shown as %q", got)
	}
}

// JSON on a terminal cannot move the cursor or turn the line either.
func TestJSONCannotMoveTheCursor(t *testing.T) {
	t.Parallel()
	const evil = "lock:\u009b2J\u202egnp.exe"
	var b strings.Builder
	if err := writeJSON(&b, api.Scan{Locks: []api.Lock{{Key: api.NewKey(evil), Holder: api.Holder{App: evil}}}}); err != nil {
		t.Fatal(err)
	}
	var back api.Scan
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Locks[0].Key.Key != evil {
		t.Errorf("got %+v, %v", back.Locks, err)
	}
	if strings.ContainsAny(b.String(), "\u009b\u202e") {
		t.Errorf("got %q", b.String())
	}
}

// On a terminal what doctor found is broken before its edge, under itself; in a file it is one line.
func TestExamFitsTheTerminal(t *testing.T) {
	t.Parallel()
	report := doctor.Report{Target: "main", URL: "redis://h", Checks: []doctor.Check{
		{Name: "rights", Status: doctor.Warn, Found: strings.Repeat("many words ", 20) + "end", Todo: strings.Repeat("do this ", 20) + "end"},
	}}
	var b, file strings.Builder
	if err := errors.Join(writeExam(screen{&b, 60, false}, report, false), writeExam(&file, report, false)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for _, line := range lines[2:] {
		if len(line) > 60 || !strings.HasPrefix(line, strings.Repeat(" ", 22)) {
			t.Errorf("%q of %d", line, len(line))
		}
	}
	if whole := strings.Join(strings.Fields(b.String()), " "); whole != strings.Join(strings.Fields(file.String()), " ") {
		t.Errorf("on a terminal %q, in a file %q", whole, file.String())
	}
	if n := strings.Count(file.String(), "\n"); n != 3 {
		t.Errorf("%d lines in a file: %q", n, file.String())
	}
}
