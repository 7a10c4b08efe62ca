package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// held is a lock of ours on host h7 that renews every 10 s, last seen to do so at
// renewed; a zero beat is a heartbeat that is gone.
func held(key, instance string, at, renewed, beat time.Time) locksteward.Lock {
	return lockAt(key, at, func(l *locksteward.Lock) {
		l.Library = "locksteward"
		l.Holder = locksteward.Holder{Host: "h7", Instance: instance}
		l.Claim = &locksteward.Claim{ID: "claim-" + key, Acquired: t0, Renewed: renewed, TTL: 30 * time.Second, RenewEvery: 10 * time.Second}
		l.TTL = time.Minute - at.Sub(renewed)
		if !beat.IsZero() {
			l.Instance = &locksteward.Instance{ID: instance, Host: "h7", Beat: beat}
		}
	})
}

// hostSweep is a sweep of locks with the heartbeats that they name.
func hostSweep(at time.Time, locks ...locksteward.Lock) locksteward.Sweep {
	s := sweepAt(at, locks...)
	seen := map[string]bool{}
	for _, l := range locks {
		if id := l.Holder.Instance; !seen[id] {
			seen[id] = true
			if l.Instance != nil {
				s.Instances = append(s.Instances, *l.Instance)
			} else {
				s.Silent = append(s.Silent, locksteward.MissingHeartbeat{
					Instance: locksteward.Instance{ID: id, Host: "h7", Beat: after(0)}, Since: at, Looks: 1, Listeners: 0,
				})
			}
		}
	}
	return s
}

// fourOf gives four locks of as many processes, all in one state.
func fourOf(at, renewed, beat time.Time) []locksteward.Lock {
	var out []locksteward.Lock
	for n := range 4 {
		out = append(out, held(fmt.Sprintf("lock:%d", n), fmt.Sprintf("I%d", n), at, renewed, beat))
	}
	return out
}

// line says of transitions what tests compare: status, rule, key and whether
// somebody is notified.
func line(transitions []locksteward.Transition) string {
	var out []string
	for _, t := range transitions {
		f := t.Finding
		s := fmt.Sprintf("%s %s %s", f.Status, f.Rule, f.Key+f.Subject)
		if !Notifies(f) {
			s += " (silent)"
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func expectReported(t *testing.T, got []locksteward.Transition, want ...string) {
	t.Helper()
	if line(got) != strings.Join(want, "\n") {
		t.Errorf("reported\n%s\nwant\n%s", line(got), strings.Join(want, "\n"))
	}
}

// A lost host is reported once, what it explains is informed to nobody; and what is
// still wrong when the host is back is reported then.
func TestHostLostInhibits(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	expectReported(t, e.Evaluate(hostSweep(after(0), fourOf(after(0), after(0), after(0))...)))

	late := after(40 * time.Second)
	expectReported(t, e.Evaluate(hostSweep(late, fourOf(late, after(0), time.Time{})...)),
		"firing host/lost h7",
		"firing renewal/failing lock:0 (silent)", "firing renewal/failing lock:1 (silent)",
		"firing renewal/failing lock:2 (silent)", "firing renewal/failing lock:3 (silent)")
	host := e.Findings()[0]
	if host.Rule != HostLost || host.Class != "" || host.Key != "" {
		t.Fatalf("first of the findings is %+v", host)
	}
	one := e.FindingsFor("redis", 0, "lock:1")
	if len(one) != 1 || one[0].InhibitedBy != host.Fingerprint() || one[0].Status != locksteward.StatusFiring {
		t.Fatalf("an inhibited finding is shown as %+v", one)
	}
	for _, v := range e.Explain(held("lock:1", "I1", late, after(0), time.Time{})) {
		if v.Rule == "renewal/failing" && v.Finding.InhibitedBy != host.Fingerprint() || v.Rule == HostLost && v.Result != Fires {
			t.Errorf("explained as %+v", v)
		}
	}

	// A direct read tells nothing new, nor does a sweep that was cut.
	again := after(42 * time.Second)
	expectReported(t, evaluateLocks(e, "redis", again, []locksteward.Lock{held("lock:1", "I1", again, after(0), time.Time{})}, nil))
	expectReported(t, e.Evaluate(cut(hostSweep(again, fourOf(again, after(0), time.Time{})[:1]...))))

	// Two processes are back; the other two locks are still late, and one has ended.
	back := after(50 * time.Second)
	locks := fourOf(back, back, back)
	locks[2] = held("lock:2", "I2", back, after(0), back)
	expectReported(t, e.Evaluate(hostSweep(back, locks[0], locks[1], locks[2])),
		"resolved host/lost h7",
		"resolved renewal/failing lock:0 (silent)", "resolved renewal/failing lock:1 (silent)",
		"firing renewal/failing lock:2",
		"resolved renewal/failing lock:3 (silent)")
	done := after(60 * time.Second)
	expectReported(t, e.Evaluate(hostSweep(done, fourOf(done, done, done)...)), "resolved renewal/failing lock:2")
}

// What was reported before the host was found lost stays reported, and so is its end.
func TestNotifiedBeforeTheHostIsNotified(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	first := after(20 * time.Second)
	locks := fourOf(first, first, first)
	locks[0] = held("lock:0", "I0", first, after(0), after(0))
	expectReported(t, e.Evaluate(hostSweep(first, locks...)), "firing renewal/failing lock:0")

	late := after(50 * time.Second)
	locks = fourOf(late, first, time.Time{})
	locks[0] = held("lock:0", "I0", late, after(0), time.Time{})
	expectReported(t, e.Evaluate(hostSweep(late, locks...)),
		"firing host/lost h7",
		"firing renewal/failing lock:1 (silent)", "firing renewal/failing lock:2 (silent)", "firing renewal/failing lock:3 (silent)")

	// The agent restarts in between: nothing of that is forgotten.
	restarted := newEngine(t, nil, nil)
	restarted.Restore(e.Findings())
	expectReported(t, restarted.Evaluate(hostSweep(after(55*time.Second), fourOf(after(55*time.Second), after(55*time.Second), after(55*time.Second))...)),
		"resolved host/lost h7",
		"resolved renewal/failing lock:0",
		"resolved renewal/failing lock:1 (silent)", "resolved renewal/failing lock:2 (silent)", "resolved renewal/failing lock:3 (silent)")
}

// silentSweep has one lock whose holder has been silent for d.
func silentSweep(at time.Time, d time.Duration, looks int) locksteward.Sweep {
	l := held("lock:a", "OLD", at, after(0), time.Time{})
	l.Claim.RenewEvery = 0
	s := sweepAt(at, l)
	s.Silent = []locksteward.MissingHeartbeat{{Instance: locksteward.Instance{ID: "OLD"}, Since: at.Add(-d), For: d, Looks: looks}}
	return s
}

// A presumed death fires after 45 s of silence; a direct read neither loses nor
// makes it; a failover takes it back for one longest lease.
func TestVerdictsOfDeathPause(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	expectReported(t, e.Evaluate(silentSweep(after(30*time.Second), 30*time.Second, 2)))
	expectReported(t, e.Evaluate(silentSweep(after(60*time.Second), 60*time.Second, 3)), "firing holder/dead lock:a")
	if f := e.FindingsFor("redis", 0, "lock:a")[0]; f.Proof != locksteward.Presumed || f.Risk != locksteward.RiskDeadlock {
		t.Errorf("the finding is %+v", f)
	}
	direct := silentSweep(after(62*time.Second), 0, 0).Locks
	expectReported(t, evaluateLocks(e, "redis", after(62*time.Second), direct, nil))
	if _, _, paused := e.Paused("redis", after(62*time.Second)); paused {
		t.Error("paused without an event")
	}

	// A successor turns the presumption into a proof: nothing new to tell.
	proven := silentSweep(after(90*time.Second), 90*time.Second, 4)
	proven.Silent[0].Successor = &locksteward.Instance{ID: "NEW"}
	expectReported(t, e.Evaluate(proven))
	if f := e.FindingsFor("redis", 0, "lock:a")[0]; f.Proof != locksteward.Proven {
		t.Errorf("the finding is %+v", f)
	}

	over := silentSweep(after(120*time.Second), 120*time.Second, 5)
	over.Events = []locksteward.ServerEvent{{
		Kind: locksteward.ServerFailedOver, Node: "b:1", Was: "a:1", After: after(90 * time.Second), At: after(120 * time.Second),
		Pause: after(180 * time.Second),
	}}
	over.Nodes = []locksteward.NodeState{{Addr: "b:1", RunID: "r", AOF: true, LastSaveOK: true}}
	expectReported(t, e.Evaluate(over), "firing server/failover  (silent)", "resolved holder/dead lock:a")
	until, why, paused := e.Paused("redis", after(130*time.Second))
	if !paused || !until.Equal(after(180*time.Second)) || !strings.Contains(why, "a failover made b:1 the master in place of a:1") {
		t.Errorf("paused %v until %s: %s", paused, until, why)
	}
	for _, v := range e.Explain(over.Locks[0]) {
		if v.Rule == HolderDead && (v.Result != NotApplicable || !strings.Contains(v.Reason, "verdicts of death pause until 2026-03-01T12:03:00Z")) {
			t.Errorf("explained as %+v", v)
		}
		if v.Rule == "server/failover" && v.Result != Fires {
			t.Errorf("explained as %+v", v)
		}
	}

	still := silentSweep(after(180*time.Second), 60*time.Second, 3)
	still.Events, still.Nodes = over.Events, over.Nodes
	expectReported(t, e.Evaluate(still), "firing holder/dead lock:a")
	if _, _, paused := e.Paused("redis", after(180*time.Second)); paused {
		t.Error("paused past the end of the pause")
	}
	// The target is away: what is known of it stays.
	expectReported(t, e.Evaluate(locksteward.Sweep{Target: "redis", At: after(200 * time.Second)}))
	expectReported(t, evaluateLocks(e, "redis", after(201*time.Second), silentSweep(after(201*time.Second), 0, 0).Locks, nil))
}

// Findings about servers resolve on complete sweeps alone, and differ from each
// other and from class findings.
func TestServerFindings(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{{Rule: "server/not-durable", Severity: "warning"}}, nil)
	none := sweepAt(after(-time.Second)) // nothing to lose yet
	none.Nodes = []locksteward.NodeState{{Addr: "a:1", RunID: "r", LastSaveOK: true}}
	expectReported(t, e.Evaluate(none))
	bare := sweepAt(after(0), lockAt("lock:a", after(0)))
	bare.Nodes = []locksteward.NodeState{{Addr: "a:1", RunID: "r", LastSaveOK: true, MemoryMax: 1 << 20, EvictionPolicy: "allkeys-lru"}}
	expectReported(t, e.Evaluate(bare), "firing server/evicts-locks  (silent)", "firing server/not-durable ")
	seen := map[string]bool{}
	for _, f := range e.Findings() {
		if f.Target != "redis" || f.Class != "" || seen[f.Fingerprint()] {
			t.Errorf("finding %+v", f)
		}
		seen[f.Fingerprint()] = true
	}
	silent := sweepAt(after(time.Second)) // INFO was refused
	silent.Nodes = []locksteward.NodeState{{Addr: "a:1"}}
	expectReported(t, e.Evaluate(cut(silent)))
	mended := sweepAt(after(2 * time.Second))
	mended.Nodes = []locksteward.NodeState{{Addr: "a:1", RunID: "r", LastSaveOK: true, AOF: true}}
	expectReported(t, e.Evaluate(mended), "resolved server/evicts-locks  (silent)", "resolved server/not-durable ")
}

// A fence that went back is reported while its hold stands, in direct reads too.
func TestFenceRegressedFollowsItsHold(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	at := after(10 * time.Second)
	l := held("lock:a", "I", at, at, at)
	l.Claim.Fence = 5
	s := hostSweep(at, l)
	s.FenceDrops = []locksteward.FenceDrop{{Key: "lock:a", ID: l.Claim.ID, Fence: 5, Highest: 7, At: after(0)}}
	expectReported(t, e.Evaluate(s), "firing fence/regressed lock:a")
	expectReported(t, evaluateLocks(e, "redis", at, []locksteward.Lock{l}, nil))
	next := held("lock:a", "I", at, at, at)
	next.Claim.ID, next.Claim.Fence = "another", 8
	expectReported(t, evaluateLocks(e, "redis", at, []locksteward.Lock{next}, nil), "resolved fence/regressed lock:a")
}

// A store whose servers report nothing is not judged by the rules about servers.
func TestServersWithoutFacts(t *testing.T) {
	t.Parallel()
	full := locksteward.NodeState{Addr: "a:6379", RunID: "r", MemoryMax: 1, MemoryUsed: 1, EvictionPolicy: "allkeys-lru", Refusals: []locksteward.Refusal{{Reason: locksteward.RefusalSavingFails}}}
	for _, facts := range []bool{true, false} {
		sweep := sweepAt(t0, held("lock:order:1", "i1", t0, t0, t0))
		sweep.Nodes, sweep.NoServerFacts = []locksteward.NodeState{full}, !facts
		fired := 0
		for _, tr := range newEngine(t, Config{}, nil).EvaluateSweep(sweep).List() {
			if strings.HasPrefix(tr.Finding.Rule, "server/") {
				fired++
			}
		}
		if (fired > 0) != facts {
			t.Errorf("facts %v: %d findings about servers", facts, fired)
		}
		for _, r := range All() {
			if r.Doc().Scope != ScopeTarget {
				continue
			}
			v := judgeServers(r, Input{Now: t0, Situation: newSituation(sweep), explain: true})
			if silent := v.Result == NotApplicable && v.Reason == noServerFacts; silent == facts {
				t.Errorf("facts %v: %s: %s, %s", facts, r.Doc().Name, v.Result, v.Reason)
			}
		}
	}
}
