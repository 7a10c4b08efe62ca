package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A lock that was there before the agent is in the digest of the first sweep. One that provably began
// after the agent's start is an alert of its own, though the first sweep has not ended.
func TestLockBornDuringTheFirstSweepFires(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	pipe := rdb.Pipeline()
	for i := range 8_000 {
		pipe.Set(t.Context(), fmt.Sprintf("user:%d", i), "x", 0)
	}
	pipe.Set(t.Context(), "lock:order:old", token, 0)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newEar(t)
	b := newBed(t, "targets: [{name: main, url: '"+srv.URL()+"', schedule: '@every 1s', pace: {idle: 0.3%, busy: 0.3%}}]"+orders+`
alert:
  grouping: {by: [fingerprint], wait: 0s, interval: 0s}
  receivers: [{name: ops, kind: webhook, url: '`+s.url+`', allow_private: true}]
`)
	began := time.Now()
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Targets(t.Context())
		return err == nil && len(list.Targets) == 1 && list.Targets[0].Up && list.Targets[0].Sweeping != nil && time.Since(began) > 2*time.Second
	}, "the first sweep does not begin")
	holdAfter(t, rdb, "lock:order:new")
	if err := rdb.Persist(t.Context(), "lock:order:new").Err(); err != nil {
		t.Fatal(err)
	}
	in := func(kind, key string) bool {
		for _, h := range s.of(kind) {
			for _, f := range h.Findings {
				if f.Key.Key == key {
					return true
				}
			}
		}
		return false
	}
	testredis.Eventually(t, within, func() bool { return in("findings.firing", "lock:order:new") }, "the new lock does not fire")
	// Beside other tests the sweep goes at its busy pace.
	testredis.Eventually(t, 3*within, func() bool { return in("findings.first_sweep", "lock:order:old") }, "the digest does not come")
	if in("findings.first_sweep", "lock:order:new") || in("findings.firing", "lock:order:old") {
		t.Error("the old lock fires, or the new one is in the digest")
	}
}

// What is found of one lock does not wait for the end of the first sweep: it is in the store, on the console and in the
// metrics while that is under way. The lock is read directly for its second look.
func TestFindingsBeforeTheFirstSweepEnds(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	pipe := rdb.Pipeline()
	for i := range 20_000 {
		pipe.Set(t.Context(), fmt.Sprintf("user:%d", i), "x", 0)
	}
	for i := range 50 { // one of them is met early, whatever the order of the keys
		pipe.Set(t.Context(), fmt.Sprintf("lock:order:%d", i), fmt.Sprint(token, i), 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, "targets: [{name: main, url: '"+srv.URL()+"', pace: {idle: 0.1%, busy: 0.1%}, watch: off}]"+orders)
	var firing int
	testredis.Eventually(t, 3*within, func() bool {
		list, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{Rule: "ttl/none"})
		firing = len(list.Findings)
		return err == nil && firing > 0 && list.Findings[0].Status == "firing"
	}, "nothing is found")
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"}`)
	list, err := b.ana.Targets(t.Context())
	if err != nil || len(list.Targets) != 1 || list.Targets[0].Sweeping == nil || !list.Targets[0].Sweeping.First {
		t.Fatalf("the first sweep has ended: %+v, %v", list, err)
	}
	if locks, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{}); err != nil || len(locks.Locks) < firing {
		t.Errorf("%d locks, %d findings, %v", len(locks.Locks), firing, err)
	}
}
