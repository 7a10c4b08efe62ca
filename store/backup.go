package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// errNoFile is a backup of a store that is not a file.
var errNoFile = errors.New("this store is not an SQLite file; back up PostgreSQL with pg_dump, see docs/store.md")

// Backup writes a consistent copy of the SQLite file of dsn to a new file with mode 0600,
// and checks file and audit trail of the copy. An agent may be using the store. It returns
// the number of audit entries in the copy.
func Backup(ctx context.Context, dsn, to string) (entries int64, err error) {
	where, err := parseDSN(Config{DSN: dsn}.dsn())
	if err != nil {
		return 0, fmt.Errorf("store.dsn: %w", err)
	}
	if where.path == "" || where.path == memoryPath {
		return 0, errNoFile
	}
	if _, err := os.Stat(where.path); err != nil {
		return 0, fmt.Errorf("back up store: %w; is this the working directory of the agent?", err)
	}
	// VACUUM INTO accepts an empty file. It is created here for its mode, and so that
	// nothing is overwritten.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("back up store: %w; name a new file in a folder that can be written", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := f.Close(); err != nil {
		return 0, fmt.Errorf("back up store: %w", err)
	}
	from := newStore()
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := from.readSQLite(where.path, ""); err != nil {
		return 0, err
	}
	if _, err := from.read.db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return 0, from.explain("back up store", err)
	}
	return check(ctx, "check backup", to)
}

// check reads all pages of a copy and verifies its audit trail. It returns the number of
// entries.
func check(ctx context.Context, op, path string) (entries int64, err error) {
	s := newStore()
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.readSQLite(path, ""); err != nil {
		return 0, err
	}
	var result string
	if err := s.read.row(ctx, `PRAGMA integrity_check(1)`).Scan(&result); err != nil {
		return 0, s.explain(op, err)
	}
	if result != "ok" {
		return 0, &Error{Op: op, Path: path, Kind: ErrDamaged, Err: errors.New(result), Hint: "check the disk, and restore the last backup if the store itself is damaged (docs/store.md)"}
	}
	return s.Verify(ctx)
}

// Size is the size of a store.
type Size struct {
	Bytes   int64 // of the file without its log, or of the tables with their indexes
	Entries int64 // of the audit trail
}

// Size returns the size of the store; it is cheap.
func (s *Store) Size(ctx context.Context) (Size, error) {
	var out Size
	err := s.inRead(ctx, "measure store", func(ctx context.Context, q querier) error {
		head, base, err := ends(ctx, q)
		if err != nil {
			return err
		}
		out.Entries = head.Seq - base.Seq
		return q.row(ctx, s.on.bytes).Scan(&out.Bytes)
	})
	return out, err
}
