// Package live_test takes locks with real lock libraries of Go, reads them with the real
// scanner and frees them with the real releaser. It is a module of its own, so that nobody
// who uses Locksteward downloads the libraries.
package live_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	gooselock "github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

var digest = locksteward.NewDigestKey()

// only returns the one lock of a library in a database, which there must be within 30 s.
func only(t *testing.T, dsn, library string) locksteward.Lock {
	t.Helper()
	src, err := sqlsource.Open(source.Login{URL: dsn}, sqlsource.Options{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "t"}, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		sweep, err := s.Sweep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range sweep.Locks {
			if l.Library == library && l.Type != locksteward.TypeDirtyMigration {
				return l
			}
		}
		if source.Sleep(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("no lock of %s in %+v", library, sweep.Locks)
		}
	}
}

// free releases a lock.
func free(t *testing.T, dsn string, l locksteward.Lock) {
	t.Helper()
	r, err := sqlsource.OpenReleaser(source.Login{URL: dsn}, sqlsource.Options{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Release(t.Context(), locksteward.Request{ID: "r", Evidence: locksteward.Evidence{
		Key: l.Key, Library: l.Library, Type: l.Type, Identity: l.Identity, TokenDigest: l.TokenDigest, ExpireAt: l.ExpireAt, Count: l.Count, Holder: l.Holder,
	}})
	if err != nil || out.State != locksteward.RequestReleased {
		t.Fatalf("release of %s: %+v, %v", l.Key, out, err)
	}
}

func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestGolangMigrate(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	open := func() database.Driver {
		d, err := migratepgx.WithInstance(openDB(t, dsn), &migratepgx.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	dead, next := open(), open()
	if err := dead.Lock(); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- next.Lock() }()
	l := only(t, dsn, "golang-migrate")
	if l.Session == nil || !strings.HasPrefix(l.Key, "advisory:") {
		t.Errorf("seen %+v", l)
	}
	free(t, dsn, l)
	if err := <-waits; err != nil {
		t.Errorf("the next migration: %v", err)
	}
	if err := next.SetVersion(3, true); err != nil { // as Run does before it begins
		t.Fatal(err)
	}
	var dirty bool
	if err := openDB(t, dsn).QueryRowContext(t.Context(), "SELECT dirty FROM schema_migrations").Scan(&dirty); err != nil || !dirty {
		t.Errorf("dirty %v, %v", dirty, err)
	}
	if err := next.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestGoose(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	locker, err := gooselock.NewPostgresSessionLocker()
	if err != nil {
		t.Fatal(err)
	}
	db := openDB(t, dsn)
	dead, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dead.Close() }()
	if err := locker.SessionLock(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	free(t, dsn, only(t, dsn, "goose"))
	next, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close() }()
	if err := locker.SessionLock(t.Context(), next); err != nil {
		t.Errorf("the next migration: %v", err)
	}
}

func TestRiver(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[nothing]) error { return nil }))
	client, err := river.NewClient(driver, &river.Config{ID: "web-1", Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := only(t, dsn, "river")
	if l.Holder.Session != "web-1" || l.Lifetime != locksteward.LifetimeLease || l.TTL <= 0 || l.TTL > time.Minute || l.Acquired.IsZero() {
		t.Errorf("seen %+v", l)
	}
	if err := client.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

type nothing struct{}

func (nothing) Kind() string { return "nothing" }
