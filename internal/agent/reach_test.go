package agent_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// onAWay is the configuration of target main as one replica has it: the same URL for all,
// and a way there of its own.
func onAWay(srv *testredis.Server, way *testredis.Proxy) string {
	return strings.Replace(target(srv.URL()), "name: main,", fmt.Sprintf("name: main, addr_map: {'%s': '%s'},", srv.Addr(), way.Addr()), 1)
}

// twoWays starts two replicas, the first of which works on target main, over a network path of its
// own, and the second on the singleton duties.
func twoWays(t *testing.T, srv *testredis.Server, rest string) (first, second *bed, way *testredis.Proxy) {
	t.Helper()
	dsn := testpg.Start(t).DSN()
	way = testredis.NewProxy(t, srv.Addr())
	first = newBedOn(t, onAWay(srv, way)+rest, dsn)
	first.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	second = newBedOn(t, onAWay(srv, testredis.NewProxy(t, srv.Addr()))+rest, dsn)
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	testredis.Eventually(t, back, func() bool {
		leases, err := st.Leases(t.Context())
		return err == nil && len(leases) == 2 && leases[0].Owner != leases[1].Owner
	}, "the duties are not shared")
	if len(first.leads()) != 1 {
		t.Fatal("the target moved, and not the singleton duties")
	}
	return first, second, way
}

// swept says that the bed works on target main and has read all of it.
func (b *bed) swept() bool {
	list := b.agent.Backend().Targets()
	return len(b.leads()) == 1 && len(list) == 1 && list[0].Up && list[0].LastSweep != nil && list[0].LastSweep.Complete
}

const (
	outOfReach = "target unreachable from this replica"
	inReach    = "target reachable from this replica again"
	handedOver = "target handed over"
	begun      = "target is watched by this replica\n"
)

// A replica that cannot reach a target's Redis any more hands the target over to one that
// can, which goes on with it. When it can again, the target stays.
func TestATargetGoesToAReplicaThatReachesIt(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*testredis.Proxy){
		"connections are refused": func(p *testredis.Proxy) { p.Cut() },
		"packets are lost":        func(p *testredis.Proxy) { p.Freeze(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, e := testredis.Start(t), newEar(t)
			rdb := srv.Client(t)
			first, second, way := twoWays(t, srv, orders+receivers("ops", e.url))
			set(t, rdb, "lock:order:1", token, 0)
			e.await(1)
			began := time.Now()
			fault(way)
			testredis.Eventually(t, within, second.swept, "the target is not handed over")
			t.Logf("%s: another replica had swept the target %s after", name, time.Since(began).Round(10*time.Millisecond))
			// The log says so after the end of the work was begun.
			testredis.Eventually(t, within, func() bool {
				text := logText(first)
				return strings.Contains(text, outOfReach) && strings.Contains(text, handedOver)
			}, "nobody says why")
			// What was reported is known there: its end is reported, and what begins.
			rdb.Del(t.Context(), "lock:order:1")
			e.await(2)
			set(t, rdb, "lock:order:2", token, 0)
			e.await(3)
			if got, want := reported(e), "lock:order:1 firing, lock:order:1 resolved, lock:order:2 firing"; got != want {
				t.Errorf("reported %s; want %s", got, want)
			}
			way.Heal()
			testredis.Eventually(t, within, func() bool { return strings.Contains(logText(first), inReach) }, "it does not see that it reaches the target again")
			testredis.Eventually(t, within, func() bool { return way.Open() == 0 }, "connections of looks stay")
			second.awaitSweeps(2)
			if one, two := strings.Count(logText(first), begun), strings.Count(logText(second), begun); one != 1 || two != 1 {
				t.Errorf("the target went back and forth: begun %d and %d times", one, two)
			}
			if strings.Contains(logText(second), "the target leads to another server") {
				t.Error("the other way is taken for another server")
			}
		})
	}
}

// awaitSweeps waits for n complete sweeps more of target main.
func (b *bed) awaitSweeps(n int) {
	b.t.Helper()
	last := time.Time{}
	for range n + 1 {
		testredis.Eventually(b.t, within, func() bool {
			list := b.agent.Backend().Targets()
			if len(list) != 1 || list[0].LastSweep == nil || !list[0].LastSweep.Complete || !list[0].LastSweep.At.After(last) {
				return false
			}
			last = list[0].LastSweep.At
			return true
		}, "the target is not swept")
	}
}

// A Redis that is down, and comes back, is down for all: its target stays where it is.
func TestATargetThatIsDownStays(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	// A lease that a busy machine does not lose: the target must stay where it is.
	first, second, _ := twoWays(t, srv, orders+"cluster: {lease: 5s}\n")
	srv.Kill()
	for _, b := range []*bed{first, second} {
		testredis.Eventually(t, within, func() bool { return strings.Contains(logText(b), outOfReach) }, "it is not seen to be down")
	}
	srv.Restart()
	for _, b := range []*bed{first, second} {
		testredis.Eventually(t, back, func() bool { return strings.Contains(logText(b), inReach) }, "it is not seen to be back")
	}
	testredis.Eventually(t, back, first.swept, "the target is not swept when it is back")
	if len(second.leads()) != 0 || strings.Contains(logText(first), handedOver) || strings.Contains(logText(second), begun) {
		t.Error("the target moved")
	}
}

// What was held back since the target was down for one replica is informed when another one
// has read it.
func TestWhatWasHeldBackIsReportedAfterAHandOver(t *testing.T) {
	t.Parallel()
	srv, e, dsn := testredis.Start(t), newEar(t), testpg.Start(t).DSN()
	rest := orders + receivers("ops", e.url) + "cluster: {lease: 1s}\n"
	way := testredis.NewProxy(t, srv.Addr())
	first := newBedOn(t, onAWay(srv, way)+rest, dsn)
	db := heldBack(t, srv, e, first, way)
	second := newBedOn(t, onAWay(srv, testredis.NewProxy(t, srv.Addr()))+rest, dsn)
	testredis.Eventually(t, within, second.swept, "the target is not handed over")
	e.await(1)
	srv.Client(t).Del(t.Context(), "lock:order:1")
	e.await(2)
	if got, want := reported(e), "lock:order:1 firing, lock:order:1 resolved"; got != want {
		t.Errorf("reported %s; want %s", got, want)
	}
	if waits := first.pending(db); len(waits) != 0 {
		t.Errorf("held back still: %v", waits)
	}
}

// heldBack leaves a broken lock whose finding is held back since its target is down for
// the bed, which works on it alone.
func heldBack(t *testing.T, srv *testredis.Server, e *ear, b *bed, way *testredis.Proxy) *sql.DB {
	t.Helper()
	db := b.opened()
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	b.silenced(db, e, func() { set(t, srv.Client(t), "lock:order:1", token, 0) }, func() {
		way.Cut()
		b.down()
	})
	return db
}

// silenced has lock:order:1 wait for the end of a silence, and then for its target. What
// is given is done when the silence holds, and when the lock waits for it.
func (b *bed) silenced(db *sql.DB, e *ear, holds, waits func()) {
	b.t.Helper()
	silence := b.silence(api.AddSilence{Matchers: []string{"key=lock:order:1"}, ForMs: time.Hour.Milliseconds(), Reason: "for now"})
	await := func(want string) {
		b.t.Helper()
		testredis.Eventually(b.t, within, func() bool {
			if len(e.got()) > 0 {
				b.t.Fatalf("reported a target that nobody reads: %s", reported(e))
			}
			waits := b.pending(db)
			return len(waits) == 1 && waits[0] == want
		}, "no finding waits because of "+want)
	}
	holds()
	await("silence:" + silence.ID)
	waits()
	if _, err := b.bo.ExpireSilence(b.t.Context(), silence.ID); err != nil {
		b.t.Fatal(err)
	}
	await("inhibit:target_down")
}

// A target that was down for the replica that left it is down until another one has read
// it: what is held back is not reported in between.
func TestWhatIsHeldBackStaysSoWhileNobodyHasATarget(t *testing.T) {
	t.Parallel()
	srv, e, dsn := testredis.Start(t), newEar(t), testpg.Start(t).DSN()
	way := testredis.NewProxy(t, srv.Addr())
	b := newBedOn(t, onAWay(srv, way)+orders+receivers("ops", e.url)+"cluster: {lease: 1s}\n", dsn)
	db := heldBack(t, srv, e, b, way)
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var other store.Lease
	testredis.Eventually(t, within, func() bool {
		leases, err := st.Leases(t.Context())
		if err != nil {
			return false
		}
		for _, l := range leases {
			if l.Target == "main" {
				_ = st.ReleaseLease(t.Context(), l)
			}
		}
		other, err = st.AcquireLease(t.Context(), "main", "other", "127.0.0.1:1", time.Minute)
		return err == nil
	}, "the lease cannot be taken")
	testredis.Eventually(t, within, func() bool { return strings.Contains(logText(b), "target is no longer watched by this replica") }, "it goes on")
	b.silenced(db, e, func() {}, func() {}) // it is judged anew, and held back again
	way.Heal()
	if err := st.ReleaseLease(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	e.await(1)
	if got, want := reported(e), "lock:order:1 firing"; got != want {
		t.Errorf("reported %s; want %s", got, want)
	}
}
