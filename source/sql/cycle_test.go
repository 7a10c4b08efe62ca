package sqlsource_test

import (
	"fmt"
	"testing"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/rules"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// Two sessions that wait for each other are a deadlock, as long as the database has not ended
// it: after deadlock_timeout it cancels one of both.
func TestDeadlockOfTwoSessions(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	admin := open(t, server.DSN())
	a, b := connect(t, server.DSN(), "a"), connect(t, server.DSN(), "b")
	for _, c := range []*client{a, b} {
		c.do("SET deadlock_timeout = '1h'")
	}
	a.do("SELECT pg_advisory_lock(1)")
	b.do("SELECT pg_advisory_lock(2)")
	ends := []<-chan error{a.later("SELECT pg_advisory_lock(2)"), b.later("SELECT pg_advisory_lock(1)")}
	eventually(t, admin, "SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")

	set, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := rules.New(nil, set, sqlsource.Facts)
	if err != nil {
		t.Fatal(err)
	}
	s := scan(t, server.DSN(), sqlsource.Options{})
	e.Evaluate(sweep(t, s))
	e.Evaluate(sweep(t, s))
	_, cycles := e.Waits("t")
	if len(cycles) != 1 || len(cycles[0].Members) != 2 {
		t.Fatalf("cycles %+v", cycles)
	}
	for _, m := range cycles[0].Members {
		if m.Target != "t" || m.Waits.Since.IsZero() || m.Holder.App == "" || m.Session == "" {
			t.Errorf("member %+v", m)
		}
	}
	must(t, admin, fmt.Sprintf("SELECT pg_terminate_backend(%d)", b.pid))
	for _, end := range ends {
		<-end // one has its lock, the other's session has ended
	}
	e.Evaluate(sweep(t, s))
	if _, cycles := e.Waits("t"); len(cycles) != 0 {
		t.Errorf("after one has gone: %+v", cycles)
	}
}
