package agent_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// back is how long it may take until a target is back for an agent that tries again later
// and later, or replicas shared their duties.
const back = 3 * within

// opened is the store of a bed beside its agent.
func (b *bed) opened() *sql.DB {
	b.t.Helper()
	driver, dsn := "pgx", b.dsn
	if _, ok := strings.CutPrefix(b.dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+filepath.Join(b.dir, "store.db")+"?_pragma=busy_timeout(20000)"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	return db
}

// pending is what waits to be reported, each with the reason for which it is held back.
func (b *bed) pending(db *sql.DB) []string {
	b.t.Helper()
	rows, err := db.QueryContext(b.t.Context(), `SELECT held FROM alert_pending ORDER BY seq`)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var why string
		if err := rows.Scan(&why); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, why)
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// hushed leaves a broken lock whose finding waits in its group, ends Redis before the
// group is due, and returns when it was due and the finding is held back. A silence keeps
// it waiting: how soon a target is seen to be down is not to be raced against a clock.
// sends is who tells, and knows by itself or from another replica how the target is.
func hushed(t *testing.T, srv *testredis.Server, e *ear, sends *bed) *sql.DB {
	t.Helper()
	db := sends.opened()
	silence := sends.silence(api.AddSilence{Matchers: []string{"key=lock:order:1"}, ForMs: time.Hour.Milliseconds(), Reason: "until Redis is down"})
	set(t, srv.Client(t), "lock:order:1", token, 0)
	awaitPending := func(want string) {
		t.Helper()
		testredis.Eventually(t, within, func() bool {
			if len(e.got()) > 0 {
				t.Fatalf("reported while the target is down: %s", reported(e))
			}
			waits := sends.pending(db)
			return len(waits) == 1 && waits[0] == want
		}, "no finding waits because of "+want)
	}
	awaitPending("silence:" + silence.ID)
	srv.Kill()
	testredis.Eventually(t, within, func() bool {
		why := sends.down()
		return strings.Contains(why, "refused") || strings.Contains(why, "the server closed the connection") // behind a proxy
	}, "nobody says why the target is down")
	if _, err := sends.bo.ExpireSilence(t.Context(), silence.ID); err != nil {
		t.Fatal(err)
	}
	awaitPending("inhibit:target_down")
	return db
}

// What was found is not reported while its target is down: that is reported in its place. If it
// is as it was when the target is back, it is reported then, and its end as any other.
func TestTargetDownHoldsBackWhatWasFound(t *testing.T) {
	t.Parallel()
	for name, lay := range lays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, testredis.WithConfig("appendonly yes", "appendfsync always"))
			e := newEar(t)
			b := lay(t, target(srv.URL())+orders+receivers("ops", e.url))
			hushed(t, srv, e, b)
			srv.Restart()
			testredis.Eventually(t, back, func() bool { return len(e.got()) > 0 }, "it is not reported when the target is back")
			if err := srv.Client(t).Del(t.Context(), "lock:order:1").Err(); err != nil {
				t.Fatal(err)
			}
			// The end is reported after all that was to be reported before it.
			testredis.Eventually(t, within, func() bool { return strings.Contains(reported(e), "resolved") }, "the end is not reported")
			if got, want := reported(e), "lock:order:1 firing, lock:order:1 resolved"; got != want {
				t.Errorf("reported %s; want %s", got, want)
			}
		})
	}
}

// lays are who sends, and how it knows of the target.
var lays = map[string]func(*testing.T, string) *bed{
	"by one agent":              func(t *testing.T, text string) *bed { return newBed(t, text) },
	"by another replica's word": twoReplicas,
}

// twoReplicas are two beds of which the one that is returned sends, and the other works
// on the target.
func twoReplicas(t *testing.T, text string) *bed {
	t.Helper()
	dsn := testpg.Start(t).DSN()
	beds := newBeds(t, 2, text+"cluster: {lease: 3s}\n", dsn)
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	var sends *bed
	testredis.Eventually(t, back, func() bool {
		leases, err := st.Leases(t.Context())
		if err != nil || len(leases) != 2 || leases[0].Owner == leases[1].Owner {
			return false
		}
		for i, b := range beds {
			if own := b.leads(); len(own) == 1 {
				sends = beds[1-i]
			}
		}
		return sends != nil && len(sends.leads()) == 0
	}, "the duties are not shared")
	return sends
}

// What ended while the target was down was never reported, and its end is not reported either: that the server lost it is.
func TestTargetDownUntilItIsOver(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := newEar(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	const counted = `locksteward_notifications_suppressed_total{reason="inhibit",receiver="ops"} `
	b.awaitMetric(counted + "0")
	db := hushed(t, srv, e, b)
	srv.Restart() // it keeps nothing
	testredis.Eventually(t, back, func() bool { return strings.Contains(b.metrics(), counted+"1") }, "nothing was held back until it was over")
	b.awaitMetric(`locksteward_notifications_suppressed_total{reason="unknown",receiver="ops"} 1`) // its end
	onlyTheRestart(t, e, b, db)
}

// onlyTheRestart requires that people get one message: that the server was restarted and lost its locks.
func onlyTheRestart(t *testing.T, e *ear, b *bed, db *sql.DB) {
	t.Helper()
	testredis.Eventually(t, back, func() bool { return len(e.got()) > 0 && len(b.pending(db)) == 0 }, "the restart is not reported, or something waits behind it")
	got := e.got()
	if sent := b.deliveries("ops"); len(sent) != 1 || len(got) != 1 || len(got[0].Findings) != 1 || got[0].Findings[0].Rule != "server/restarted" {
		t.Errorf("sent %s; deliveries %+v", reported(e), sent)
	}
}

// That the target answers again is not yet that what was found on it is still so: a lock
// that is gone is not reported as broken while the first sweep is under way.
func TestTargetDownUntilASweepHasEnded(t *testing.T) {
	t.Parallel()
	for name, lay := range lays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			rdb := srv.Client(t)
			if err := rdb.Do(t.Context(), "DEBUG", "POPULATE", 5_000).Err(); err != nil {
				t.Fatal(err)
			}
			if err := rdb.Save(t.Context()).Err(); err != nil { // without the lock
				t.Fatal(err)
			}
			proxy := testredis.NewProxy(t, srv.Addr())
			e := newEar(t)
			b := lay(t, target("redis://"+proxy.Addr())+orders+receivers("ops", e.url))
			db := hushed(t, srv, e, b)
			proxy.Delay(250 * time.Millisecond) // a sweep takes seconds
			srv.Restart()
			onlyTheRestart(t, e, b, db)
		})
	}
}

// reported is all that an ear saw, in order.
func reported(e *ear) string {
	var out []string
	for _, h := range e.got() {
		out = append(out, h.finding())
	}
	return strings.Join(out, ", ")
}
