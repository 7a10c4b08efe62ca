package fenced_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/fenced"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == lateArg {
		os.Exit(lateHolder(os.Args[2], os.Args[3]))
	}
	goleak.VerifyTestMain(m)
}

// orders is the row of the tests that carries its fence; plain is its control.
var orders = fenced.Row{
	Write: `UPDATE orders SET state = $3, fence = $2 WHERE id = $1 AND fence <= $2`,
	Seen:  `SELECT fence FROM orders WHERE id = $1`,
}

// tables are those of the tests: order 42 is open in each.
const tables = `
	CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL);
	ALTER TABLE orders ADD COLUMN fence bigint NOT NULL DEFAULT 0;
	INSERT INTO orders (id, state) VALUES (42, 'open');
	CREATE TABLE stock (id bigint PRIMARY KEY, state text NOT NULL);
	INSERT INTO stock (id, state) VALUES (42, 'open');
	CREATE TABLE plain (id bigint PRIMARY KEY, state text NOT NULL);
	INSERT INTO plain (id, state) VALUES (42, 'open')`

// database returns a fresh database with the tables.
func database(t *testing.T) *sql.DB {
	t.Helper()
	db := openDB(t, testpg.Database(t))
	makeTables(t, db)
	return db
}

func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(10) // Connecting costs more than what the tests do.
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func makeTables(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{tables, fenced.Schema(), fenced.Schema()} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// begin starts a transaction that is over by the end of the test.
func begin(t *testing.T, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Logf("roll back: %v", err)
		}
	})
	return tx
}

// guarded writes the state of a row that knows nothing of fences.
func guarded(ctx context.Context, db *sql.DB, fence int64, state string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // After a commit it does nothing.
	if err := fenced.Guard(ctx, tx, "stock:42", fence); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE stock SET state = $1 WHERE id = 42`, state); err != nil {
		return err
	}
	return tx.Commit()
}

// stateOf reads the state of row 42 in one of the tables.
func stateOf(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	var state string
	if err := db.QueryRowContext(t.Context(), `SELECT state FROM `+table+` WHERE id = 42`).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// wantStale checks that err is a refusal with these two fences.
func wantStale(t *testing.T, err error, fence, seen int64) {
	t.Helper()
	stale, ok := errors.AsType[*fenced.StaleError](err)
	if !ok || !errors.Is(err, fenced.ErrStale) || stale.Fence != fence || stale.Seen != seen {
		t.Errorf("got %v, want fence %d refused for %d", err, fence, seen)
	}
}

// notStale checks that err is an error that leaves open what happened.
func notStale(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, fenced.ErrStale) || errors.Is(err, fenced.ErrInvalid) {
		t.Errorf("got %v, want an error that is neither ErrStale nor ErrInvalid", err)
	}
}

func lease(ttl time.Duration) lock.Lease { return lock.Lease{TTL: ttl} }
