package fenced_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/fenced"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	db := database(t)
	ctx := t.Context()
	for _, step := range []struct {
		fence int64
		seen  int64 // of the refusal; 0: done
	}{{7, 0}, {7, 0}, {6, 7}, {10, 0}, {9, 10}, {1<<53 + 1, 0}, {1 << 53, 1<<53 + 1}, {math.MaxInt64, 0}, {1, math.MaxInt64}} {
		before := stateOf(t, db, "stock")
		state := rand.Text()
		err := guarded(ctx, db, step.fence, state)
		if step.seen != 0 {
			wantStale(t, err, step.fence, step.seen)
			state = before
		} else if err != nil {
			t.Errorf("write with %d: %v", step.fence, err)
		}
		if got := stateOf(t, db, "stock"); got != state {
			t.Errorf("after the write with %d the row has %q, want %q", step.fence, got, state)
		}
	}
	// Resources have nothing to do with each other.
	tx := begin(t, db, sql.LevelDefault)
	for _, resource := range []string{"other", "ключ 🔑", strings.Repeat("a", fenced.MaxResource), noise(fenced.MaxResource)} {
		if err := fenced.Guard(ctx, tx, resource, 1); err != nil {
			t.Errorf("resource of %d bytes: %v", len(resource), err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// noise is a text that no index can compress.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// A transaction that is rolled back has not been there.
func TestGuardRolledBack(t *testing.T) {
	t.Parallel()
	db := database(t)
	ctx := t.Context()
	if err := guarded(ctx, db, 5, "five"); err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db, sql.LevelDefault)
	if err := fenced.Guard(ctx, tx, "stock:42", 9); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := guarded(ctx, db, 6, "six"); err != nil {
		t.Errorf("after a rollback of 9: %v", err)
	}
	wantStale(t, guarded(ctx, db, 5, "late"), 5, 6)
	if got := stateOf(t, db, "stock"); got != "six" {
		t.Errorf("the row has %q", got)
	}
}

// Two holders in transactions at once: the second to come waits for the first.
func TestGuardOrdersTransactions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, then int64
		commit      bool
		refused     bool
	}{
		"newer waits for older":                    {1, 2, true, false},
		"older waits for newer and is refused":     {2, 1, true, true},
		"newer is rolled back, older is let go on": {2, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			tx := begin(t, db, sql.LevelDefault)
			if err := fenced.Guard(t.Context(), tx, "stock:42", tc.first); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), `UPDATE stock SET state = 'first' WHERE id = 42`); err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- guarded(context.Background(), db, tc.then, "then") }()
			testredis.Eventually(t, 20*time.Second, func() bool { return waiting(t, db) }, "the other transaction waits")
			end := tx.Rollback
			if tc.commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			err, want := <-result, "then"
			if tc.refused {
				wantStale(t, err, tc.then, tc.first)
				want = "first"
			} else if err != nil {
				t.Error(err)
			}
			if got := stateOf(t, db, "stock"); got != want {
				t.Errorf("the row has %q, want %q", got, want)
			}
		})
	}
}

// waiting reports whether a transaction of this database waits for another.
func waiting(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var n int
	err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// Where a transaction reads from its beginning, the database refuses it, and it
// is no verdict on the fence.
func TestSerializationFailureIsNotStale(t *testing.T) {
	t.Parallel()
	db := database(t)
	ctx := t.Context()
	for name, write := range map[string]func(*sql.Tx) error{
		"guard": func(tx *sql.Tx) error { return fenced.Guard(ctx, tx, "stock:42", 1) },
		"row":   func(tx *sql.Tx) error { return orders.Update(ctx, tx, 42, 1, "late") },
	} {
		tx := begin(t, db, sql.LevelRepeatableRead)
		if _, err := tx.ExecContext(ctx, `SELECT count(*) FROM fences`); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(guarded(ctx, db, 2, "new"), orders.Update(ctx, db, 42, 2, "new")); err != nil {
			t.Fatal(err)
		}
		err := write(tx)
		notStale(t, err)
		if reply, ok := errors.AsType[*pgconn.PgError](err); !ok || reply.Code != "40001" {
			t.Errorf("%s: %v, want 40001", name, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		// Tried again, it learns the truth.
		tx = begin(t, db, sql.LevelRepeatableRead)
		wantStale(t, write(tx), 1, 2)
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if _, err := db.ExecContext(ctx, `DELETE FROM fences; UPDATE orders SET fence = 0`); err != nil {
			t.Fatal(err)
		}
	}
}

// Bad input does not reach the database, which would have given up the
// transaction.
func TestGuardInvalid(t *testing.T) {
	t.Parallel()
	db := database(t)
	tx := begin(t, db, sql.LevelDefault)
	for want, err := range map[string]error{
		"fence is 0":              fenced.Guard(t.Context(), tx, "r", 0),
		"fence is -1":             fenced.Guard(t.Context(), tx, "r", -1),
		"resource is empty":       fenced.Guard(t.Context(), tx, "", 1),
		"resource has 2049 bytes": fenced.Guard(t.Context(), tx, strings.Repeat("r", fenced.MaxResource+1), 1),
		`\x00b" is not UTF-8`:     fenced.Guard(t.Context(), tx, "a\x00b", 1),
		`\xff" is not UTF-8`:      fenced.Guard(t.Context(), tx, "a\xff", 1),
		"transaction is nil":      fenced.Guard(t.Context(), nil, "r", 1),
	} {
		if !errors.Is(err, fenced.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrInvalid with %q", err, want)
		}
	}
	var n int
	if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM fences`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d fences, %v; want none in a transaction that goes on", n, err)
	}
}

// No table, no connection, no server: the resource has not refused.
func TestGuardWithoutServer(t *testing.T) {
	t.Parallel()
	srv := testpg.Start(t)
	db := openDB(t, srv.DSN())
	ctx := t.Context()
	notStale(t, fenced.Guard(ctx, begin(t, db, sql.LevelDefault), "stock:42", 1))
	makeTables(t, db)
	if err := errors.Join(guarded(ctx, db, 2, "two"), orders.Update(ctx, db, 42, 2, "two")); err != nil {
		t.Fatal(err)
	}

	tx := begin(t, db, sql.LevelDefault)
	srv.Pause()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	notStale(t, fenced.Guard(short, tx, "stock:42", 1))
	srv.Resume()
	srv.Kill()
	notStale(t, guarded(ctx, db, 1, "late"))
	notStale(t, orders.Update(ctx, db, 42, 1, "late"))
	srv.Restart()

	// The fences are where they were.
	testredis.Eventually(t, 20*time.Second, func() bool { return db.PingContext(ctx) == nil }, "the database is back")
	wantStale(t, guarded(ctx, db, 1, "late"), 1, 2)
	wantStale(t, orders.Update(ctx, db, 42, 1, "late"), 1, 2)
}

func TestRow(t *testing.T) {
	t.Parallel()
	db := database(t)
	ctx := t.Context()
	for _, step := range []struct {
		fence int64
		state string
		seen  int64
	}{{7, "a", 0}, {7, "b", 0}, {6, "late", 7}, {10, "c", 0}, {9, "late", 10}, {math.MaxInt64, "d", 0}, {1, "late", math.MaxInt64}} {
		err := orders.Update(ctx, db, 42, step.fence, step.state)
		if step.seen != 0 {
			wantStale(t, err, step.fence, step.seen)
			continue
		}
		if got := stateOf(t, db, "orders"); err != nil || got != step.state {
			t.Errorf("write with %d: %v, the row has %q", step.fence, err, got)
		}
	}
	if got := stateOf(t, db, "orders"); got != "d" {
		t.Errorf("the row has %q, want what the greatest fence wrote", got)
	}

	// Nothing to write to is not a refusal.
	if err := orders.Update(ctx, db, 43, 1, "x"); !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fenced.ErrStale) {
		t.Errorf("missing row: %v, want sql.ErrNoRows", err)
	}
	open := fenced.Row{Write: orders.Write + ` AND state = 'open'`, Seen: orders.Seen}
	if err := open.Update(ctx, db, 42, math.MaxInt64, "x"); !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fenced.ErrStale) {
		t.Errorf("row that another condition excludes: %v, want sql.ErrNoRows", err)
	}
	wantStale(t, open.Update(ctx, db, 42, 1, "x"), 1, math.MaxInt64)
	notStale(t, fenced.Row{Write: "UPDATE", Seen: orders.Seen}.Update(ctx, db, 42, 1))

	if _, err := db.ExecContext(ctx, `ALTER TABLE orders ALTER fence DROP NOT NULL; UPDATE orders SET fence = NULL`); err != nil {
		t.Fatal(err)
	}
	err := orders.Update(ctx, db, 42, 1, "x")
	notStale(t, err)
	if err == nil || !strings.Contains(err.Error(), "NOT NULL DEFAULT 0") {
		t.Errorf("a fence of NULL: %v, want what to do", err)
	}
}

func TestRowInvalid(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", "postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for want, err := range map[string]error{
		"fence is 0":           orders.Update(t.Context(), db, 42, 0, "x"),
		"fence is -3":          orders.Update(t.Context(), db, 42, -3, "x"),
		"must be statements":   fenced.Row{Seen: orders.Seen}.Update(t.Context(), db, 42, 1),
		"Write and Seen":       fenced.Row{Write: orders.Write}.Update(t.Context(), db, 42, 1, "x"),
		"database is nil":      orders.Update(t.Context(), nil, 42, 1, "x"),
		"update row 42: inval": orders.Update(t.Context(), nil, 42, 1, "x"),
	} {
		if !errors.Is(err, fenced.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrInvalid with %q", err, want)
		}
	}
	notStale(t, orders.Update(t.Context(), db, 42, 1, "x"))
}

// A row in a transaction of the caller's: its end decides.
func TestRowRolledBack(t *testing.T) {
	t.Parallel()
	db := database(t)
	tx := begin(t, db, sql.LevelDefault)
	if err := orders.Update(t.Context(), tx, 42, 9, "nine"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := orders.Update(t.Context(), db, 42, 1, "one"); err != nil {
		t.Errorf("after a rollback of 9: %v", err)
	}
	if got := stateOf(t, db, "orders"); got != "one" {
		t.Errorf("the row has %q", got)
	}
}
