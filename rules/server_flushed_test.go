package rules

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// A sweep that ended before a flush does not know of it, and may be judged after the
// watch has reported it: the finding stands until a sweep knows better.
func TestFlushReportedAfterTheEndOfASweep(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	sweep := func(at time.Time, events ...locksteward.ServerEvent) locksteward.Sweep {
		s := sweepAt(at)
		s.Nodes, s.Events = make([]locksteward.NodeState, 1), events
		return s
	}
	e.Evaluate(sweep(t0))
	received := locksteward.Update{Target: "redis", At: after(1500 * time.Millisecond), Events: []locksteward.ServerEvent{
		{Kind: locksteward.ServerFlushed, Node: "n1", After: t0, At: after(1400 * time.Millisecond), Locks: 40},
	}}
	fires := func() bool {
		for _, f := range e.Findings() {
			if f.Rule == "server/flushed" {
				return true
			}
		}
		return false
	}
	if e.EvaluateWatched(received); !fires() {
		t.Fatal("what the watch received is not reported")
	}
	if e.Evaluate(sweep(after(time.Second))); !fires() {
		t.Error("a sweep that ended before the flush takes it back")
	}
	if e.Evaluate(sweep(after(3 * time.Second))); fires() {
		t.Error("a sweep that ended after it, and found none, does not take it back")
	}
}

// A restart that lost locks explains each hold that went with it: one message, and the
// holds are shown beside it.
func TestRestartExplainsLostHolds(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	s := lossAt(t0, new(after(-2*time.Second)))
	s.Losses[0].How, s.Losses[0].Deadline, s.Losses[0].Node = locksteward.EndedDeleted, after(20*time.Second), "n1"
	s.Nodes = make([]locksteward.NodeState, 1)
	s.Events = []locksteward.ServerEvent{{
		Kind: locksteward.ServerRestarted, Node: "n1", After: after(-time.Second), At: t0, Locks: 1, Keys: []string{"a"}, Classes: map[string]int{"default": 1},
	}}
	for _, tr := range e.Evaluate(s) {
		if Notifies(tr.Finding) != (tr.Finding.Rule == ServerRestarted) {
			t.Errorf("%s %s notifies: %v", tr.Finding.Rule, tr.Finding.Severity, Notifies(tr.Finding))
		}
	}
	var lost, restarted locksteward.Finding
	for _, f := range e.Findings() {
		switch f.Rule {
		case "hold/lost":
			lost = f
		case ServerRestarted:
			restarted = f
		}
	}
	if restarted.Severity != locksteward.SeverityCritical || lost.InhibitedBy != restarted.Fingerprint() {
		t.Errorf("%s %q explains %q, inhibited by %q", restarted.Severity, catalogue.Text("en", restarted.Summary), catalogue.Text("en", lost.Summary), lost.InhibitedBy)
	}
}
