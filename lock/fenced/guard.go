package fenced

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
)

var (
	//go:embed schema.sql
	schemaText string
	//go:embed guard.sql
	guardText string
)

// Schema returns the statement that makes the table of [Guard], for the
// migrations of the application; it does nothing where the table exists.
func Schema() string { return schemaText }

// GuardQuery returns the statement of [Guard], for those who do not use
// database/sql: $1 resource, $2 fence, and one row with the greatest fence seen.
func GuardQuery() string { return guardText }

// Guard lets the transaction go on only if no later holder was here: it notes
// the fence for the resource, and locks the resource's row until the transaction
// ends, so that a later holder waits for it and an earlier one is refused. Call
// it before the statements it is to protect, in the same transaction, and roll
// back when it returns an error: the database does not do that by itself. The
// fence stands once the transaction is committed.
//
// The resource is a name of the caller's choice, the lock's for example. Guard
// needs the table of [Schema], and PostgreSQL. Guard several resources in one
// order everywhere, or transactions deadlock.
//
// Errors: [ErrInvalid]; [ErrStale] (a [*StaleError]); else what the database
// said, under REPEATABLE READ and above also the serialization failure 40001,
// after which the whole transaction is to be tried again.
func Guard(ctx context.Context, tx *sql.Tx, resource string, fence int64) error {
	err := errors.Join(
		checkName("resource", resource, MaxResource),
		checkText("resource", resource),
		checkFence(fence),
	)
	if tx == nil {
		err = errors.Join(err, fmt.Errorf("%w: transaction is nil", ErrInvalid))
	}
	if err != nil {
		return fmt.Errorf("guard resource: %w", err)
	}
	var seen int64
	if err := tx.QueryRowContext(ctx, guardText, resource, fence).Scan(&seen); err != nil {
		return fmt.Errorf("guard resource %q: %w", resource, err)
	}
	if seen != fence {
		return &StaleError{Key: resource, Fence: fence, Seen: seen}
	}
	return nil
}
