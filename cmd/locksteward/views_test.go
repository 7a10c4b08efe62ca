package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
)

// A receiver that fails is not ok, long before it is left alone, and says why.
func TestReceiversSayHowTheyDo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := writeReceivers(&out, []api.Receiver{
		{Name: "fine", Configured: true},
		{Name: "late", Configured: true, Waiting: 1, Failing: "status 500\nInternal"},
		{Name: "rests", Configured: true, Waiting: 9, Failing: "status 500", CircuitOpen: true},
		{Name: "gone", Waiting: 1},
		{Name: "left", Configured: true, CircuitOpen: true, Gone: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"RECEIVER", "fine ok 0 - 0 -", `late failing 1 0s 0 status 500\nInternal`, "rests accepts nothing 9 0s 0 status 500", "gone not configured 1 0s 0 -", "left gone 0 - 0 -"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
}

// The worst comes first, and what fires before what does not.
func TestExplanationBeginsWithTheWorst(t *testing.T) {
	t.Parallel()
	fires := func(rule, severity string) api.Verdict {
		return api.Verdict{Rule: rule, Result: "fires", Finding: &api.Finding{Rule: rule, Severity: severity}}
	}
	in := []api.Verdict{{Rule: "a", Result: "clear"}, fires("b", "info"), fires("c", "warning"), fires("d", "critical"), fires("e", "warning")}
	var got []string
	for _, v := range worstFirst(in) {
		got = append(got, v.Rule)
	}
	if want := []string{"d", "c", "e", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var out bytes.Buffer
	if err := writeExplanation(&out, api.LockDetail{Verdicts: in}, true); err != nil {
		t.Fatal(err)
	}
	if critical, warning := strings.Index(out.String(), "CRITICAL"), strings.Index(out.String(), "WARNING"); critical < 0 || warning < critical {
		t.Errorf("the order is\n%s", out.String())
	}
}

// The line of the audit trail names the sinks that lack entries, and only those.
func TestStatusNamesSinksThatLackEntries(t *testing.T) {
	t.Parallel()
	s := api.AuditStatus{Entries: 7, KeyID: "ed25519:00ff", Checkpoint: &api.Checkpoint{At: time.Unix(0, 0)}, Sinks: []api.AuditSink{
		{Name: "log"}, {Name: "siem", Behind: 5, Missed: 2, Problem: "connection\nrefused"}, {Name: "archive", Behind: 1},
	}}
	want := "7 entries, signed by ed25519:00ff, last checkpoint at " + time.Unix(0, 0).Format(time.DateTime) +
		"; siem is behind by 5, lost 2 to retention, fails: " + oneLine("connection\nrefused") + "; archive is behind by 1"
	if got := auditWords(s); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := auditWords(api.AuditStatus{Unsigned: "no key"}); got != "0 entries, not signed: no key" {
		t.Error(got)
	}
}
