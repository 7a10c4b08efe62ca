package exporter_test

import (
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
)

func noTTL(l *locksteward.Lock) { l.TTL, l.ExpireAt = locksteward.NoExpiry, locksteward.NoExpireAt }

func TestLockGauges(t *testing.T) {
	t.Parallel()
	e := newExporterOf(t, exporter.Config{},
		class.Class{Name: "orders", Match: []string{"o:*"}, Expect: 20 * time.Second, Team: "checkout", RunbookURL: "https://wiki/x"},
		class.Class{Name: "jobs", Match: []string{"j:*"}})
	s := sweep(1,
		lock("orders", "o:1", noTTL, at(later(1))),
		lock("orders", "o:2", claimed("c1", t0.Add(-10*time.Second), locksteward.Claim{Expect: time.Minute}), at(later(1))),
		lock("orders", "o:3", claimed("c2", t0.Add(-10*time.Second), locksteward.Claim{}), at(later(1)), func(l *locksteward.Lock) { l.Waiters = 3 }),
		lock("jobs", "j:1"),
		lock("jobs", "j:2", func(l *locksteward.Lock) { l.Kind = locksteward.KindCandidate }),
	)
	s.Candidates = 7
	e.ObserveSweep(s)
	want(t, e, map[string]float64{
		`locks{class="orders",library="token",target="m"}`:                    1,
		`locks{class="orders",library="locksteward",target="m"}`:              2,
		`locks{class="jobs",library="token",target="m"}`:                      1,
		`locks_without_ttl{class="orders",target="m"}`:                        1,
		`locks_without_ttl{class="jobs",target="m"}`:                          0,
		`locks_overdue{class="orders",target="m"}`:                            2, // o:2 said it takes longer
		`locks_overdue{class="jobs",target="m"}`:                              absent,
		`lock_longest_hold_seconds{class="orders",target="m"}`:                40,
		`lock_longest_hold_seconds{class="jobs",target="m"}`:                  absent, // seen once: not known
		`lock_waiters{class="orders",target="m"}`:                             3,
		`lock_waiters{class="jobs",target="m"}`:                               absent,
		`lock_candidates{target="m"}`:                                         7,
		`locks_without_ttl{class="default",target="m"}`:                       absent, // no such lock
		`class_info{class="orders",runbook="https://wiki/x",team="checkout"}`: 1,
		`class_info{class="default",runbook="",team=""}`:                      1,
	})
}

func TestVanishedClassVanishes(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a", "b")
	e.ObserveSweep(sweep(0, lock("a", "a:1"), lock("b", "b:1")))
	e.ObserveSweep(sweep(1, lock("b", "b:1")))
	want(t, e, map[string]float64{
		`locks{class="a",library="token",target="m"}`: absent,
		`locks_without_ttl{class="a",target="m"}`:     absent,
		`locks{class="b",library="token",target="m"}`: 1,
	})
	set, err := class.NewSet([]class.Class{{Name: "b", Match: []string{"b:*"}}})
	if err != nil {
		t.Fatal(err)
	}
	e.SetClasses(set)
	want(t, e, map[string]float64{
		`class_info{class="a",runbook="",team="team-a"}`: absent,
		`lock_acquires_total{class="a",target="m"}`:      absent,
		`lock_acquires_total{class="b",target="m"}`:      0,
	})
}

func TestTargetAway(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	node := locksteward.NodeState{
		Addr: "10.0.0.1:6379", ConnectedClients: 12, MaxClients: 10000, MemoryUsed: 1 << 20, MemoryMax: 0,
		CPUSys: 1.5, CPUUser: 2.5, EvictedKeys: -1,
	}
	state := locksteward.TargetState{Target: locksteward.Target{Name: "m"}, Up: true, Nodes: []locksteward.NodeState{node}}
	e.SetTarget(state)
	e.ObserveSweep(sweep(0, lock("a", "a:1", noTTL)))
	setFindings(e, "m", []locksteward.Finding{finding("a", "ttl/none", locksteward.SeverityCritical, "a:1")})
	want(t, e, map[string]float64{
		`target_up{target="m"}`: 1,
		`redis_connected_clients{node="10.0.0.1:6379",target="m"}`:             12,
		`redis_memory_max_bytes{node="10.0.0.1:6379",target="m"}`:              0,
		`redis_cpu_seconds_total{mode="user",node="10.0.0.1:6379",target="m"}`: 2.5,
		`redis_evicted_keys_total{node="10.0.0.1:6379",target="m"}`:            absent, // not reported
		`sweep_complete{target="m"}`:                                           1,
		`sweep_last_success_timestamp_seconds{target="m"}`:                     float64(t0.UnixMilli()+250) / 1000,
	})

	state.Up, state.Reason = false, "connection refused"
	e.SetTarget(state)
	e.ObserveSweep(locksteward.Sweep{Target: "m", Started: later(1), Duration: time.Second})
	want(t, e, map[string]float64{
		`target_up{target="m"}`: 0,
		`redis_connected_clients{node="10.0.0.1:6379",target="m"}`: absent,
		`locks{class="a",library="token",target="m"}`:              absent,
		`locks_without_ttl{class="a",target="m"}`:                  absent,
		`lock_candidates{target="m"}`:                              absent,
		`sweep_complete{target="m"}`:                               0,
		`sweep_last_success_timestamp_seconds{target="m"}`:         float64(t0.UnixMilli()+250) / 1000,
		`sweep_keys_total{target="m"}`:                             100,
		// Not seeing a lock is no proof that it is well.
		`findings{class="a",risk="deadlock",rule="ttl/none",severity="critical",target="m"}`: 1,
	})

	// Back: the lock that was known before is no new one.
	state.Up = true
	e.SetTarget(state)
	e.ObserveSweep(sweep(2, lock("a", "a:1", noTTL)))
	want(t, e, map[string]float64{
		`locks_without_ttl{class="a",target="m"}`:   1,
		`lock_acquires_total{class="a",target="m"}`: 0,
	})
}

func TestIncompleteSweepTakesNoLockAway(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	onNode2 := func(l *locksteward.Lock) { l.Node = "n2" }
	full := sweep(0, lock("a", "a:1", noTTL), lock("a", "a:2"), lock("a", "a:3", onNode2))
	full.Masters = append(full.Masters, locksteward.MasterPass{Node: "n2", Complete: true, Keys: 10})
	e.ObserveSweep(full)

	// n1 was cut, n2 was not.
	cut := sweep(1, lock("a", "a:2"))
	cut.Masters = []locksteward.MasterPass{{Node: "n1", Complete: false, Reason: "timeout", Keys: 1}, {Node: "n2", Complete: true, Keys: 10}}
	e.ObserveSweep(cut)
	want(t, e, map[string]float64{
		`locks{class="a",library="token",target="m"}`: 2, // a:1 may still be there, a:3 is not
		`locks_without_ttl{class="a",target="m"}`:     1,
		`sweep_complete{target="m"}`:                  0,
		`sweep_keys_total{target="m"}`:                121,
	})

	e.ObserveSweep(sweep(2, lock("a", "a:2")))
	want(t, e, map[string]float64{
		`locks{class="a",library="token",target="m"}`: 1,
		`locks_without_ttl{class="a",target="m"}`:     0,
	})
}

func TestFindingsShowOnlyWhatFires(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	pending := finding("a", "hold/too-long", locksteward.SeverityWarning, "a:9")
	pending.Status = locksteward.StatusPending
	inhibited := finding("a", "ttl/none", locksteward.SeverityCritical, "a:3")
	inhibited.InhibitedBy = "0123456789abcdef0123456789abcdef"
	setFindings(e, "m", []locksteward.Finding{
		inhibited,
		finding("a", "ttl/none", locksteward.SeverityCritical, "a:1"),
		finding("a", "ttl/none", locksteward.SeverityCritical, "a:2"),
		finding("default", "ttl/none", locksteward.SeverityInfo, "x"),
		finding("", "server/evicts-locks", locksteward.SeverityInfo, ""),
		pending,
	})
	want(t, e, map[string]float64{
		`findings{class="a",risk="deadlock",rule="ttl/none",severity="critical",target="m"}`:     2,
		`findings{class="default",risk="deadlock",rule="ttl/none",severity="info",target="m"}`:   1,
		`findings{class="",risk="",rule="server/evicts-locks",severity="info",target="m"}`:       1,
		`findings{class="a",risk="deadlock",rule="hold/too-long",severity="warning",target="m"}`: absent,
	})
	setFindings(e, "m", nil)
	want(t, e, map[string]float64{
		`findings{class="a",risk="deadlock",rule="ttl/none",severity="critical",target="m"}`: absent,
	})
}

func TestNothingIsInventedBeforeTheFirstSweep(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.SetTarget(locksteward.TargetState{Target: locksteward.Target{Name: "m"}})
	want(t, e, map[string]float64{
		`target_up{target="m"}`:                            0,
		`sweep_complete{target="m"}`:                       absent,
		`sweep_duration_seconds{target="m"}`:               absent,
		`sweep_last_success_timestamp_seconds{target="m"}`: absent,
		`lock_acquires_total{class="a",target="m"}`:        absent,
		`locks_lost_total{class="a",target="m"}`:           absent,
		`release_enabled{target="m"}`:                      absent,
		`release_requests{state="pending"}`:                absent,
		`config_last_reload_successful`:                    absent,
	})
	if err := e.Ready("m", "n"); err == nil {
		t.Error("ready before the first sweep")
	}
	e.ObserveSweep(locksteward.Sweep{Target: "m"})
	if err := e.Ready("m"); err != nil {
		t.Errorf("not ready though a sweep has ended: %v", err)
	}
	if err := e.Ready("m", "n"); err == nil || err.Error() != `target "n": its first sweep has not ended` {
		t.Errorf("Ready = %v", err)
	}
	e.RemoveTarget("m")
	want(t, e, map[string]float64{`target_up{target="m"}`: absent, `sweep_complete{target="m"}`: absent})
}

func TestConsoleURL(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.SetConsoleURL("https://locks.example/") // links add a path that begins with a slash
	want(t, e, map[string]float64{`console_info{url="https://locks.example"}`: 1})
	e.SetConsoleURL("")
	want(t, e, map[string]float64{`console_info{url="https://locks.example"}`: absent, `console_info{url=""}`: absent})
}

// TestScrapesWhileSweepsRun is for the race detector, and for scrapes that would
// see half of a change: the two gauges always belong to the same sweep.
func TestScrapesWhileSweepsRun(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.ObserveSweep(sweep(0, many("a", 1)...))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for n := range 200 {
			all := many("a", 1+n%7)
			for i := range all {
				noTTL(&all[i])
			}
			e.ObserveSweep(sweep(n, all...))
			setFindings(e, "m", nil)
			e.AddThrottled("m", "duty", 250*time.Millisecond)
			e.CountDelivery("ops", "delivered", "")
			e.SetTarget(locksteward.TargetState{Target: locksteward.Target{Name: "m"}, Up: n%2 == 0})
		}
	})
	for scrapes := 0; ; scrapes++ {
		select {
		case <-done:
			wg.Wait()
			want(t, e, map[string]float64{
				`budget_throttled_seconds_total{reason="duty",target="m"}`:          50,
				`notifications_total{outcome="delivered",reason="",receiver="ops"}`: 200,
			})
			return
		default:
		}
		got := scrape(t, e)
		known := got[`locksteward_locks{class="a",library="token",target="m"}`]
		without := got[`locksteward_locks_without_ttl{class="a",target="m"}`]
		if scrapes > 0 && known != without && without != 0 {
			t.Fatalf("%v locks, %v of them without TTL: two sweeps in one scrape", known, without)
		}
	}
}

// A class of which no lock was ever seen is known once every target was swept in full.
func TestClassThatMatchesNothing(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a", "b")
	configured := func(l *locksteward.Lock) { l.Configured = true }
	want(t, e, map[string]float64{`class_matched{class="a"}`: absent, `class_matched{class="b"}`: absent})
	e.ObserveSweep(sweep(0, lock("a", "a:1", configured)))
	want(t, e, map[string]float64{`class_matched{class="a"}`: 1, `class_matched{class="b"}`: 0, `class_matched{class="default"}`: absent})
	if matched, ok := e.ClassMatched("b"); matched || !ok {
		t.Errorf("class b: %t, %t", matched, ok)
	}
	e.ObserveSweep(sweep(1, lock("b", "b:1", configured)))
	e.ObserveSweep(sweep(2))
	want(t, e, map[string]float64{`class_matched{class="a"}`: 1, `class_matched{class="b"}`: 1})
}

// The kind of store stands in a metric of its own, to be joined on target.
func TestTargetInfo(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.SetTarget(locksteward.TargetState{Target: locksteward.Target{Name: "shop", Source: "postgresql"}, Up: true, Nodes: []locksteward.NodeState{locksteward.UnknownNode("db:5432/shop")}})
	want(t, e, map[string]float64{
		`target_info{source="postgresql",target="shop"}`:                         1,
		`redis_connected_clients{node="db:5432/shop",target="shop"}`:             absent,
		`redis_cpu_seconds_total{mode="user",node="db:5432/shop",target="shop"}`: absent,
	})
}
