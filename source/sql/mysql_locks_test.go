package sqlsource_test

import (
	"context"
	"database/sql"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// mySession is one session of an application, which ends with the test.
type mySession struct {
	t    testing.TB
	conn *sql.Conn
	id   int64
}

func connectMySQL(t testing.TB, db *sql.DB) *mySession {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have ended it
	s := &mySession{t: t, conn: conn}
	if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&s.id); err != nil {
		t.Fatal(err)
	}
	return s
}

// take takes a user lock.
func (s *mySession) take(name string) {
	s.t.Helper()
	if err := <-s.takes(name); err != nil {
		s.t.Fatalf("GET_LOCK(%q): %v", name, err)
	}
}

// takes waits for a user lock.
func (s *mySession) takes(name string) <-chan error {
	done := make(chan error, 1)
	go func() {
		var got sql.NullInt64
		err := s.conn.QueryRowContext(context.WithoutCancel(s.t.Context()), "SELECT GET_LOCK(?, 60)", name).Scan(&got)
		if err == nil && got.Int64 != 1 {
			err = fmt.Errorf("got %v", got)
		}
		done <- err
	}()
	return done
}

// lockServers are the servers that list user locks, each in its way.
var lockServers = map[string]func(t testing.TB) *testmariadb.Server{
	"MariaDB with its plugin": func(t testing.TB) *testmariadb.Server { return testmariadb.Start(t) },
	"MariaDB with performance_schema": func(t testing.TB) *testmariadb.Server {
		return testmariadb.Start(t, "metadata-lock-info=OFF", "performance-schema=ON", "performance-schema-instrument=wait/lock/metadata/sql/mdl=ON",
			"performance-schema-consumer-events-transactions-current=ON", "performance-schema-instrument=transaction=ON")
	},
	"MariaDB asked for names": func(t testing.TB) *testmariadb.Server { return testmariadb.Start(t, "metadata-lock-info=OFF") },
	"MySQL":                   func(t testing.TB) *testmariadb.Server { return testmariadb.StartMySQL(t) },
}

// waits waits until a number of sessions wait for user locks.
func waits(t testing.TB, db *sql.DB, n int) {
	t.Helper()
	eventually(t, db, fmt.Sprintf("SELECT COUNT(*) = %d FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'", n))
}

// A lock that was taken on a pooled connection, whose unlock went to another one, is found as
// stranded; its release ends that session alone, and the waiter goes on.
func TestUserLockOnAPooledConnection(t *testing.T) {
	t.Parallel()
	for name, start := range lockServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			db := openMySQL(t, server.DSN())
			migration := fmt.Sprint(2053462845 * int64(crc32.ChecksumIEEE([]byte("test"))))
			pooled, other := connectMySQL(t, db), connectMySQL(t, db)
			pooled.take(migration)
			pooled.take("nightly")
			var released sql.NullInt64
			if err := other.conn.QueryRowContext(t.Context(), "SELECT RELEASE_LOCK(?)", migration).Scan(&released); err != nil || released.Int64 != 0 {
				t.Fatalf("the unlock on another session: %v, %v", released, err)
			}
			next := connectMySQL(t, db)
			waiter := next.takes(migration)
			waits(t, db, 1)

			src := openSource(t, server.DSN(), sqlsource.Options{})
			s := scanOver(t, src)
			classes, err := class.NewSet([]class.Class{{Name: "jobs", Match: []string{"getlock:nightly"}}, {Name: "all", Match: []string{"getlock:*"}}})
			if err != nil {
				t.Fatal(err)
			}
			src.SetClasses(classes)
			got := sweep(t, s)
			l := find(got.Locks, "getlock:"+migration)
			if l == nil || l.Library != "rails" || l.Type != sqlsource.TypeUserLock || l.Lifetime != locksteward.LifetimeSession || l.Waiters != 1 ||
				l.Identity != locksteward.IdentityLineage || l.Holder.Session != fmt.Sprint(pooled.id) {
				t.Fatalf("the lock is %+v", got.Locks)
			}
			session := l.Session
			if session == nil || session.User != "root" || session.State != locksteward.SessionIdle || session.StateSince.IsZero() || !slices.Equal(session.Locks, []string{"getlock:nightly"}) {
				t.Errorf("its session is %+v", session)
			}
			if len(got.Waiters) != 1 || got.Waiters[0].Session != fmt.Sprintf("t: session %d", next.id) || got.Waiters[0].Since.IsZero() {
				t.Errorf("waiters %+v", got.Waiters)
			}
			if l := find(got.Locks, "getlock:nightly"); l == nil || l.Class != "jobs" || len(got.Locks) != 2 {
				t.Errorf("seen %+v", got.Locks)
			}
			if v := judge(t, *l, 0, "holder/stranded"); v.Result != rules.Clear {
				t.Errorf("at once: %+v", v)
			}
			if v := judge(t, *l, time.Minute, "holder/stranded"); v.Result != rules.Fires {
				t.Errorf("after a minute: %+v", v)
			}
			if v := judge(t, *l, time.Hour, "ttl/none"); v.Result != rules.NotApplicable {
				t.Errorf("a lock that ends with its session: %+v", v)
			}
			r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest})
			_, seen := freeze(t, r, "look", l.Key)
			if !strings.Contains(seen.Script, "KILL CONNECTION IF(") || seen.Refusal != nil || !slices.Equal(seen.AlsoEnds, session.Locks) && name != "MariaDB asked for names" {
				t.Errorf("preview %+v", seen)
			}
			if limits := r.Limits(seen.Now); !strings.Contains(limits.Decision, "whole database session") || limits.Undo == "" || limits.Release != nil {
				t.Errorf("limits %+v", limits)
			}
			out, err := r.Release(t.Context(), frozen(rid(t, 1), l))
			if err != nil || out.State != locksteward.RequestReleased || out.WaitersWoken != 1 {
				t.Fatalf("release: %+v, %v", out, err)
			}
			if err := <-waiter; err != nil {
				t.Fatalf("the waiter does not get the lock: %v", err)
			}
			after := sweep(t, s)
			if now := find(after.Locks, l.Key); now == nil || now.TokenDigest == l.TokenDigest || now.Waiters != 0 || len(after.Locks) != 1 {
				t.Errorf("after the release: %+v", after.Locks)
			}
			// Again, and with the evidence of the hold that has gone: the next one stays.
			for _, id := range []string{rid(t, 1), rid(t, 2)} {
				if _, err := r.Release(t.Context(), frozen(id, l)); err != nil {
					t.Error(err)
				}
			}
			if err := next.conn.PingContext(t.Context()); err != nil {
				t.Errorf("the next holder's session is gone: %v", err)
			}
			// An open transaction is not idle.
			for _, statement := range []string{"CREATE TABLE k (v int) ENGINE=InnoDB", "BEGIN", "INSERT INTO k VALUES (1)"} {
				must(t, next.conn, statement)
			}
			inTransaction := func() bool {
				l := find(sweep(t, s).Locks, l.Key)
				return l != nil && l.Session.State == locksteward.SessionInTransaction
			}
			// InnoDB renews its list of transactions when nobody has read it for 100 ms.
			for deadline := time.Now().Add(time.Minute); !inTransaction(); {
				if time.Now().After(deadline) {
					t.Fatal("the session is not seen in its transaction")
				}
				_ = source.Sleep(t.Context(), 200*time.Millisecond)
			}
		})
	}
}

// A release ends the session that was seen, or none: also where another session takes the lock in the
// moment of the release.
func TestSessionRacesOfMariaDB(t *testing.T) {
	t.Parallel()
	raceSessions(t, testmariadb.Start(t).DSN()) // user locks are those of the whole server
}

func TestSessionRacesOfMySQL(t *testing.T) {
	t.Parallel()
	raceSessions(t, testmariadb.StartMySQL(t).DSN())
}

func raceSessions(t *testing.T, dsn string) {
	t.Helper()
	db := openMySQL(t, dsn)
	db.SetMaxIdleConns(0)
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	r.KeepConnections(t, dsn)
	outcomes := map[locksteward.RequestState]int{}
	ctx := context.WithoutCancel(t.Context())
	const name = "raced"
	for i := range max(*races/20, 20) {
		first, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		second, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var got, next sql.NullInt64
		if err := first.QueryRowContext(ctx, "SELECT GET_LOCK(?, 60)", name).Scan(&got); err != nil || got.Int64 != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		req, _ := freeze(t, r, fmt.Sprintf("r-%d", i), "getlock:"+name)
		var others sync.WaitGroup
		others.Go(func() {
			if err := second.QueryRowContext(ctx, "SELECT GET_LOCK(?, 60)", name).Scan(&next); err != nil || next.Int64 != 1 {
				t.Errorf("race %d: the next holder: %v, %v", i, next, err)
			}
		})
		if i%2 == 0 {
			others.Go(func() { _, _ = first.ExecContext(ctx, "DO RELEASE_LOCK(?)", name) })
		}
		out, err := r.Release(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		others.Wait()
		outcomes[out.State]++
		if err := second.PingContext(ctx); err != nil {
			t.Fatalf("race %d: %s, and the next holder's session is gone: %v", i, out.State, err)
		}
		_ = first.Close()
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%v", outcomes)
	if outcomes[locksteward.RequestReleased] == 0 || outcomes[locksteward.RequestFailed]+outcomes[locksteward.RequestUnknown] > 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}

// Without PROCESS locks are seen and released, and nothing is said of sessions and waiters.
func TestUserLocksWithoutRights(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	must(t, db, "CREATE USER reader; GRANT SELECT ON test.* TO reader; CREATE USER releaser; GRANT SELECT ON test.* TO releaser")
	connectMySQL(t, db).take("job")
	s := scan(t, asMySQL(t, server.DSN(), "reader"), sqlsource.Options{})
	l := find(sweep(t, s).Locks, "getlock:job")
	if l == nil || l.Identity != locksteward.IdentityLineage || l.Waiters != -1 || l.Session == nil || l.Session.User != "" || l.Session.State != "" || !l.Session.StateSince.IsZero() {
		t.Fatalf("the lock is %+v", l)
	}
	if notes := s.Stats().Degraded; len(notes) != 1 || !strings.Contains(notes[0], "grant PROCESS") {
		t.Errorf("degraded %q", notes)
	}
	if v := judge(t, *l, time.Hour, "holder/stranded"); v.Result == rules.Fires {
		t.Errorf("stranded: %+v", v)
	}
	r := releaser(t, asMySQL(t, server.DSN(), "releaser"), sqlsource.Options{Digest: digest})
	if out, err := r.Release(t.Context(), frozen(rid(t, 1), l)); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "locksteward acl") {
		t.Errorf("without CONNECTION ADMIN: %+v, %v", out, err)
	}
	must(t, db, "GRANT CONNECTION ADMIN ON *.* TO releaser")
	if out, err := r.Release(t.Context(), frozen(rid(t, 2), l)); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("with it: %+v, %v", out, err)
	}
}

// A restart gives ids of sessions anew: an equal id is another session.
func TestSessionOfARestartedServer(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	connectMySQL(t, db).take("job")
	l := find(sweep(t, scan(t, server.DSN(), sqlsource.Options{})).Locks, "getlock:job")
	started := func() (at float64) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP(NOW()) - VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Uptime'").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	for first := started(); started() == first; { // starts are told apart by seconds
		server.Restart()
	}
	r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest})
	before, err := strconv.ParseInt(l.Holder.Session, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(0) // each connection has the next id
	again := connectMySQL(t, db)
	for again.id < before {
		again = connectMySQL(t, db)
	}
	if again.id != before {
		t.Logf("session %d in place of %d: ids are not compared", again.id, before)
	}
	again.take("job")
	if out, err := r.Release(t.Context(), frozen(rid(t, 1), l)); err != nil || out.State != locksteward.RequestChanged {
		t.Errorf("release: %+v, %v", out, err)
	}
	if err := again.conn.PingContext(t.Context()); err != nil {
		t.Errorf("the session of the restarted server is gone: %v", err)
	}
}

// Names have any bytes: what the server's list cuts or alters is shown and not released.
func TestUserLockNames(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t, "sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES")
	db := openMySQL(t, server.DSN())
	c := connectMySQL(t, db)
	names := []string{"a'b\"c`d\\e\nf;--", "ü:%25#", "what?", strings.Repeat("x", 63)}
	lossy := []string{strings.Repeat("y", 150), strings.Repeat("y", 151), "💣", "\xff\xfe"}
	for _, name := range append(slices.Clone(names), lossy...) {
		c.take(name)
	}
	s := scan(t, server.DSN(), sqlsource.Options{})
	got := sweep(t, s)
	for _, name := range names {
		l := find(got.Locks, "getlock:"+name)
		if l == nil || l.Identity != locksteward.IdentityLineage {
			t.Errorf("%q is %+v", name, l)
			continue
		}
		next := connectMySQL(t, db)
		next.take(name + "2")
		l = find(sweep(t, s).Locks, "getlock:"+name+"2")
		if len(name) == 63 {
			continue // it has 64 letters, or more
		}
		r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest})
		if out, err := r.Release(t.Context(), frozen("r-"+name, l)); err != nil || out.State != locksteward.RequestReleased {
			t.Errorf("%q: %+v, %v", name, out, err)
		}
	}
	r, unsure := releaser(t, server.DSN(), sqlsource.Options{Digest: digest}), 0
	for _, l := range got.Locks {
		if l.Identity == locksteward.IdentityNone {
			unsure++
			if why := r.Limits(frozen("r", &l).Evidence).Release; !isRefused(why) || !strings.Contains(why.Error(), "part of the name") {
				t.Errorf("limits of %q: %v", l.Key, why)
			}
			if out, err := r.Release(t.Context(), frozen("r-"+l.Key, &l)); err != nil || out.State != locksteward.RequestFailed {
				t.Errorf("release of %q: %+v, %v", l.Key, out, err)
			}
		}
	}
	if unsure != 3 { // two are the same in the list
		t.Errorf("%d unsure of %+v", unsure, got.Locks)
	}
	if err := c.conn.PingContext(t.Context()); err != nil {
		t.Errorf("the session is gone: %v", err)
	}
}

// Who waits with a statement that hides the name is somebody, but nobody knows where.
func TestWaiterWithoutName(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	connectMySQL(t, db).take("it's")
	connectMySQL(t, db).take("other")
	s := scan(t, server.DSN(), sqlsource.Options{})
	if l := find(sweep(t, s).Locks, "getlock:it's"); l == nil || l.Waiters != 0 {
		t.Fatalf("the lock is %+v", l)
	}
	hidden := connectMySQL(t, db)
	must(t, hidden.conn, "SET @name = 'it''s'")
	done := make(chan error, 2)
	run := func(c *mySession, statement string) {
		go func() {
			_, err := c.conn.ExecContext(context.WithoutCancel(t.Context()), statement)
			done <- err
		}()
	}
	run(hidden, "DO GET_LOCK(@name, 60)")
	waits(t, db, 1)
	if l := find(sweep(t, s).Locks, "getlock:it's"); l == nil || l.Waiters != -1 {
		t.Errorf("with a hidden waiter: %+v", l)
	}
	run(connectMySQL(t, db), `DO GET_LOCK('it\'s', 60)`)
	waits(t, db, 2)
	got := sweep(t, s)
	if l := find(got.Locks, "getlock:it's"); l == nil || l.Waiters != 1 || len(got.Waiters) != 1 {
		t.Errorf("with both: %+v", l)
	}
	if l := find(got.Locks, "getlock:other"); l == nil || l.Waiters != -1 {
		t.Errorf("the other lock: %+v", l)
	}
	server.Kill()
	for range 2 {
		<-done
	}
}

func TestUserLockLibraries(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"prisma_migrate":  "prisma",
		"Flyway--1234567": "flyway",
		"flyway-77":       "flyway",
		"Flyway-x":        "get-lock",
		"anything":        "get-lock",
		"461bdc25ceb8a64": "get-lock",
		"1486364155":      "get-lock",
		fmt.Sprintf("%d", 2053462845*int64(0x85f61a9c)): "rails",
		fmt.Sprintf("%x", int64(0x3d32ad9e)*0x85f61a9c): "sqlx",
		// golang-migrate: GenerateAdvisoryLockId("app_production:schema_migrations").
		fmt.Sprint(crc32.ChecksumIEEE([]byte("app_production:schema_migrations")) * 1486364155): "golang-migrate",
	} {
		if got := sqlsource.UserLockLibrary(name, "app_production"); got != want {
			t.Errorf("%q is of %s, want %s", name, got, want)
		}
	}
}

var _ source.Releaser = (*sqlsource.Releaser)(nil)
