package sqlsource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/rules"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// authentik's failure (goauthentik/authentik#23876): its migration takes an advisory lock through a
// pgbouncer in transaction mode, which gives the unlock to another session of the server. The lock
// stays with the first one, which nobody knows any more, until pgbouncer closes it an hour later.
func TestStrandedBehindAPooler(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	must(t, open(t, server.DSN()), "CREATE DATABASE authentik")
	authentik := func(dsn string) string { return strings.Replace(dsn, "///postgres?", "///authentik?", 1) }
	pooled, direct := authentik(server.Pooler(2)), authentik(server.DSN())
	admin := open(t, direct)

	migration, other := connect(t, pooled, "authentik"), connect(t, pooled, "web")
	migration.do("SELECT pg_advisory_lock(1000)")
	// While another client uses that session, the unlock goes to a second one.
	other.do("BEGIN")
	migration.do("SELECT pg_advisory_unlock(1000)")
	other.do("COMMIT")
	waits := connect(t, direct, "next deploy").later("SELECT pg_advisory_lock(1000)")
	eventually(t, admin, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
	migration.close()

	s := scan(t, direct, sqlsource.Options{})
	l := find(sweep(t, s).Locks, "advisory:authentik:1000")
	if l == nil || l.Library != "authentik" || l.Waiters != 1 || l.Session == nil || l.Session.State != locksteward.SessionIdle || l.Session.StateSince.IsZero() {
		t.Fatalf("the stranded lock is %+v", l)
	}
	if v := judge(t, *l, 0, "holder/stranded"); v.Result != rules.Clear {
		t.Errorf("at once: %+v", v)
	}
	if v := judge(t, *l, time.Minute, "holder/stranded"); v.Result != rules.Fires || v.Finding.Severity != locksteward.SeverityWarning {
		t.Errorf("after a minute: %+v", v)
	}
	if v := judge(t, *l, time.Hour, "ttl/none"); v.Result != rules.NotApplicable {
		t.Errorf("a lock that ends with its session: %+v", v)
	}
	r := releaser(t, direct, sqlsource.Options{Digest: digest})
	_, seen := freeze(t, r, "look", l.Key)
	if !strings.Contains(seen.Script, "pg_terminate_backend") || seen.Refusal != nil {
		t.Errorf("preview %+v", seen)
	}
	if limits := r.Limits(seen.Now); !strings.Contains(limits.Decision, "whole database session") || limits.Undo == "" || limits.Release != nil {
		t.Errorf("limits %+v", limits)
	}
	out, err := r.Release(t.Context(), frozen("r-1", l))
	if err != nil || out.State != locksteward.RequestReleased || out.WaitersWoken != 1 {
		t.Fatalf("release: %+v, %v", out, err)
	}
	select {
	case err := <-waits:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the waiter does not get the lock")
	}
	if now := find(sweep(t, s).Locks, l.Key); now == nil || now.Holder.App != "next deploy" {
		t.Errorf("the lock is %+v now", now)
	}
}

// Behind a pooler nobody can say whose session holds a lock: it is no target.
func TestPoolerIsNoTarget(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	s := scan(t, server.Pooler(2), sqlsource.Options{})
	if _, err := s.Sweep(t.Context()); err == nil || !strings.Contains(s.State().Reason, "pooler") {
		t.Errorf("%v, reason %q", err, s.State().Reason)
	}
}
