package rules

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// stuck is the deadlock with two locks that are held and renewed past what their
// class expects, and a third lock of the class that only is.
func stuck(at time.Time) locksteward.Sweep {
	s := deadlock(at)
	c := ourLock("redis", "c", "cc", "s9", t0.Add(-time.Minute))
	c.At = at
	s.Locks = append(s.Locks, c) // b is younger than a: its holder is the victim
	for i := range s.Locks {
		l := &s.Locks[i]
		l.Class = "orders"
		l.Claim.Acquired = t0.Add(time.Duration(i)*time.Second - time.Hour)
		l.Claim.Renewed, l.Claim.RenewEvery, l.Claim.Renewals = at.Add(-time.Second), 10*time.Second, 300
	}
	return s
}

func expecting(d time.Duration) []class.Class {
	return []class.Class{{Name: "orders", Match: []string{"a", "b", "c"}, Expect: d}}
}

// A deadlock is reported in place of what it makes of its locks; of other locks the
// same findings are reported, and of its own when it is broken.
func TestCycleInhibits(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, expecting(2*time.Hour))
	expectReported(t, e.Evaluate(stuck(t0)))
	expectReported(t, cyclesOf(e.Evaluate(stuck(after(time.Second)))), "firing wait/cycle "+keyAndSubject(t, e))
	cycle := only(t, e)

	// Later their expectation is over (here: it was configured shorter).
	if err := e.Reload(nil, mustSet(t, expecting(time.Minute))); err != nil {
		t.Fatal(err)
	}
	expectReported(t, e.Evaluate(stuck(after(2*time.Second))),
		"firing hold/too-long a (silent)", "firing renewal/zombie a (silent)",
		"firing hold/too-long b (silent)", "firing renewal/zombie b (silent)",
		"firing hold/too-long c", "firing renewal/zombie c")
	for _, f := range e.Findings() {
		want := ""
		if f.Key != "c" && f.Rule != WaitCycle {
			want = cycle.Fingerprint()
		}
		if f.InhibitedBy != want {
			t.Errorf("%s on %s is inhibited by %q, want %q", f.Rule, f.Key, f.InhibitedBy, want)
		}
	}

	// A restart of the agent, and first reads that do not report the waiters yet.
	restarted := newEngine(t, nil, expecting(time.Minute))
	restarted.Restore(e.Findings())
	direct := stuck(after(3 * time.Second))
	for i := range direct.Locks {
		direct.Locks[i].Waiters = -1
	}
	expectReported(t, evaluateLocks(restarted, "redis", direct.At, direct.Locks, nil))
	expectReported(t, restarted.Evaluate(stuck(after(4*time.Second))))

	// One gives up waiting: what is still so is reported now.
	free := stuck(after(5 * time.Second))
	free.Waiters = free.Waiters[1:]
	free.Locks[0].Waiters = 0
	for _, e := range []*Engine{e, restarted} {
		expectReported(t, e.Evaluate(free),
			"firing hold/too-long a", "firing renewal/zombie a",
			"resolved wait/cycle b"+cycle.Subject, // of another class than the locks
			"firing hold/too-long b", "firing renewal/zombie b")
	}
}

// What was reported before the deadlock stays reported, and so is its end; and a deadlock
// that notifies nobody is no reason to keep silent.
func TestCycleInhibitsNothingThatWasReported(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{{Rule: "renewal/zombie", Off: true}}, expecting(time.Minute))
	wantBrief(t, e.Evaluate(stuck(t0)),
		"hold/too-long firing warning a", "hold/too-long firing warning b", "hold/too-long firing warning c")
	e.Evaluate(stuck(after(time.Second)))
	for _, f := range e.Findings() {
		if f.InhibitedBy != "" {
			t.Errorf("%s on %s was reported and is inhibited", f.Rule, f.Key)
		}
	}

	quiet := newEngine(t, Config{{Rule: WaitCycle, Severity: "info"}, {Rule: "renewal/zombie", Off: true}}, expecting(2*time.Hour))
	quiet.Evaluate(stuck(t0))
	quiet.Evaluate(stuck(after(time.Second)))
	if err := quiet.Reload(Config{{Rule: WaitCycle, Severity: "info"}, {Rule: "renewal/zombie", Off: true}}, mustSet(t, expecting(time.Minute))); err != nil {
		t.Fatal(err)
	}
	expectReported(t, quiet.Evaluate(stuck(after(2*time.Second))), "firing hold/too-long a", "firing hold/too-long b", "firing hold/too-long c")
}

// keyAndSubject names the only finding as line does.
func keyAndSubject(t *testing.T, e *Engine) string {
	t.Helper()
	f := only(t, e)
	return f.Key + f.Subject
}

func mustSet(t *testing.T, classes []class.Class) *class.Set {
	t.Helper()
	set, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
