package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite" // and the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var onSQLite = &backend{
	name:      "sqlite",
	number:    "INTEGER",
	lower:     "LOWER(%s)",
	within:    "instr(lock_key, ?) > 0",
	atOnce:    20,
	now:       "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
	hasSchema: `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`,
	bytes:     `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`,
	explain:   explainSQLite,
}

// busyTimeout is how long a write waits for another program's lock on the
// file, a backup for instance, before it is an error.
const busyTimeout = 5 * time.Second

// maxReaders is how many reads run beside the one writer.
const maxReaders = 4

// openSQLite opens the pools: one connection that writes, a few that read.
func (s *Store) openSQLite(path string, busy time.Duration) error {
	s.name, s.file, s.on = path, path, onSQLite
	if path != memoryPath {
		if err := s.prepareFile(); err != nil {
			return err
		}
	}
	return s.openPools(busy)
}

// openPools opens the pools on a file that exists.
func (s *Store) openPools(busy time.Duration) error {
	path := s.file
	// The writer keeps the undo data of large statements in memory instead of a temporary
	// file, and has a larger page cache than the readers need.
	write, err := sql.Open("sqlite", driverDSN(path, busy, "_txlock=immediate&_pragma=temp_store(MEMORY)&_pragma=cache_size(-4096)"))
	if err != nil {
		return s.explain("open store", err)
	}
	write.SetMaxOpenConns(1)
	s.write = &pool{write, onSQLite}
	if path == memoryPath {
		// Each connection to :memory: would be a database of its own.
		s.read = s.write
		return nil
	}
	read, err := sql.Open("sqlite", driverDSN(path, busy, "_pragma=query_only(1)&_pragma=cache_size(-1024)"))
	if err != nil {
		return s.explain("open store", err)
	}
	read.SetMaxOpenConns(maxReaders)
	read.SetMaxIdleConns(maxReaders)
	s.read = &pool{read, onSQLite}
	return nil
}

// fileLock is the locked file beside the database that keeps a second agent out. It is not
// part of a backup, so it shows when an older file was restored.
type fileLock struct {
	*os.File
	// trail is the length of the audit trail that the last agent recorded, 0 if none.
	trail int64
}

// compareWithLockFile finds out by how many entries the file is older than it was.
func (s *Store) compareWithLockFile(ctx context.Context) error {
	if s.lock == nil {
		return nil
	}
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	s.memory.missing.Store(max(0, s.lock.trail-head.Seq))
	return nil
}

// recordTrailAtEnd records the length of the trail in the lock file.
func (s *Store) recordTrailAtEnd() {
	if s.lock == nil || s.read == nil { // it was never open
		return
	}
	if head, err := s.Head(context.Background()); err == nil {
		s.lock.record(head.Seq)
	}
}

// readSQLite opens a file with one connection for reading, also while an agent uses it.
// params are further parameters of the driver.
func (s *Store) readSQLite(path, params string) error {
	s.name, s.file, s.on = path, path, onSQLite
	db, err := sql.Open("sqlite", driverDSN(path, busyTimeout, "mode=rw"+params))
	if err != nil {
		return s.explain("open store", err)
	}
	db.SetMaxOpenConns(1)
	s.read = &pool{db, onSQLite}
	return nil
}

func driverDSN(path string, busy time.Duration, extra string) string {
	name := (&url.URL{Path: path}).EscapedPath()
	return fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&%s",
		name, busy.Milliseconds(), extra)
}

// prepareFile creates folder and file with narrow modes, takes the lock that keeps a
// second agent out, and refuses a file that needs repair.
func (s *Store) prepareFile() error {
	if dir := filepath.Dir(s.file); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fileError(fmt.Errorf("create folder of store: %w; make it writable for this user or set store.dsn to another path", err))
		}
	}
	lock, err := lockFile(s.file + ".lock")
	if err != nil {
		return fileError(err)
	}
	s.lock = lock
	if err := checkMarker(s.file); err != nil {
		return err
	}
	// SQLite gives its -wal and -shm files the mode of the file itself.
	f, err := os.OpenFile(s.file, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fileError(fmt.Errorf("open store: %w; make the file writable for this user or set store.dsn to another path", err))
	}
	return nil
}

// fileError gives an error of the file system its kind. Its text is unchanged.
func fileError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &kindError{ErrFull, err}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &kindError{ErrReadOnly, err}
	default:
		return err
	}
}

// kindError is an error with the text of err that is also of a kind.
type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// damagedHint says what to do about a damaged file.
func (s *Store) damagedHint() string {
	return fmt.Sprintf("stop the agent, move %q away with its -wal and -shm files and restore the last backup (docs/store.md), then run "+
		"'locksteward audit verify'; without a backup the agent creates an empty store", s.file)
}

func explainSQLite(s *Store, err error) *Error {
	driver, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return nil
	}
	e := &Error{Err: err}
	dir := filepath.Dir(s.file)
	// The low byte is the primary result code, the others are the detail.
	switch driver.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		e.Kind, e.Reason = ErrFull, "no space left"
		e.Hint = fmt.Sprintf("free space on the disk of %q: nothing accepted before is lost, nothing is released until then", dir)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		e.Kind, e.Reason = ErrReadOnly, "the file cannot be written"
		e.Hint = fmt.Sprintf("make %q and its folder writable for this user, or remount it read-write", s.file)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e.Kind, e.Reason = ErrBusy, "another program keeps the file locked"
		e.Hint = "end the other program (an open sqlite3 shell, a backup) and try again"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		e.Kind, e.Reason = ErrDamaged, "the file is damaged or not a database"
		e.Hint = s.damagedHint()
	case sqlite3.SQLITE_IOERR:
		if code := driver.Code(); code == sqlite3.SQLITE_IOERR_FSYNC || code == sqlite3.SQLITE_IOERR_DIR_FSYNC {
			e.Kind, e.Reason, e.Unsure = ErrNeedsRepair, "the disk did not confirm the write", true
			e.Hint = repairHint(s.file)
			break
		}
		e.Kind, e.Reason = ErrAway, "the disk returned an error"
		e.Hint = fmt.Sprintf("check the disk and the free space of %q", dir)
	case sqlite3.SQLITE_CANTOPEN:
		e.Kind, e.Reason = ErrAway, "the file cannot be opened"
		e.Hint = fmt.Sprintf("check that %q exists and that this user may write there", dir)
	}
	return e
}
