package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A request that was decided while its receiver was down: nobody is asked to decide
// when the receiver is back. One that is open is asked for.
func TestNobodyIsAskedAboutARequestThatIsOver(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return testpg.Start(t).DSN() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := dsn(t)
			srv := testredis.Start(t)
			e := newEar(t)
			e.Down()
			b := newBedOn(t, target(srv.URL())+orders+receivers("ops", e.url), on)
			set(t, srv.Client(t), "lock:order:1", token, time.Hour)
			set(t, srv.Client(t), "lock:order:2", token, time.Hour)
			over, err := b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
			if err != nil {
				t.Fatal(err)
			}
			open, err := b.ana.CreateRequest(t.Context(), ask("lock:order:2"))
			if err != nil {
				t.Fatal(err)
			}
			testredis.Eventually(t, within, func() bool {
				return !slices.ContainsFunc(b.deliveries("ops"), func(d api.Notification) bool { return d.Attempts == 0 })
			}, "the receiver was not tried")
			if got, err := b.bo.Deny(t.Context(), over.ID, word(over.EvidenceHash)); err != nil || got.State != "denied" {
				t.Fatalf("%+v, %v", got, err)
			}
			e.Up()
			e.awaitAbout(over.ID, "release.final")
			e.awaitAbout(open.ID, "release.requested")
			n := slices.IndexFunc(b.deliveries("ops"), func(d api.Notification) bool { return d.About == over.ID && d.Type == "release.requested" })
			if d := b.deliveries("ops")[n]; d.State != "dead" || !strings.Contains(d.LastError, "the request ended") {
				t.Errorf("kept is %+v", d)
			}
			b.awaitMetric(`locksteward_notifications_total{outcome="dropped",reason="decided",receiver="ops"} 1`)
		})
	}
}

// A finding about a lock whose lease ends within twice the grouping wait is reported at
// once, others of the same rule wait.
func TestAFindingAboutALeaseThatEndsDoesNotWait(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := newEar(t)
	text := strings.Replace(receivers("ops", e.url), "{by: [fingerprint], wait: 0s, interval: 0s}", "{by: [key], wait: 1h}", 1)
	b := newBed(t, target(srv.URL())+strings.Replace(orders, "class: orders", "class: orders, expect: 1500ms", 1)+text)
	set(t, srv.Client(t), "lock:order:long", token, 3*time.Hour)
	b.awaitMetric(`locksteward_notifications_queue_length{receiver="ops"} 1`) // it waits in its group
	set(t, srv.Client(t), "lock:order:soon", token, 90*time.Minute)
	if got := e.await(1); got[0].finding() != "lock:order:soon firing" || len(got) != 1 {
		t.Errorf("reported %s of %d", got[0].finding(), len(got))
	}
}
