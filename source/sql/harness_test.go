package sqlsource_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// scan returns a scanner over the database of a DSN.
func scan(t testing.TB, dsn string, opts sqlsource.Options) *scanner.Scanner {
	t.Helper()
	return scanOver(t, openSource(t, dsn, opts))
}

func openSource(t testing.TB, dsn string, opts sqlsource.Options) *sqlsource.Source {
	t.Helper()
	if opts.Digest == (locksteward.DigestKey{}) {
		opts.Digest = digest
	}
	src, err := sqlsource.Open(source.Login{URL: dsn}, opts)
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

func scanOver(t testing.TB, src *sqlsource.Source) *scanner.Scanner {
	t.Helper()
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: []string{"advisory:*", "public.*", "graphile_worker.*", "lock:*"}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "t"}, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var digest = locksteward.NewDigestKey()

// sweep makes a sweep that must be complete.
func sweep(t testing.TB, s *scanner.Scanner) locksteward.Sweep {
	t.Helper()
	got, err := s.Sweep(t.Context())
	if err != nil || !got.Complete() {
		t.Fatalf("complete %v: %+v, %v", got.Complete(), got.Masters, err)
	}
	return got
}

// find returns the lock of a name; nil if there is none.
func find(locks []locksteward.Lock, name string) *locksteward.Lock {
	i := slices.IndexFunc(locks, func(l locksteward.Lock) bool { return l.Key == name })
	if i < 0 {
		return nil
	}
	return &locks[i]
}

// client is one session of an application, which ends with the test.
type client struct {
	t    testing.TB
	conn *pgx.Conn
	pid  uint32
}

func connect(t testing.TB, dsn, application string) *client {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["application_name"] = application
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // as through a pooler
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: conn, pid: conn.PgConn().PID()}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = c.conn.Close(ctx) // the server may have ended it
}

func (c *client) do(statement string) {
	c.t.Helper()
	if _, err := c.conn.Exec(c.t.Context(), statement); err != nil {
		c.t.Fatalf("%s: %v", statement, err)
	}
}

// later runs a statement that waits, and returns what it comes to.
func (c *client) later(statement string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.conn.Exec(context.WithoutCancel(c.t.Context()), statement)
		done <- err
	}()
	return done
}

// eventually waits until a query says true.
func eventually(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		var ok bool
		err := db.QueryRowContext(ctx, query).Scan(&ok)
		if err == nil && ok {
			return
		}
		if err := source.Sleep(ctx, 5*time.Millisecond); err != nil {
			t.Fatalf("%s: not within 30s, %v", query, err)
		}
	}
}

// freeze is a request for the release of the hold that has a lock.
func freeze(t testing.TB, r source.Releaser, id, name string) (locksteward.Request, source.Preview) {
	t.Helper()
	req := locksteward.Request{ID: id, Evidence: locksteward.Evidence{Key: name}}
	seen, err := r.Preview(t.Context(), req)
	if err != nil || !seen.Found {
		t.Fatalf("preview of %s: found %v, %v", name, seen.Found, err)
	}
	req.Evidence = seen.Now
	return req, seen
}

// rid is the id of a request: of different tests on one server, which has one name for each id.
func rid(t testing.TB, n int) string { return fmt.Sprintf("%s-%d", t.Name(), n) }

// frozen is a request for the release of a lock as a scanner saw it.
func frozen(id string, l *locksteward.Lock) locksteward.Request {
	return locksteward.Request{ID: id, Evidence: locksteward.Evidence{
		Target: l.Target, Key: l.Key, Library: l.Library, Type: l.Type, Identity: l.Identity, TokenDigest: l.TokenDigest,
		ExpireAt: l.ExpireAt, Count: l.Count, Holder: l.Holder, At: l.At,
	}}
}

func isRefused(err error) bool { return errors.Is(err, locksteward.ErrRefused) }

func contextFor(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// judge returns what a rule says of a lock that is still as it was a while later.
func judge(t testing.TB, l locksteward.Lock, later time.Duration, rule string) rules.Verdict {
	t.Helper()
	set, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := rules.New(nil, set, sqlsource.Facts)
	if err != nil {
		t.Fatal(err)
	}
	l.At, l.Class = l.At.Add(later), class.Default
	for _, v := range e.Explain(l) {
		if v.Rule == rule {
			return v
		}
	}
	t.Fatalf("no verdict of %s", rule)
	return rules.Verdict{}
}

// nameOf returns the database of a DSN.
func nameOf(dsn string) string { return dsn[len("postgres:///"):strings.Index(dsn, "?")] }
