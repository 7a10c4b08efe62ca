package sqlsource_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

func TestAdvisoryLibraries(t *testing.T) {
	t.Parallel()
	for library, key := range map[string]int64{
		"prisma":              72707369,
		"goose":               5887940537704921958,
		"tern":                9628173550095224,
		"node-pg-migrate":     7241865325823964,
		"postgres-migrations": -8525285245963000605,
		"rails":               2053462845 * 0x85f61a9c, // crc32("app_production")
		"sqlx":                0x3d32ad9e * 0x85f61a9c,
		"flyway":              0x466C79776179 - 1234567,
		"postgres-advisory":   42,
	} {
		if got := sqlsource.AdvisoryLibrary(key, "app_production", "app"); got != library {
			t.Errorf("key %d is of %s, want %s", key, got, library)
		}
	}
	if got := sqlsource.AdvisoryLibrary(1000, "authentik", "u"); got != "authentik" {
		t.Errorf("key 1000 in database authentik is of %s", got)
	}
	if got := sqlsource.AdvisoryLibrary(1000, "app", "u"); got != "postgres-advisory" {
		t.Errorf("key 1000 in any database is of %s", got)
	}
}

// The keys that libraries compute are those that PostgreSQL and the libraries' own code compute.
func TestComputedKeys(t *testing.T) {
	t.Parallel()
	// golang-migrate/migrate, database/util_test.go: with the database's name alone.
	if got := sqlsource.MigrateKey("database_name", ""); got != 1764327054 {
		t.Errorf("golang-migrate's key is %d", got)
	}
	// zone is a vector of another project's test of sqlx's key.
	if got := sqlsource.AdvisoryLibrary(2771974297191923538, "zone", ""); got != "sqlx" {
		t.Errorf("sqlx's key of zone is of %s", got)
	}
}

func TestAdvisoryLocks(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	admin, s := open(t, dsn), scan(t, dsn, sqlsource.Options{})
	a, b, c := connect(t, dsn, "worker-a"), connect(t, dsn, "worker-b"), connect(t, dsn, "worker-c")
	a.do("SELECT pg_advisory_lock(72707369), pg_advisory_lock(-7, 8), pg_advisory_lock(-9)")
	a.do("SELECT pg_advisory_lock_shared(5)")
	b.do("SELECT pg_advisory_lock_shared(5)")
	waits := c.later("SELECT pg_advisory_lock(72707369)")
	eventually(t, admin, "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND objid = 72707369")

	got := sweep(t, s)
	db := nameOf(dsn)
	name := func(key string) string { return "advisory:" + db + ":" + key }
	prisma := find(got.Locks, name("72707369"))
	if prisma == nil || prisma.Library != "prisma" || prisma.Lifetime != locksteward.LifetimeSession || prisma.TTL != locksteward.NoExpiry ||
		prisma.Waiters != 1 || prisma.Holder.App != "worker-a" || prisma.Holder.Session != fmt.Sprint(a.pid) {
		t.Fatalf("Prisma's lock is %+v", prisma)
	}
	session := prisma.Session
	if session == nil || session.User != "postgres" || session.State != locksteward.SessionIdle || session.Since.IsZero() || session.StateSince.Before(session.Since) ||
		strings.Join(session.Locks, " ") != strings.Join([]string{name("-7:8"), name("-9"), name("5#" + fmt.Sprint(a.pid))}, " ") {
		t.Errorf("its session is %+v", session)
	}
	if len(got.Waiters) != 1 || got.Waiters[0].Key != prisma.Key || got.Waiters[0].Since.IsZero() || got.Waiters[0].Session != fmt.Sprintf("t: session %d", c.pid) || got.Waiters[0].App != "worker-c" {
		t.Errorf("waiters %+v", got.Waiters)
	}
	for _, want := range []string{"-7:8", "-9", "5#" + fmt.Sprint(a.pid), "5#" + fmt.Sprint(b.pid)} {
		if find(got.Locks, name(want)) == nil {
			t.Errorf("%s is not seen", want)
		}
	}
	if len(got.Locks) != 5 {
		t.Errorf("%d locks, want 5", len(got.Locks))
	}

	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	if _, seen := freeze(t, r, "look", prisma.Key); !slices.Equal(seen.AlsoEnds, session.Locks) {
		t.Errorf("the preview names %q, the session has %q", seen.AlsoEnds, session.Locks)
	}

	// The end of one shared holder is not that of another.
	b.do("SELECT pg_advisory_unlock_shared(5)")
	next := sweep(t, s)
	if len(next.Endings) != 1 || next.Endings[0].Lock.Key != name("5#"+fmt.Sprint(b.pid)) {
		t.Errorf("endings %+v", next.Endings)
	}
	a.do("SELECT pg_advisory_unlock(72707369)")
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	next = sweep(t, s)
	if now := find(next.Locks, prisma.Key); now == nil || now.TokenDigest == prisma.TokenDigest || now.Waiters != 0 {
		t.Errorf("the waiter's lock is %+v", now)
	}
}

// Locks of other databases of the server are those of other targets.
func TestAdvisoryLocksOfThisDatabase(t *testing.T) {
	t.Parallel()
	mine, other := testpg.Database(t), testpg.Database(t)
	connect(t, other, "other").do("SELECT pg_advisory_lock(1)")
	if got := sweep(t, scan(t, mine, sqlsource.Options{})); len(got.Locks) != 0 {
		t.Errorf("locks %+v", got.Locks)
	}
}

// Without pg_read_all_stats locks and waiters are seen, and nothing is said of sessions.
func TestAdvisoryLocksWithoutRights(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	admin := open(t, server.DSN())
	must(t, admin, "CREATE ROLE reader LOGIN; CREATE ROLE releaser LOGIN")
	connect(t, server.DSN(), "app").do("SELECT pg_advisory_lock(1)")
	s := scan(t, as(t, server.DSN(), "reader"), sqlsource.Options{})
	got := sweep(t, s)
	l := find(got.Locks, "advisory:postgres:1")
	if l == nil || l.Identity != locksteward.IdentityNone || l.Session == nil || !l.Session.Since.IsZero() || l.Session.State != "" {
		t.Fatalf("the lock is %+v", l)
	}
	if notes := s.Stats().Degraded; len(notes) != 1 || !strings.Contains(notes[0], "pg_read_all_stats") {
		t.Errorf("degraded %q", notes)
	}
	r := releaser(t, as(t, server.DSN(), "releaser"), sqlsource.Options{Digest: digest})
	if why := r.Limits(frozen("r-1", l).Evidence).Release; !isRefused(why) || !strings.Contains(why.Error(), "pg_read_all_stats") {
		t.Errorf("limits %v", why)
	}

	must(t, admin, "GRANT pg_read_all_stats TO reader, releaser")
	got = sweep(t, s)
	if l = find(got.Locks, "advisory:postgres:1"); l.Identity != locksteward.IdentityLineage || l.Session.State != locksteward.SessionIdle {
		t.Fatalf("the lock is %+v", l)
	}
	out, err := r.Release(t.Context(), frozen("r-1", l))
	if err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "locksteward acl") {
		t.Errorf("without pg_signal_backend: %+v, %v", out, err)
	}
	must(t, admin, "GRANT pg_signal_backend TO releaser")
	out, err = r.Release(t.Context(), frozen("r-2", l))
	if err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "superuser") {
		t.Errorf("a session of a superuser: %+v, %v", out, err)
	}
	must(t, admin, "CREATE ROLE app LOGIN")
	connect(t, as(t, server.DSN(), "app"), "app").do("SELECT pg_advisory_lock(2)")
	l = find(sweep(t, s).Locks, "advisory:postgres:2")
	if out, err = r.Release(t.Context(), frozen("r-3", l)); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("with both rights: %+v, %v", out, err)
	}
}

func TestPreparedTransaction(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, "max_prepared_transactions=2")
	c := connect(t, server.DSN(), "app")
	c.do("BEGIN")
	c.do("SELECT pg_advisory_xact_lock(3)")
	c.do("PREPARE TRANSACTION 'p'")
	defer c.do("ROLLBACK PREPARED 'p'")
	l := find(sweep(t, scan(t, server.DSN(), sqlsource.Options{})).Locks, "advisory:postgres:3")
	if l == nil || l.Session != nil || l.Identity != locksteward.IdentityNone {
		t.Fatalf("the lock is %+v", l)
	}
	r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest})
	if why := r.Limits(frozen("r", l).Evidence).Release; !isRefused(why) || !strings.Contains(why.Error(), "ROLLBACK PREPARED") {
		t.Errorf("limits %v", why)
	}
}

// A release ends the session that was seen, or none: also where another session takes the lock in the
// moment of the release.
func TestSessionRaces(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	r.KeepConnections(t, dsn)
	db := nameOf(dsn)
	outcomes := map[locksteward.RequestState]int{}
	ctx := context.WithoutCancel(t.Context())
	for i := range max(*races/20, 20) {
		first, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Exec(ctx, "SELECT pg_advisory_lock(1)"); err != nil {
			t.Fatal(err)
		}
		req, _ := freeze(t, r, fmt.Sprintf("r-%d", i), "advisory:"+db+":1")
		var next sync.WaitGroup
		next.Go(func() {
			if _, err := second.Exec(ctx, "SELECT pg_advisory_lock(1)"); err != nil {
				t.Errorf("race %d: the next holder: %v", i, err)
			}
		})
		if i%2 == 0 {
			next.Go(func() { _ = first.Close(ctx) })
		}
		out, err := r.Release(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		next.Wait()
		outcomes[out.State]++
		if err := second.Ping(ctx); err != nil {
			t.Fatalf("race %d: %s, and the next holder's session is gone: %v", i, out.State, err)
		}
		_ = first.Close(ctx)
		if err := second.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%v", outcomes)
	if outcomes[locksteward.RequestReleased] == 0 || outcomes[locksteward.RequestFailed]+outcomes[locksteward.RequestUnknown] > 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}
