package store

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"time"

	"github.com/locksteward/locksteward"
)

// BeginPostgres is what a transaction beside which there is no other writer begins with.
var BeginPostgres = onPostgres.begin

// OpenImpatient is Open that waits less long: for another program's lock on a
// file, or for a server.
func OpenImpatient(ctx context.Context, dsn string, wait time.Duration) (*Store, error) {
	return open(ctx, Config{DSN: dsn}, limits{busy: wait, patience: wait})
}

// Exec runs a statement on a writing connection, to play an intruder or a full
// disk.
func (s *Store) Exec(ctx context.Context, statement string, args ...any) error {
	if len(args) == 0 {
		args = s.on.script
	}
	_, err := s.write.db.ExecContext(ctx, s.on.text(statement), args...)
	return err
}

// SQL is the pool that writes.
func (s *Store) SQL() *sql.DB { return s.write.db }

// OnPostgres tells the databases apart.
func (s *Store) OnPostgres() bool { return s.on == onPostgres }

// Migrate applies other migrations than the embedded ones to a file of SQLite.
func Migrate(ctx context.Context, db *sql.DB, files fs.FS) error {
	steps, err := loadMigrations(files, "migrations")
	if err != nil {
		return err
	}
	return applyMigrations(ctx, &pool{db, onSQLite}, steps)
}

// MigrateTo applies the embedded migrations up to a version.
func MigrateTo(ctx context.Context, db *sql.DB, version int) error {
	steps, err := loadMigrations(migrationFiles, "migrations/sqlite")
	if err != nil {
		return err
	}
	return applyMigrations(ctx, &pool{db, onSQLite}, steps[:version])
}

// Tampered runs statements in a transaction, verifies the trail as it then is and
// takes all back.
func (s *Store) Tampered(ctx context.Context, anchors []Checkpoint, tamper func(exec func(query string, args ...any) error) error) (int64, error, error) {
	began, err := s.write.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, nil, err
	}
	defer began.Rollback() //nolint:errcheck // its only purpose
	t := &tx{tx: began, on: s.on}
	err = tamper(func(query string, args ...any) error {
		_, err := t.exec(ctx, query, args...)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	v, broken := s.verify(ctx, t, VerifyOptions{Anchors: anchors})
	return v.Entries, broken, nil
}

// Stored reads the entries in the order of the trail.
func (s *Store) Stored(ctx context.Context) ([]locksteward.Entry, error) {
	var out []locksteward.Entry
	err := s.EachEntry(ctx, 0, func(e locksteward.Entry) error { out = append(out, e); return nil })
	return out, err
}

// Renewal goes through what follows a commit that the disk did not confirm, step by step.
type Renewal struct{ r *renewal }

// Renewal begins one.
func (s *Store) Renewal() Renewal { return Renewal{&renewal{s: s}} }

// Try is what is done every 250 ms until it does not fail.
func (r Renewal) Try(ctx context.Context) error { return r.r.try(ctx) }

// Copy, Confirm, GiveName and Settle are its parts.
func (r Renewal) Copy(ctx context.Context) (*os.File, error) { return r.r.s.copyFile(ctx) }

// Confirm is also a part of Copy.
func (r Renewal) Confirm(f *os.File) error { return r.r.s.confirm(f) }

// Alone ends all connections.
func (r Renewal) Alone(ctx context.Context) error {
	return r.r.s.alone(ctx, func() error { return nil })
}

// GiveName gives the copy the name.
func (r Renewal) GiveName(ctx context.Context, f *os.File) error {
	return r.r.s.alone(ctx, func() error { return r.r.s.giveName(f) })
}

// Settle returns whether the disk has confirmed the name.
func (r Renewal) Settle() (confirmed bool, err error) {
	err = r.r.s.sync()
	return !r.r.s.held.unnamed, err
}
