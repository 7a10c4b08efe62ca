package sqlsource_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// A table that cannot be read ends nothing of its own, says why, and holds up no other part.
func TestTablesThatCannotBeReadInMariaDB(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts   sqlsource.Options
		spoil  string
		reason string
		repair string
	}{
		"too many locks": {
			opts:   sqlsource.Options{MaxLocks: 50},
			spoil:  "INSERT INTO app_locks SELECT CONCAT('many', seq), 'x', NOW(), NOW() + INTERVAL 1 HOUR FROM seq_1_to_60",
			reason: "more than 50 locks", repair: "DELETE FROM app_locks WHERE name LIKE 'many%'",
		},
		"no right": {
			spoil:  "REVOKE SELECT ON app_locks FROM READER; GRANT INSERT ON app_locks TO READER",
			reason: "grant what `locksteward acl` prints", repair: "DO 0",
		},
		"no right at all": {
			spoil:  "REVOKE SELECT ON app_locks FROM READER",
			reason: "has no such table", repair: "DO 0",
		},
		"no column": {
			spoil: "ALTER TABLE app_locks CHANGE owner boss varchar(200)", reason: `no column "owner"`,
			repair: "ALTER TABLE app_locks CHANGE boss owner varchar(200)",
		},
		"another type": {
			spoil: "ALTER TABLE app_locks CHANGE until until blob", reason: `column "until" of type blob, want a time`,
			repair: "ALTER TABLE app_locks CHANGE until until datetime(6)",
		},
		"no table": {
			spoil: "RENAME TABLE app_locks TO app_lock", reason: "has no such table",
			repair: "RENAME TABLE app_lock TO app_locks",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testmariadb.Database(t)
			db, reader := openMySQL(t, dsn), "reader_of_"+myName(dsn)
			test.spoil, test.repair = strings.ReplaceAll(test.spoil, "READER", reader), strings.ReplaceAll(test.repair, "READER", reader)
			must(t, db, mysqlRows.create)
			must(t, db, "CREATE USER "+reader+"; GRANT SELECT ON app_locks TO "+reader)
			must(t, db, "INSERT INTO app_locks VALUES ('a', 'me', NOW(), NOW() + INTERVAL 1 HOUR)")
			must(t, db, mysqlTables[5].create)
			must(t, db, mysqlTables[5].take)
			must(t, db, "GRANT SELECT ON knex_migrations_lock TO "+reader)
			test.opts.Tables = []sqlsource.Table{leases}
			s := scan(t, asMySQL(t, dsn, reader), test.opts)
			sweep(t, s)

			must(t, db, test.spoil)
			must(t, db, "UPDATE knex_migrations_lock SET is_locked = 0")
			got, err := s.Sweep(t.Context())
			if err == nil || got.Complete() {
				t.Errorf("complete %v, %v", got.Complete(), err)
			}
			if reason := reasonOf(t, got, "app_locks"); !strings.Contains(reason, test.reason) {
				t.Errorf("reason %q, want %q in it", reason, test.reason)
			}
			if len(got.Endings) != 1 || got.Endings[0].Lock.Library != "knex" {
				t.Errorf("endings %+v", got.Endings)
			}
			if _, ok := s.Table().Get(0, "lock:a"); !ok {
				t.Error("the lock of the table is forgotten")
			}
			must(t, db, test.repair)
			must(t, db, "GRANT SELECT ON app_locks TO "+reader)
			if got := sweep(t, s); find(got.Locks, "lock:a") == nil {
				t.Errorf("after the repair: %+v", got)
			}
		})
	}
}

// A table of a library that may not be read is named, and its locks are not resolved, also where the
// catalogue does not show it any more.
func TestUnreadableLibraryTableInMariaDB(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	must(t, db, mysqlTables[5].create)
	must(t, db, mysqlTables[5].take)
	must(t, db, "CREATE USER reader; GRANT PROCESS ON *.* TO reader; GRANT SELECT ON knex_migrations_lock TO reader; CREATE TABLE other (a int); GRANT SELECT ON other TO reader")
	s := scan(t, asMySQL(t, server.DSN(), "reader"), sqlsource.Options{})
	if got := sweep(t, s); len(got.Locks) != 1 {
		t.Fatalf("seen %+v", got.Locks)
	}
	must(t, db, "REVOKE SELECT ON knex_migrations_lock FROM reader")
	for range 3 {
		got := sweep(t, s)
		if notes := s.Stats().Degraded; len(got.Endings) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "test.knex_migrations_lock of knex") {
			t.Errorf("ended %+v, degraded %q", got.Endings, notes)
		}
	}
	if _, err := s.Table().Refresh(t.Context(), "test.knex_migrations_lock:1"); err == nil || strings.Contains(err.Error(), "not found") {
		t.Errorf("read: %v", err)
	}
	must(t, db, "GRANT SELECT ON knex_migrations_lock TO reader")
	sweep(t, s)
	must(t, db, "DROP TABLE knex_migrations_lock; GRANT SELECT ON test.* TO reader")
	if got := sweep(t, s); len(got.Endings) != 1 {
		t.Errorf("its table is dropped: ended %+v", got.Endings)
	}
}

// A table that is altered is not waited for, and a row that somebody has locked is not either.
func TestLockedTableInMariaDB(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	db := openMySQL(t, dsn)
	must(t, db, mysqlTables[5].create)
	must(t, db, mysqlTables[5].take)
	s := scan(t, dsn, sqlsource.Options{Timeout: 3 * time.Second})
	l := find(sweep(t, s).Locks, myName(dsn)+".knex_migrations_lock:1")
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})

	migration := connectMySQL(t, db)
	must(t, migration.conn, "BEGIN; SELECT * FROM knex_migrations_lock FOR UPDATE")
	if out, err := r.Release(t.Context(), frozen(rid(t, 1), l)); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "locked by somebody else") {
		t.Errorf("a locked row: %+v, %v", out, err)
	}
	must(t, migration.conn, "COMMIT; LOCK TABLES knex_migrations_lock WRITE")
	got, err := s.Sweep(t.Context())
	if reason := reasonOf(t, got, "knex_migrations_lock"); err == nil || !strings.Contains(reason, "alters") {
		t.Errorf("reason %q, %v", reason, err)
	}
	must(t, migration.conn, "UNLOCK TABLES")
	sweep(t, s)
	if out, err := r.Release(t.Context(), frozen(rid(t, 2), l)); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("once it is free: %+v, %v", out, err)
	}
}

// Whatever the server's defaults are, names of any bytes are read, compared and released.
func TestModesAndNamesInMariaDB(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT", "ORACLE", "HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH,IGNORE_SPACE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := testmariadb.Start(t, "sql-mode="+mode, "autocommit=0", "default-time-zone=+09:00", "character-set-server=latin1", "transaction-isolation=SERIALIZABLE")
			db := openMySQL(t, server.DSN())
			must(t, db, "SET autocommit = 1")
			c := connectMySQL(t, db)
			must(t, c.conn, "SET autocommit = 1, sql_mode = ''")
			must(t, c.conn, mysqlRows.create)
			names := []string{"", "a", "A", " a", "ü %25:#'\"\\\n\x01", "💣", `\' OR 1=1 -- `, "`", "?", "\x00", strings.Repeat("x", 700)}
			for _, name := range names {
				must(t, c.conn, "INSERT INTO app_locks VALUES (?, ?, NOW(), '9999-12-31 23:59:59')", name, "me "+name[:min(len(name), 9)])
			}
			opts := sqlsource.Options{Digest: digest, Tables: []sqlsource.Table{leases}}
			s, r := scan(t, server.DSN(), opts), releaser(t, server.DSN(), opts)
			got := sweep(t, s)
			if len(got.Locks) != len(names) {
				t.Errorf("%d locks, want %d", len(got.Locks), len(names))
			}
			for i, name := range names {
				l := find(got.Locks, "lock:"+name)
				if l == nil {
					t.Errorf("%.20q is not seen", name)
					continue
				}
				if ago := l.At.Sub(l.Acquired); ago < 0 || ago > time.Minute {
					t.Errorf("acquired %s, seen at %s", l.Acquired, l.At)
				}
				if _, err := s.Table().Refresh(t.Context(), l.Key); err != nil {
					t.Errorf("%.20q: %v", name, err)
				}
				if out, err := r.Release(t.Context(), frozen(fmt.Sprint("r-", i), l)); err != nil || out.State != locksteward.RequestReleased {
					t.Errorf("%.20q: %+v, %v", name, out, err)
				}
				if got := sweep(t, s); len(got.Locks) != len(names)-i-1 {
					t.Errorf("after the release of %.20q: %d locks", name, len(got.Locks))
				}
			}
			for _, name := range []string{"lock:\xff\xfe", "lock:", "getlock:\xff", "getlock:", "getlock:" + strings.Repeat("y", 300), "other"} {
				if _, err := s.Table().Refresh(t.Context(), name); err == nil {
					t.Errorf("%.20q is there", name)
				}
			}
		})
	}
}

// On a read-only server locks are seen, and releases are refused.
func TestReadOnlyMariaDB(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	must(t, db, mysqlTables[5].create)
	must(t, db, mysqlTables[5].take)
	holder := connectMySQL(t, db)
	holder.take("job")
	must(t, db, "SET GLOBAL read_only = 1")
	got := sweep(t, scan(t, server.DSN(), sqlsource.Options{}))
	r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest})
	for _, name := range []string{"test.knex_migrations_lock:1", "getlock:job"} {
		l := find(got.Locks, name)
		if l == nil {
			t.Fatalf("%s is not seen", name)
		}
		if _, seen := freeze(t, r, "look", name); !isRefused(seen.Refusal) || !strings.Contains(seen.Refusal.Error(), "read-only") {
			t.Errorf("refusal %v", seen.Refusal)
		}
		if out, err := r.Release(t.Context(), frozen("r-"+name, l)); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "read-only") {
			t.Errorf("release %+v, %v", out, err)
		}
	}
	if err := holder.conn.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	must(t, db, "SET GLOBAL read_only = 0")
	if out, err := r.Release(t.Context(), frozen(rid(t, 2), find(got.Locks, "getlock:job"))); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("release %+v, %v", out, err)
	}
}

// A server that is stopped or gone ends no lock; what is known again after its return is the same.
func TestMariaDBAway(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	must(t, db, mysqlTables[0].create)
	must(t, db, mysqlTables[0].take)
	connectMySQL(t, db).take("job")
	s := scan(t, server.DSN(), sqlsource.Options{Timeout: time.Second})
	r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest, Timeout: time.Second})
	row := find(sweep(t, s).Locks, "test.DATABASECHANGELOGLOCK:1")
	away := func(what string) {
		t.Helper()
		got, err := s.Sweep(t.Context())
		if err == nil || len(got.Endings) != 0 || s.State().Reason == "" {
			t.Errorf("%s: ended %+v, reason %q, %v", what, got.Endings, s.State().Reason, err)
		}
		if out, err := r.Release(t.Context(), frozen("r-"+what, row)); err != nil || out.State != locksteward.RequestFailed {
			t.Errorf("%s: release %+v, %v", what, out, err)
		}
	}
	server.Pause()
	away("paused")
	server.Resume()
	testredis.Eventually(t, 30*time.Second, func() bool {
		got, err := s.Sweep(t.Context())
		return err == nil && got.Complete()
	}, "it is not swept again")
	server.Kill()
	away("killed")
	server.Restart()
	after := sweep(t, s)
	if now := find(after.Locks, row.Key); now == nil || now.TokenDigest != row.TokenDigest || now.History.Looks < 3 {
		t.Errorf("the row is %+v", now)
	}
	if len(after.Endings) != 1 || after.Endings[0].Lock.Key != "getlock:job" {
		t.Errorf("ended %+v, want the user lock", after.Endings)
	}
}

// A network that is cut, silent or swallows answers ends no lock; recovery takes one sweep.
func TestNetworkToMariaDBAway(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	must(t, db, mysqlTables[0].create)
	must(t, db, mysqlTables[0].take)
	proxy := testredis.NewProxy(t, server.Socket())
	through := "mariadb://root@" + proxy.Addr() + "/test"
	s := scan(t, through, sqlsource.Options{Timeout: time.Second})
	r := releaser(t, through, sqlsource.Options{Digest: digest, Timeout: time.Second})
	l := find(sweep(t, s).Locks, "test.DATABASECHANGELOGLOCK:1")
	for name, fault := range map[string]struct{ begin, end func() }{
		"cut":     {proxy.Cut, proxy.Heal},
		"frozen":  {func() { proxy.Freeze(true) }, func() { proxy.Freeze(false) }},
		"silent":  {func() { proxy.DropReplies(true) }, func() { proxy.DropReplies(false) }},
		"ignored": {func() { proxy.DropRequests(true) }, func() { proxy.DropRequests(false) }},
	} {
		fault.begin()
		got, err := s.Sweep(t.Context())
		if err == nil || len(got.Endings) != 0 || s.State().Reason == "" {
			t.Errorf("%s: ended %+v, reason %q, %v", name, got.Endings, s.State().Reason, err)
		}
		if out, err := r.Release(t.Context(), frozen("r-"+name, l)); err != nil || out.State != locksteward.RequestFailed {
			t.Errorf("%s: release %+v, %v", name, out, err)
		}
		fault.end()
		if after := sweep(t, s); find(after.Locks, l.Key) == nil || len(after.Endings) != 0 {
			t.Errorf("after %s: %+v", name, after)
		}
	}
}

// While another connection of a request may still run, nobody says what became of it; once it has ended,
// the row tells.
func TestLostAnswerOfMariaDB(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	db, s := openMySQL(t, dsn), scan(t, dsn, sqlsource.Options{})
	must(t, db, mysqlTables[0].create)
	must(t, db, mysqlTables[0].take)
	l := find(sweep(t, s).Locks, myName(dsn)+".DATABASECHANGELOGLOCK:1")
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	earlier := connectMySQL(t, db)
	earlier.take(sqlsource.RequestName(rid(t, 1)))
	if out, err := r.Resolve(t.Context(), frozen(rid(t, 1), l)); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("resolved as %+v, %v", out, err)
	}
	if got := sweep(t, s); len(got.Locks) != 1 {
		t.Errorf("locks of our own are shown: %+v", got.Locks)
	}
	if out, err := releaser(t, dsn, sqlsource.Options{Digest: digest}).Release(t.Context(), frozen(rid(t, 1), l)); err == nil {
		t.Errorf("released beside another connection: %+v", out)
	}
	must(t, earlier.conn, "DO RELEASE_ALL_LOCKS()")
	r.Lose(rid(t, 1), "")
	for range 2 {
		if out, err := r.Resolve(t.Context(), frozen(rid(t, 1), l)); err != nil || out.State != locksteward.RequestFailed {
			t.Errorf("resolved as %+v, %v", out, err)
		}
	}
	must(t, db, "UPDATE DATABASECHANGELOGLOCK SET LOCKEDBY = 'next'")
	r.Lose(rid(t, 2), "")
	if out, err := r.Resolve(t.Context(), frozen(rid(t, 2), l)); err != nil || out.State != locksteward.RequestUnknown {
		t.Errorf("resolved as %+v, %v", out, err)
	}
}

// At rest the watch asks one statement a second, however many tables there are.
func TestWatchOfMariaDBAsksOnceASecond(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t)
	db := openMySQL(t, server.DSN())
	for _, i := range []int{0, 1, 4, 5} {
		must(t, db, mysqlTables[i].create)
	}
	s := scan(t, server.DSN(), sqlsource.Options{})
	sweep(t, s)
	statements := func() (n int) {
		t.Helper()
		var name string
		if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := statements()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Watch(ctx, nil); err != nil {
		t.Error(err)
	}
	if asked := statements() - before; asked < 3 || asked > 7 { // one is that which asks
		t.Errorf("%d statements in 5 s", asked)
	}
}

// The rights that are printed are enough to read and to release, and each is needed.
func TestMySQLRightsAreEnough(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t testing.TB) *testmariadb.Server{
		"MariaDB": func(t testing.TB) *testmariadb.Server { return testmariadb.Start(t) },
		"MySQL":   func(t testing.TB) *testmariadb.Server { return testmariadb.StartMySQL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rightsAreEnough(t, start(t))
		})
	}
}

func rightsAreEnough(t *testing.T, server *testmariadb.Server) {
	t.Helper()
	db := openMySQL(t, server.DSN())
	for _, i := range []int{0, 1, 5} {
		must(t, db, mysqlTables[i].create)
		must(t, db, mysqlTables[i].take)
	}
	must(t, db, mysqlRows.create)
	must(t, db, "INSERT INTO app_locks VALUES ('a', 'me', NOW(), NOW() + INTERVAL 1 HOUR); CREATE USER app; GRANT ALL ON test.* TO app")
	opts := sqlsource.Options{Digest: digest, Tables: []sqlsource.Table{leases}}
	text, err := sqlsource.Rights(t.Context(), source.Login{URL: server.DSN()}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := sqlsource.Rights(t.Context(), source.Login{URL: "mysql://root@127.0.0.1:1/app"}, opts); err != nil || !strings.Contains(again, "-- the database was not asked") {
		t.Errorf("without a server: %v\n%s", err, again)
	}
	must(t, db, text)
	must(t, db, "ALTER USER locksteward ACCOUNT UNLOCK; ALTER USER locksteward_release ACCOUNT UNLOCK")
	app := connectMySQL(t, openMySQL(t, asMySQL(t, server.DSN(), "app")))
	app.take("job")
	reader, releases := asMySQL(t, server.DSN(), "locksteward"), asMySQL(t, server.DSN(), "locksteward_release")
	src := openSource(t, reader, opts)
	s := scanOver(t, src)
	got := sweep(t, s)
	if len(got.Locks) != 5 || len(s.Stats().Degraded) != 0 {
		t.Errorf("degraded %q, seen %+v\n%s", s.Stats().Degraded, got.Locks, text)
	}
	if l := find(got.Locks, "getlock:job"); l == nil || l.Session.User != "app" {
		t.Errorf("the user lock is %+v", l)
	}
	if bad := failed(src.Check(t.Context())); len(bad) != 0 {
		t.Errorf("checks of the reader: %q", bad)
	}
	r := releaser(t, releases, opts)
	if bad := failed(r.Check(t.Context())); len(bad) != 0 {
		t.Errorf("checks of the releaser: %q", bad)
	}
	if bad := failed(releaser(t, reader, opts).Check(t.Context())); len(bad) != 5 {
		t.Errorf("the reader may release but for %q", bad)
	}
	if out, err := releaser(t, reader, opts).Release(t.Context(), frozen(rid(t, 0), find(got.Locks, "getlock:job"))); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "locksteward acl") {
		t.Errorf("the reader ends a session: %+v, %v", out, err)
	}
	for _, l := range got.Locks {
		if out, err := r.Release(t.Context(), frozen("r-"+l.Key, &l)); err != nil || out.State != locksteward.RequestReleased {
			t.Errorf("%s: %+v, %v\n%s", l.Key, out, err, text)
		}
	}
	// Each right is needed. A new session has it, or has it not.
	grants := 0
	for line := range strings.Lines(text) {
		grant, ok := strings.CutPrefix(line, "GRANT ")
		if !ok {
			continue
		}
		grants++
		must(t, db, "REVOKE "+strings.Replace(grant, " TO ", " FROM ", 1))
		src, r := openSource(t, reader, opts), releaser(t, releases, opts)
		bad := append(failed(src.Check(t.Context())), failed(r.Check(t.Context()))...)
		// A table on which a user has no right at all is not in its catalogue.
		if hides := strings.HasPrefix(grant, "SELECT ON `test`") && !strings.Contains(grant, "_release") && !strings.Contains(grant, "app_locks"); len(bad) == 0 && !hides {
			t.Errorf("nothing is missing without %s", line)
		}
		must(t, db, line)
	}
	if grants < 14 {
		t.Errorf("%d grants in\n%s", grants, text)
	}
	server.Kill()
	for _, bad := range [][]string{failed(src.Check(t.Context())), failed(r.Check(t.Context()))} {
		if len(bad) != 1 || !slices.ContainsFunc(bad, func(s string) bool { return strings.HasPrefix(s, "database: ") }) {
			t.Errorf("of a dead server: %q", bad)
		}
	}
}

// A server that was started without its tables of rights refuses nobody.
func TestMariaDBWithoutGrants(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t, "skip-grant-tables")
	connectMySQL(t, openMySQL(t, server.DSN())).take("job")
	src := openSource(t, server.DSN(), sqlsource.Options{})
	if bad := failed(src.Check(t.Context())); len(bad) != 0 {
		t.Errorf("checks: %q", bad)
	}
	if l := find(sweep(t, scanOver(t, src)).Locks, "getlock:job"); l == nil || l.Session.State != locksteward.SessionIdle {
		t.Errorf("the lock is %+v", l)
	}
}

// A release waits for no other row, and is written to a binary log of any format.
func TestReleaseBesideOthersInMariaDB(t *testing.T) {
	t.Parallel()
	server := testmariadb.Start(t, "log-bin", "binlog-format=STATEMENT")
	db := openMySQL(t, server.DSN())
	for _, i := range []int{1, 2} {
		must(t, db, mysqlTables[i].create)
		must(t, db, mysqlTables[i].take)
	}
	must(t, db, "INSERT INTO shedlock SELECT 'other', lock_until, locked_at, locked_by FROM shedlock; INSERT INTO INT_LOCK SELECT LOCK_KEY, 'other', CLIENT_ID, CREATED_DATE, EXPIRED_AFTER FROM INT_LOCK")
	got := sweep(t, scan(t, server.DSN(), sqlsource.Options{}))
	must(t, connectMySQL(t, db).conn, "BEGIN; SELECT * FROM shedlock WHERE name = 'other' FOR UPDATE; SELECT * FROM INT_LOCK WHERE REGION = 'other' AND LOCK_KEY = '6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91' FOR UPDATE")
	r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest})
	for _, i := range []int{1, 2} {
		l := find(got.Locks, "test."+mysqlTables[i].name)
		if out, err := r.Release(t.Context(), frozen("r-"+l.Key, l)); err != nil || out.State != locksteward.RequestReleased {
			t.Errorf("%s: %+v, %v", l.Key, out, err)
		}
	}
}
