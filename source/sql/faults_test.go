package sqlsource_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// reasonOf returns why the part of a sweep whose node ends in suffix is not complete.
func reasonOf(t testing.TB, sweep locksteward.Sweep, suffix string) string {
	t.Helper()
	for _, m := range sweep.Masters {
		if strings.HasSuffix(m.Node, suffix) {
			return m.Reason
		}
	}
	t.Fatalf("no part %q in %+v", suffix, sweep.Masters)
	return ""
}

// A table that cannot be read ends nothing of its own, says why, and holds up no other part.
func TestTablesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts   sqlsource.Options
		spoil  string
		reason string
		repair string
	}{
		"too many locks": {
			opts:   sqlsource.Options{MaxLocks: 50},
			spoil:  "INSERT INTO app_locks SELECT 'many' || i, 'x', now(), now() + interval '1 h' FROM generate_series(1, 60) i",
			reason: "more than 50 locks", repair: "DELETE FROM app_locks WHERE name LIKE 'many%'",
		},
		// As slow as 10 million rows without an index.
		"too slow": {
			opts: sqlsource.Options{Timeout: 3 * time.Second},
			spoil: `ALTER TABLE app_locks ENABLE ROW LEVEL SECURITY;
				CREATE POLICY slow ON app_locks USING ((SELECT count(*) FROM pg_sleep(60)) > 0)`,
			reason: "index", repair: "DROP POLICY slow ON app_locks; ALTER TABLE app_locks DISABLE ROW LEVEL SECURITY",
		},
		"no right": {
			spoil:  "REVOKE SELECT ON app_locks FROM READER",
			reason: "grant what `locksteward acl` prints", repair: "GRANT SELECT ON app_locks TO READER",
		},
		"no column": {
			spoil: "ALTER TABLE app_locks RENAME COLUMN owner TO boss", reason: `no column "owner"`,
			repair: "ALTER TABLE app_locks RENAME COLUMN boss TO owner",
		},
		"another type": {
			spoil: "ALTER TABLE app_locks ALTER until TYPE boolean USING true", reason: `column "until" of type boolean, want a time`,
			repair: "ALTER TABLE app_locks ALTER until TYPE timestamptz USING now() + interval '1 h'",
		},
		"no table": {
			spoil: "ALTER TABLE app_locks RENAME TO app_lock", reason: "has no such table",
			repair: "ALTER TABLE app_lock RENAME TO app_locks",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testpg.Database(t)
			db, reader := open(t, dsn), "reader_of_"+nameOf(dsn)
			must(t, db, appTables)
			must(t, db, "CREATE ROLE "+reader+" LOGIN; GRANT SELECT ON app_locks TO "+reader)
			test.spoil, test.repair = strings.ReplaceAll(test.spoil, "READER", reader), strings.ReplaceAll(test.repair, "READER", reader)
			must(t, db, "INSERT INTO app_locks VALUES ('a', 'me', now(), now() + interval '1 h')")
			must(t, db, libraryTables[6].create)
			must(t, db, libraryTables[6].take)
			must(t, db, "GRANT SELECT ON schema_lock TO "+reader)
			test.opts.Tables = []sqlsource.Table{leases}
			s := scan(t, as(t, dsn, reader), test.opts)
			sweep(t, s)

			must(t, db, test.spoil)
			must(t, db, "DELETE FROM schema_lock")
			got, err := s.Sweep(t.Context())
			if err == nil || got.Complete() {
				t.Errorf("complete %v, %v", got.Complete(), err)
			}
			if reason := reasonOf(t, got, "app_locks"); !strings.Contains(reason, test.reason) {
				t.Errorf("reason %q, want %q in it", reason, test.reason)
			}
			if len(got.Endings) != 1 || got.Endings[0].Lock.Library != "golang-migrate" {
				t.Errorf("endings %+v", got.Endings)
			}
			if _, ok := s.Table().Get(0, "lock:a"); !ok {
				t.Error("the lock of the table is forgotten")
			}
			must(t, db, test.repair)
			must(t, db, "GRANT SELECT ON app_locks TO "+reader)
			if got := sweep(t, s); find(got.Locks, "lock:a") == nil || len(got.Endings) != 0 && name != "another type" {
				t.Errorf("after the repair: %+v", got)
			}
		})
	}
}

// A table of a library that may not be read is named, and its locks are not resolved.
func TestUnreadableLibraryTable(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	db := open(t, server.DSN())
	must(t, db, libraryTables[6].create)
	must(t, db, libraryTables[6].take)
	must(t, db, "CREATE ROLE reader LOGIN; GRANT pg_read_all_stats TO reader; GRANT SELECT ON schema_lock TO reader")
	s := scan(t, as(t, server.DSN(), "reader"), sqlsource.Options{})
	if got := sweep(t, s); len(got.Locks) != 1 {
		t.Fatalf("seen %+v", got.Locks)
	}
	must(t, db, "REVOKE SELECT ON schema_lock FROM reader")
	got := sweep(t, s)
	if notes := s.Stats().Degraded; len(got.Endings) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "public.schema_lock of golang-migrate") {
		t.Errorf("ended %+v, degraded %q", got.Endings, notes)
	}
	if _, err := s.Table().Refresh(t.Context(), "public.schema_lock:1486364155"); err == nil || strings.Contains(err.Error(), "not found") {
		t.Errorf("read: %v", err)
	}
	must(t, db, "DROP TABLE schema_lock")
	if got := sweep(t, s); len(got.Endings) != 1 {
		t.Errorf("its table is dropped: ended %+v", got.Endings)
	}
}

// A table that is altered is not waited for.
func TestTableLockedByDDL(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	db := open(t, dsn)
	must(t, db, libraryTables[6].create)
	s := scan(t, dsn, sqlsource.Options{Timeout: 2 * time.Second})
	sweep(t, s)
	migration := connect(t, dsn, "migration")
	migration.do("BEGIN")
	migration.do("LOCK TABLE schema_lock IN ACCESS EXCLUSIVE MODE")
	got, err := s.Sweep(t.Context())
	if reason := reasonOf(t, got, "schema_lock"); err == nil || !strings.Contains(reason, "alters") {
		t.Errorf("reason %q, %v", reason, err)
	}
	migration.do("COMMIT")
	sweep(t, s)
}

// Names have any bytes that the database's encoding lets them have, and those asked for have any at all.
func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	db := open(t, dsn)
	must(t, db, "CREATE DATABASE raw"+fmt.Sprint(os.Getpid())+" ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
	raw := "postgres:///raw" + fmt.Sprint(os.Getpid()) + dsn[strings.Index(dsn, "?"):]
	for _, dsn := range []string{dsn, raw} {
		db := open(t, dsn)
		must(t, db, appTables)
		names := []string{"", "a", "ü %25:#'\"\\\n\x01", "💣", strings.Repeat("x", 1000)}
		for _, name := range names {
			must(t, db, "INSERT INTO app_locks VALUES ($1, 'me', now(), 'infinity')", name)
		}
		if dsn == raw {
			must(t, db, `SET client_encoding = 'SQL_ASCII'; INSERT INTO app_locks VALUES (E'\xff\xfe', E'\xff', now(), 'infinity')`)
			names = append(names, "\xff\xfe")
		}
		s := scan(t, dsn, sqlsource.Options{Tables: []sqlsource.Table{leases}})
		got := sweep(t, s)
		for _, name := range names {
			if find(got.Locks, "lock:"+name) == nil {
				t.Errorf("%q is not seen", name)
			}
			if l, err := s.Table().Refresh(t.Context(), "lock:"+name); err != nil || l.Key != "lock:"+name {
				t.Errorf("%q is read as %q, %v", name, l.Key, err)
			}
		}
		for _, name := range []string{"lock:\x00", "lock:\xff", "\xff", "advisory:", "public.x:1", strings.Repeat("y", 1<<20)} {
			if _, err := s.Table().Refresh(t.Context(), name); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("%.20q: %v", name, err)
			}
		}
	}
}

// In recovery and read-only locks are seen, and releases are refused.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		dsn := testpg.Database(t)
		db := open(t, dsn)
		must(t, db, libraryTables[6].create)
		must(t, db, libraryTables[6].take)
		must(t, db, "ALTER DATABASE "+nameOf(dsn)+" SET default_transaction_read_only = on")
		refusesReleases(t, dsn, "read-only")
	})
	t.Run("recovery", func(t *testing.T) {
		t.Parallel()
		server := testpg.Start(t, "wal_level=replica")
		db := open(t, server.DSN())
		must(t, db, libraryTables[6].create)
		must(t, db, libraryTables[6].take)
		must(t, db, "CHECKPOINT")
		var data string
		if err := db.QueryRowContext(t.Context(), "SHOW data_directory").Scan(&data); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		server.Restart()
		refusesReleases(t, server.DSN(), "recovery")
	})
}

func refusesReleases(t *testing.T, dsn, why string) {
	t.Helper()
	l := find(sweep(t, scan(t, dsn, sqlsource.Options{})).Locks, "public.schema_lock:1486364155")
	if l == nil {
		t.Fatal("the lock is not seen")
	}
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	_, seen := freeze(t, r, "look", l.Key)
	if !isRefused(seen.Refusal) || !strings.Contains(seen.Refusal.Error(), why) {
		t.Errorf("refusal %v", seen.Refusal)
	}
	if out, err := r.Release(t.Context(), frozen("r-1", l)); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, why) {
		t.Errorf("release %+v, %v", out, err)
	}
}

// A server that is stopped or gone ends no lock; what is known again after its return is the same.
func TestServerAway(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	db := open(t, server.DSN())
	must(t, db, libraryTables[0].create)
	must(t, db, libraryTables[0].take)
	connect(t, server.DSN(), "app").do("SELECT pg_advisory_lock(1)")
	s := scan(t, server.DSN(), sqlsource.Options{Timeout: time.Second})
	r := releaser(t, server.DSN(), sqlsource.Options{Digest: digest, Timeout: time.Second})
	before := sweep(t, s)
	row := find(before.Locks, "public.databasechangeloglock:1")
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
	if len(after.Endings) != 1 || after.Endings[0].Lock.Key != "advisory:postgres:1" {
		t.Errorf("ended %+v, want the session lock", after.Endings)
	}
}

// A network that is cut, silent or swallows answers ends no lock; recovery takes one sweep.
func TestNetworkAway(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	db := open(t, dsn)
	must(t, db, libraryTables[6].create)
	must(t, db, libraryTables[6].take)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testredis.NewProxy(t, filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")))
	through := "postgres://postgres@" + proxy.Addr() + "/" + nameOf(dsn)
	s := scan(t, through, sqlsource.Options{Timeout: time.Second})
	r := releaser(t, through, sqlsource.Options{Digest: digest, Timeout: time.Second})
	l := find(sweep(t, s).Locks, "public.schema_lock:1486364155")
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

// The answer to a commit is lost: the server's record of its transactions says what became of it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	db, s := open(t, dsn), scan(t, dsn, sqlsource.Options{})
	must(t, db, libraryTables[6].create)
	must(t, db, libraryTables[6].take)
	l := find(sweep(t, s).Locks, "public.schema_lock:1486364155")
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	for id, want := range map[string]locksteward.RequestState{"r-committed": locksteward.RequestReleased, "r-aborted": locksteward.RequestFailed} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var xid string
		if err := tx.QueryRowContext(t.Context(), "SELECT pg_current_xact_id()::text").Scan(&xid); err != nil {
			t.Fatal(err)
		}
		if id == "r-committed" {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Lose(id, xid)
		for range 2 {
			if out, err := r.Resolve(t.Context(), frozen(id, l)); err != nil || out.State != want {
				t.Errorf("%s: %+v, %v", id, out, err)
			}
		}
	}
	// Another process resolves: the lock stands, so nothing was done.
	other := releaser(t, dsn, sqlsource.Options{Digest: digest})
	if out, err := other.Resolve(t.Context(), frozen("r-3", l)); err != nil || out.State != locksteward.RequestFailed {
		t.Errorf("resolved as %+v, %v", out, err)
	}
	must(t, db, "DELETE FROM schema_lock")
	if out, err := other.Resolve(t.Context(), frozen("r-4", l)); err != nil || out.State != locksteward.RequestUnknown {
		t.Errorf("resolved as %+v, %v", out, err)
	}
	for act, e := range map[locksteward.Act]locksteward.Evidence{locksteward.ActUndo: {}, locksteward.ActLift: {}, locksteward.ActTakeOver: {Placeholder: time.Minute}} {
		e.Act = act
		if out, err := r.Release(t.Context(), locksteward.Request{ID: "r-" + string(act), Evidence: e}); err != nil || out.State != locksteward.RequestFailed {
			t.Errorf("%s: %+v, %v", act, out, err)
		}
	}
}

// At rest the watch asks one statement a second, however many tables there are.
func TestWatchAsksOnceASecond(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, "log_statement=all")
	db := open(t, server.DSN())
	for _, i := range []int{0, 1, 4, 5, 6} {
		must(t, db, libraryTables[i].create)
	}
	s := scan(t, server.DSN(), sqlsource.Options{})
	sweep(t, s)
	statements := func() int {
		raw, err := os.ReadFile(server.LogPath())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(raw), "LOG:  execute") + strings.Count(string(raw), "LOG:  statement")
	}
	before := statements()
	ctx, cancel := contextFor(t, 5*time.Second)
	defer cancel()
	if err := s.Watch(ctx, nil); err != nil {
		t.Error(err)
	}
	if asked := statements() - before; asked < 3 || asked > 6 {
		t.Errorf("%d statements in 5 s", asked)
	}
}

var _ source.Source = (*sqlsource.Source)(nil)
