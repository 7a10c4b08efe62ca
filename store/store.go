package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// busyTimeout is how long a write waits for another program's lock on the
// file, a backup for instance, before it is an error.
const busyTimeout = 5 * time.Second

// readers is how many reads run beside the one writer.
const readers = 4

// Store is the agent's durable memory. Make one with [Open].
type Store struct {
	path  string // for error messages
	write *sql.DB
	read  *sql.DB
	lock  io.Closer // keeps a second agent out; nil in memory
}

// Open opens the store at dsn ("sqlite:PATH"), creates it if it is not there and
// brings its schema up to date. An empty dsn is [DefaultDSN]. The caller closes
// the store.
func Open(ctx context.Context, dsn string) (*Store, error) {
	return open(ctx, dsn, busyTimeout)
}

func open(ctx context.Context, dsn string, busy time.Duration) (*Store, error) {
	if dsn == "" {
		dsn = DefaultDSN
	}
	path, err := parseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("store.dsn: %w", err)
	}
	s := &Store{path: path}
	if path != memoryPath {
		if s.lock, err = prepareFile(path); err != nil {
			return nil, err
		}
	}
	if err := s.connect(busy); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(s.explain("open store", err), s.Close())
	}
	return s, nil
}

// Close ends all transactions and closes the file. It may be called once.
func (s *Store) Close() error {
	var errs []error
	if s.read != nil && s.read != s.write {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %q: %w", s.path, err)
	}
	return nil
}

// connect opens the pools: one connection that writes, a few that read.
func (s *Store) connect(busy time.Duration) error {
	var err error
	if s.write, err = sql.Open("sqlite", driverDSN(s.path, busy, "_txlock=immediate")); err != nil {
		return s.explain("open store", err)
	}
	s.write.SetMaxOpenConns(1)
	if s.path == memoryPath {
		// Each connection to :memory: would be a database of its own.
		s.read = s.write
		return nil
	}
	if s.read, err = sql.Open("sqlite", driverDSN(s.path, busy, "_pragma=query_only(1)")); err != nil {
		return s.explain("open store", err)
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	return nil
}

func driverDSN(path string, busy time.Duration, extra string) string {
	name := (&url.URL{Path: path}).EscapedPath()
	return fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&%s",
		name, busy.Milliseconds(), extra)
}

// prepareFile makes the folder and the file with narrow modes, and takes the
// lock that keeps a second agent out. SQLite gives its -wal and -shm files the
// mode of the file itself.
func prepareFile(path string) (io.Closer, error) {
	if dir := filepath.Dir(path); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create folder of store: %w; make it writable for this user or set store.dsn to another path", err)
		}
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(
			fmt.Errorf("open store: %w; make the file writable for this user or set store.dsn to another path", err),
			lock.Close())
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), lock.Close())
	}
	return lock, nil
}

// inWrite runs fn in a write transaction. Errors of fn come back as they are,
// so that a caller's callback keeps its own; the database's are explained.
func (s *Store) inWrite(ctx context.Context, op string, fn func(tx *sql.Tx) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.explain(op, err)
	}
	done := false
	defer func() {
		if !done {
			// A panic of fn passes through, and an HTTP server survives it: the one
			// connection that writes must not be kept by it for ever.
			_ = tx.Rollback()
		}
	}()
	err = fn(tx)
	done = true
	if err != nil {
		// A rollback after a failed statement can itself only fail when the
		// transaction is gone already.
		if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			err = errors.Join(err, rerr)
		}
		return s.explain(op, err)
	}
	return s.explain(op, tx.Commit())
}
