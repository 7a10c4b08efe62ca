package sqlsource_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/sourcetest"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var races = flag.Int("conformance.races", 2000, "races of a release against a new hold")

// open returns a pool of an application, which is closed with the test.
func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func must(t testing.TB, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statement string, args ...any,
) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// as returns the URL for another user.
func as(t testing.TB, dsn, user string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("user", user)
	u.RawQuery = q.Encode()
	// Without a host the two slashes before it are needed all the same.
	return u.Scheme + "://" + u.Path + "?" + u.RawQuery
}

// rows is a database with a lock table of ours, whose rows are leases or stay for ever.
type rows struct {
	dsn    string
	db     *sql.DB
	digest locksteward.DigestKey
	sql    rowStatements

	mu     sync.Mutex
	owners map[string]string // by lock
}

var leases = sqlsource.Table{
	Library: "ours", Table: "app_locks", Prefix: "lock:", Name: []string{"name"}, Holder: "owner", Since: "taken", Until: "until", Release: "delete",
}

// rowStatements are those of a database for the table of ours.
type rowStatements struct{ create, take, free, owner string }

var postgresRows = rowStatements{
	create: appTables,
	// Without an end the row stands until somebody deletes it.
	take: `INSERT INTO app_locks VALUES ($1, $2, clock_timestamp(), CASE WHEN $3::bigint > 0 THEN clock_timestamp() + $3 * interval '1 microsecond' ELSE 'infinity' END)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, taken = excluded.taken, until = excluded.until`,
	free: `DELETE FROM app_locks WHERE name = $1`, owner: `SELECT owner FROM app_locks WHERE name = $1`,
}

const appTables = `CREATE TABLE app_locks (name text PRIMARY KEY, owner text, taken timestamptz, until timestamptz)`

func newRows(t testing.TB, dsn string) *rows {
	t.Helper()
	return newRowsOf(t, dsn, open(t, dsn), postgresRows)
}

func newRowsOf(t testing.TB, dsn string, db *sql.DB, statements rowStatements) *rows {
	t.Helper()
	s := &rows{dsn: dsn, db: db, digest: locksteward.NewDigestKey(), sql: statements, owners: map[string]string{}}
	must(t, s.db, statements.create)
	return s
}

func (s *rows) options() sqlsource.Options {
	return sqlsource.Options{Digest: s.digest, Tables: []sqlsource.Table{leases}}
}

func (s *rows) source(t testing.TB, login source.Login) source.Source {
	t.Helper()
	src, err := sqlsource.Open(login, s.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}

func (s *rows) Source(t testing.TB) source.Source { return s.source(t, source.Login{URL: s.dsn}) }

func (s *rows) Releaser(t testing.TB) source.Releaser {
	t.Helper()
	r := releaser(t, s.dsn, s.options())
	r.KeepConnections(t, s.dsn)
	return r
}

func releaser(t testing.TB, dsn string, opts sqlsource.Options) *sqlsource.Releaser {
	t.Helper()
	r, err := sqlsource.OpenReleaser(source.Login{URL: dsn}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *rows) Take(t testing.TB, name string, ttl time.Duration) {
	t.Helper()
	owner := rand.Text()
	if _, err := s.db.ExecContext(context.WithoutCancel(t.Context()), s.sql.take, name[len("lock:"):], owner, ttl.Microseconds()); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[name] = owner
}

func (s *rows) Free(t testing.TB, name string) {
	t.Helper()
	if _, err := s.db.ExecContext(context.WithoutCancel(t.Context()), s.sql.free, name[len("lock:"):]); err != nil {
		t.Error(err)
	}
}

func (s *rows) Held(t testing.TB, name string) bool {
	t.Helper()
	var owner string
	err := s.db.QueryRowContext(t.Context(), s.sql.owner, name[len("lock:"):]).Scan(&owner)
	if err != nil && err != sql.ErrNoRows {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && owner == s.owners[name]
}

const scannerPassword = "the-secret-of-the-scanner"

// onServer is a store on a server that can be restarted, and that refuses some users.
type onServer struct {
	*rows
	server *testpg.Server
}

func (s *onServer) Restart(t testing.TB) {
	t.Helper()
	s.server.Restart()
	must(t, s.db, "SELECT 1")
}

func (s *onServer) Cut(t testing.TB) {
	t.Helper()
	must(t, s.db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'locksteward'`)
}

func (s *onServer) Refused(t testing.TB) (sources map[string]source.Source, secrets []string) {
	t.Helper()
	must(t, s.db, `CREATE ROLE nobody_may LOGIN; CREATE ROLE unknown_login NOLOGIN`)
	password := func() (locksteward.Secret, error) { return scannerPassword, nil }
	return map[string]source.Source{
		"no right to read the table": s.source(t, source.Login{URL: as(t, s.dsn, "nobody_may")}),
		"no login":                   s.source(t, source.Login{URL: s.dsn, Username: "unknown_login", Password: password}),
		"no such user":               s.source(t, source.Login{URL: s.dsn, Username: "stranger", Password: password}),
		"no such database":           s.source(t, source.Login{URL: "postgres:///nowhere" + s.dsn[len("postgres:///postgres"):], Password: password}),
		"no server":                  s.source(t, source.Login{URL: "postgres://127.0.0.1:1/app", Password: password}),
	}, []string{scannerPassword}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, *races, func(t testing.TB) sourcetest.Store {
		if !strings.Contains(t.Name(), "restart") && !strings.Contains(t.Name(), "refusal") {
			return newRows(t, testpg.Database(t)) // which is faster, and no other test may harm it
		}
		server := testpg.Start(t)
		return &onServer{rows: newRows(t, server.DSN()), server: server}
	})
}
