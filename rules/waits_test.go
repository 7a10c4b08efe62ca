package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
)

// deadlock is two sessions that wait for each other on one target, as a complete
// sweep sees them.
func deadlock(at time.Time) locksteward.Sweep {
	a, b := ourLock("redis", "a", "ca", "s1", t0.Add(-time.Minute)), ourLock("redis", "b", "cb", "s2", t0.Add(-time.Second))
	a.Waiters, b.Waiters, a.At, b.At = 1, 1, at, at
	s := sweepAt(at, a, b)
	s.Waiters = []locksteward.Waiter{
		waiterOf("redis", "a", "wa", "s2", t0.Add(-time.Second)), waiterOf("redis", "b", "wb", "s1", t0),
	}
	return s
}

func cyclesOf(ts []locksteward.Transition) []locksteward.Transition {
	var out []locksteward.Transition
	for _, t := range ts {
		if t.Finding.Rule == WaitCycle {
			out = append(out, t)
		}
	}
	return out
}

func only(t *testing.T, e *Engine) locksteward.Finding {
	t.Helper()
	all := e.Findings()
	if len(all) != 1 {
		t.Fatalf("findings %+v, want one", all)
	}
	return all[0]
}

func TestDeadlockIsReportedOnceAfterTwoReads(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	wantBrief(t, e.Evaluate(deadlock(t0)))
	if f := only(t, e); f.Status != locksteward.StatusPending || len(f.CounterEvidence) != 1 {
		t.Fatalf("after one read: %+v", f)
	}
	if due := e.Due("redis"); len(due) != 2 || due[0].Key != "a" || due[1].Key != "b" || len(e.Due("other")) != 0 {
		t.Fatalf("due for a second look: %+v", due)
	}
	got := e.Evaluate(deadlock(after(time.Second)))
	if len(got) != 1 || got[0].Finding.Status != locksteward.StatusFiring {
		t.Fatalf("after two reads: %+v", got)
	}
	f := got[0].Finding
	// s2 took its lock last, so it has the least work to lose.
	if f.Key != "b" || f.Severity != locksteward.SeverityCritical || f.Risk != locksteward.RiskDeadlock || f.Library != "locksteward" {
		t.Errorf("finding %+v", f)
	}
	for _, want := range []string{
		"session s1 holds a", "waits for b", "session s2 holds b", "waits for a",
		"seen in two reads", "suggested victim: session s2, which holds b (host web-1, pid 7)",
	} {
		if !strings.Contains(strings.Join(rendered("en", f.Evidence), "\n"), want) {
			t.Errorf("evidence %q does not say %q", rendered("en", f.Evidence), want)
		}
	}
	if due := e.Due("redis"); len(due) != 0 {
		t.Errorf("still due: %+v", due)
	}
	// Whatever is said again is reported once.
	for n := range 5 {
		wantBrief(t, e.Evaluate(deadlock(after(time.Duration(2+n)*time.Second))))
	}
	if again := only(t, e); again.Fingerprint() != f.Fingerprint() {
		t.Error("the same deadlock has another fingerprint")
	}
	// The victim gives up.
	free := deadlock(after(10 * time.Second))
	free.Waiters = free.Waiters[1:]
	free.Locks[0].Waiters = 0
	if ts := e.Evaluate(free); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusResolved || ts[0].Finding.Fingerprint() != f.Fingerprint() {
		t.Errorf("broken: %+v", ts)
	}
	wantFindings(t, e)
}

func TestSecondReadMayBeDirect(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(deadlock(t0))
	second := deadlock(after(time.Second)).Update()
	if ts := e.EvaluateDirect(second); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusFiring {
		t.Fatalf("%+v", ts)
	}
	// Direct reads that say nothing of waiters change nothing.
	for i := range second.Locks {
		second.Locks[i].Waiters = -1
	}
	wantBrief(t, evaluateLocks(e, "redis", after(2*time.Second), second.Locks, nil))
	// One that shows another hold breaks it.
	next := ourLock("redis", "b", "cb2", "s3", after(2*time.Second))
	if ts := evaluateLocks(e, "redis", after(3*time.Second), []locksteward.Lock{next}, nil); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusResolved {
		t.Fatalf("%+v", ts)
	}
}

func TestOtherHoldsOrWaitsAreNotTheSameDeadlock(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*locksteward.Sweep){
		"another hold": func(s *locksteward.Sweep) { s.Locks[0].Claim.ID, s.Locks[0].TokenDigest = "ca2", "hmac-sha256:ca2" },
		"another wait": func(s *locksteward.Sweep) { s.Waiters[1].ID = "wb2" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, nil, nil)
			first := e.Evaluate(deadlock(t0))
			before := only(t, e)
			s := deadlock(after(time.Second))
			change(&s)
			if ts := append(first, e.Evaluate(s)...); len(cyclesOf(ts)) != 0 {
				t.Fatalf("reported: %+v", ts)
			}
			if f := only(t, e); f.Status != locksteward.StatusPending || f.Fingerprint() == before.Fingerprint() {
				t.Fatalf("%+v", f)
			}
		})
	}
}

func TestCutSweepsKeepADeadlock(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(deadlock(t0))
	e.Evaluate(deadlock(after(time.Second)))
	wantBrief(t, e.Evaluate(cut(sweepAt(after(2*time.Second)))))
	wantBrief(t, e.Evaluate(locksteward.Sweep{Target: "redis", At: after(3 * time.Second)}))
	if f := only(t, e); f.Status != locksteward.StatusFiring {
		t.Fatalf("%+v", f)
	}
	// An end that a cut sweep proves counts all the same.
	s := cut(sweepAt(after(4 * time.Second)))
	s.Endings = []locksteward.Ending{{Lock: deadlock(t0).Locks[0], How: locksteward.EndedReleased, At: s.At}}
	if ts := e.Evaluate(s); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusResolved {
		t.Fatalf("%+v", ts)
	}
}

// over splits a deadlock over two targets.
func over(s locksteward.Sweep, target string) locksteward.Sweep {
	i := map[string]int{"ta": 0, "tb": 1}[target]
	s.Target, s.Locks, s.Waiters = target, s.Locks[i:i+1], s.Waiters[i:i+1]
	s.Locks[0].Target, s.Waiters[0].Target = target, target
	return s
}

func TestDeadlockOverTwoTargets(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	var reported []locksteward.Transition
	for n := range 3 {
		for i, target := range []string{"ta", "tb"} {
			ts := e.Evaluate(over(deadlock(after(time.Duration(2*n+i)*time.Second)), target))
			for _, tr := range ts {
				if tr.Finding.Target != target {
					t.Errorf("judging %s reported %+v", target, tr.Finding)
				}
			}
			reported = append(reported, ts...)
		}
	}
	if len(reported) != 1 || reported[0].Finding.Target != "tb" || reported[0].Finding.Status != locksteward.StatusFiring {
		t.Fatalf("reported %+v", reported)
	}
	if due := e.Due("ta"); len(due) != 0 {
		t.Errorf("due %+v", due)
	}

	// After a restart nothing is known: it stays until both were read.
	again := newEngine(t, nil, nil)
	again.Restore(e.Findings())
	empty := func(target string, n int) locksteward.Sweep {
		s := sweepAt(after(time.Duration(n) * time.Second))
		s.Target = target
		return s
	}
	wantBrief(t, again.Evaluate(empty("tb", 20)))
	only(t, again)
	wantBrief(t, again.Evaluate(empty("ta", 21)))
	if ts := again.Evaluate(empty("tb", 22)); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusResolved {
		t.Fatalf("%+v", ts)
	}

	// A target that is watched no longer takes its part of the deadlock along.
	wantBrief(t, e.RemoveTarget("ta", after(30*time.Second)))
	if ts := e.Evaluate(over(deadlock(after(31*time.Second)), "tb")); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusResolved {
		t.Fatalf("%+v", ts)
	}
}

func TestRestoredDeadlockGoesOn(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(deadlock(t0))
	e.Evaluate(deadlock(after(time.Second)))
	again := newEngine(t, nil, nil)
	again.Restore(e.Findings())
	wantBrief(t, again.Evaluate(deadlock(after(2*time.Second))))
	if f := only(t, again); f.Status != locksteward.StatusFiring || !f.FiredAt.Equal(after(time.Second)) {
		t.Fatalf("%+v", f)
	}
	off := newEngine(t, nil, nil)
	off.Restore(e.Findings())
	if err := off.Reload(Config{{Rule: WaitCycle, Off: true}}, nil); err != nil {
		t.Fatal(err)
	}
	if ts := off.Evaluate(deadlock(after(3 * time.Second))); len(ts) != 1 || ts[0].Finding.Status != locksteward.StatusResolved {
		t.Fatalf("switched off: %+v", ts)
	}
}

func TestSessionsWithoutNamesAndWaitsForOneself(t *testing.T) {
	t.Parallel()
	// Two calls without sessions wait for each other's locks: nobody can tell.
	s := deadlock(t0)
	for i := range s.Locks {
		s.Locks[i].Claim.Session = s.Locks[i].Claim.ID
		s.Waiters[i].Session = ""
	}
	e := newEngine(t, nil, nil)
	e.Evaluate(s)
	wantFindings(t, e)

	// Who has got the lock that it waited for a moment ago waits for nobody.
	s = deadlock(t0)
	s.Locks, s.Waiters = s.Locks[:1], s.Waiters[:1]
	s.Waiters[0].Session, s.Waiters[0].ID = "s1", "ca"
	e.Evaluate(s)
	e.Evaluate(s)
	wantFindings(t, e)

	// Another call of the session that has it waits for itself.
	s.Waiters[0].ID = "wx"
	e.Evaluate(s)
	s.At = after(time.Second)
	if ts := e.Evaluate(s); len(ts) != 1 || !strings.Contains(catalogue.Text("en", ts[0].Finding.Summary), "waits for it itself") {
		t.Fatalf("%+v", ts)
	}
}

// TestHolderThroughHolding: a lock whose metadata is gone is known to be held by
// the session that says so beside another lock.
func TestHolderThroughHolding(t *testing.T) {
	t.Parallel()
	read := func(at time.Time) locksteward.Sweep {
		s := deadlock(at)
		s.Locks[0].Claim = nil
		own := ourLock("redis", "c", "cc", "s1", t0)
		own.Claim.Holding = []string{"a"}
		own.Waiters = 0
		s.Locks = append(s.Locks, own)
		return s
	}
	e := newEngine(t, nil, nil)
	e.Evaluate(read(t0))
	ts := e.Evaluate(read(after(time.Second)))
	if len(ts) != 1 || ts[0].Finding.Severity != locksteward.SeverityWarning || !strings.Contains(catalogue.Text("en", ts[0].Finding.CounterEvidence[0]), "does not name its session itself") {
		t.Fatalf("%+v", ts)
	}
	without := read(after(2 * time.Second))
	without.Locks[2].Claim.Holding = nil
	if ts := e.Evaluate(without); len(ts) != 0 {
		t.Fatalf("the lock is the same, and so is its holder: %+v", ts)
	}
}

func TestStarvedWaiters(t *testing.T) {
	t.Parallel()
	classes := []class.Class{{Name: "orders", Match: []string{"a"}, MaxWait: 10 * time.Second}}
	read := func(at time.Time) locksteward.Sweep {
		s := deadlock(at)
		s.Locks, s.Waiters = s.Locks[:1], s.Waiters[:1]
		s.Locks[0].Class, s.Waiters[0].Class = "orders", "orders"
		return s
	}
	e := newEngine(t, nil, classes)
	wantBrief(t, e.Evaluate(read(t0)))
	wantBrief(t, e.Evaluate(read(after(11*time.Second))), "wait/starved firing warning a")
	// More wait by now than are read: nothing is learned of the first.
	many := read(after(12 * time.Second))
	many.Waiters, many.Locks[0].Waiters = nil, 99
	wantBrief(t, e.Evaluate(many))
	wantBrief(t, e.Evaluate(cut(sweepAt(after(13*time.Second)))))
	l := read(after(14 * time.Second)).Locks
	l[0].Waiters = -1
	wantBrief(t, evaluateLocks(e, "redis", after(14*time.Second), l, nil))
	l[0].Waiters = 0
	wantBrief(t, evaluateLocks(e, "redis", after(15*time.Second), l, nil), "wait/starved resolved warning a")

	// Free, with a queue.
	s := read(after(20 * time.Second))
	s.Locks = nil
	wantBrief(t, e.Evaluate(s), "wait/starved firing warning a")
	wantBrief(t, e.Evaluate(sweepAt(after(21*time.Second))), "wait/starved resolved warning a")
}

func TestExplainTellsOfCycles(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	s := deadlock(t0)
	e.Evaluate(s)
	e.Evaluate(deadlock(after(time.Second)))
	for _, l := range append(s.Locks, ourLock("redis", "c", "cc", "s9", t0)) {
		var v Verdict
		for _, each := range e.Explain(l) {
			if each.Rule == WaitCycle {
				v = each
			}
		}
		switch {
		case l.Key == "c" && v.Result != NotApplicable:
			t.Errorf("c: %+v", v)
		case l.Key != "c" && (v.Result != Fires || v.Finding.Key != "b" || v.Finding.Status != locksteward.StatusFiring):
			t.Errorf("%s: %+v", l.Key, v)
		case l.Key == "a" && !strings.Contains(v.Reason, "the finding is on lock b"):
			t.Errorf("%s: %s", l.Key, v.Reason)
		}
	}
}
