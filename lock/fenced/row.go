package fenced

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Row says how to write one row that carries a fence in a column of its own:
//
//	ALTER TABLE orders ADD COLUMN fence bigint NOT NULL DEFAULT 0
//
//	var orders = fenced.Row{
//		Write: `UPDATE orders SET state = $3, fence = $2 WHERE id = $1 AND fence <= $2`,
//		Seen:  `SELECT fence FROM orders WHERE id = $1`,
//	}
//
// It costs nothing on top of the update itself, and protects that row alone;
// for more than one statement there is [Guard].
type Row struct {
	// Write changes the row: $1 is its id, $2 the fence, further arguments
	// follow. It must set the fence, and must not touch a row with a greater one.
	Write string
	// Seen reads the fence of the row: $1 is its id.
	Seen string
}

// DB is what Row needs of a *sql.DB, *sql.Conn or *sql.Tx.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Update runs r.Write for the row with this id, and says why if nothing changed.
//
// Errors: [ErrInvalid]; [ErrStale] (a [*StaleError]); sql.ErrNoRows when there is
// no such row, or another condition of r.Write excludes it; else what the
// database said.
func (r Row) Update(ctx context.Context, db DB, id any, fence int64, args ...any) error {
	err := checkFence(fence)
	if r.Write == "" || r.Seen == "" {
		err = errors.Join(err, fmt.Errorf("%w: Write and Seen must be statements", ErrInvalid))
	}
	if db == nil {
		err = errors.Join(err, fmt.Errorf("%w: database is nil", ErrInvalid))
	}
	if err != nil {
		return fmt.Errorf("update row %v: %w", id, err)
	}
	result, err := db.ExecContext(ctx, r.Write, append([]any{id, fence}, args...)...)
	if err != nil {
		return fmt.Errorf("update row %v: %w", id, err)
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("update row %v: count rows: %w", id, err)
	}
	if changed > 0 {
		return nil
	}
	return r.explain(ctx, db, id, fence)
}

// explain says why no row changed. A fence only grows, so what the row has now
// tells what it had then.
func (r Row) explain(ctx context.Context, db DB, id any, fence int64) error {
	var seen sql.NullInt64
	if err := db.QueryRowContext(ctx, r.Seen, id).Scan(&seen); err != nil {
		return fmt.Errorf("update row %v: read its fence: %w", id, err)
	}
	switch {
	case !seen.Valid:
		return fmt.Errorf("update row %v: its fence is NULL (hint: declare the column NOT NULL DEFAULT 0)", id)
	case seen.Int64 > fence:
		return &StaleError{Key: fmt.Sprint(id), Fence: fence, Seen: seen.Int64}
	default:
		return fmt.Errorf("update row %v: its fence allows it, another condition does not: %w", id, sql.ErrNoRows)
	}
}
