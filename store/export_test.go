package store

import (
	"context"
	"database/sql"
	"io/fs"
	"time"
)

// OpenWithBusyTimeout is Open that waits less long for another program's lock.
func OpenWithBusyTimeout(ctx context.Context, dsn string, busy time.Duration) (*Store, error) {
	return open(ctx, dsn, busy)
}

// Exec runs a statement on the writing connection, to play an intruder or a
// full disk.
func (s *Store) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := s.write.ExecContext(ctx, statement, args...)
	return err
}

// Migrate applies other migrations than the embedded ones.
func Migrate(ctx context.Context, db *sql.DB, files fs.FS) error {
	steps, err := loadMigrations(files)
	if err != nil {
		return err
	}
	return applyMigrations(ctx, db, steps)
}
