package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/locksteward/locksteward"
)

// BeginPostgres is what a transaction beside which there is no other writer begins with.
var BeginPostgres = onPostgres.begin

// OpenImpatient is Open with shorter timeouts for another program's lock on a file and for
// a server.
func OpenImpatient(ctx context.Context, dsn string, timeout time.Duration) (*Store, error) {
	return open(ctx, Config{DSN: dsn}, timeouts{busy: timeout, call: timeout})
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

// CreateSchema runs a script as the schema of an empty file of SQLite.
func CreateSchema(ctx context.Context, db *sql.DB, script string) error {
	return createSchema(ctx, &pool{db, onSQLite}, script)
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

// CopyForRepair does the first half of [Repair], as one that was killed: the copy is
// complete, and nothing was replaced.
func CopyForRepair(ctx context.Context, path string) error {
	r, err := newRepair(path)
	if err != nil {
		return err
	}
	return r.copy(ctx)
}
