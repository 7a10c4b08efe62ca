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
	name:    "sqlite",
	number:  "INTEGER",
	lower:   "LOWER(%s)",
	within:  "instr(lock_key, ?) > 0",
	atOnce:  20,
	now:     "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
	known:   `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`,
	bytes:   `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`,
	explain: explainSQLite,
}

// busyTimeout is how long a write waits for another program's lock on the
// file, a backup for instance, before it is an error.
const busyTimeout = 5 * time.Second

// readers is how many reads run beside the one writer.
const readers = 4

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

// openPools opens the pools on a file that is there.
func (s *Store) openPools(busy time.Duration) error {
	path := s.file
	// A statement of many rows keeps what it changed until its end, in a file unless
	// told otherwise; and a storm changes more pages than the cache holds by default,
	// which those that read need less of.
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
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	s.read = &pool{read, onSQLite}
	return nil
}

// fileLock is the file beside the database that keeps a second agent out. It is not
// part of a backup, and so it tells when one was restored.
type fileLock struct {
	*os.File
	// mark is how many entries the trail had when the last agent wrote to it, as far as
	// that was noted.
	mark int64
}

// compareWithMark finds out whether the file is older than it was.
func (s *Store) compareWithMark(ctx context.Context) error {
	if s.lock == nil {
		return nil
	}
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	s.memory.behind.Store(max(0, s.lock.mark-head.Seq))
	return nil
}

// leaveMark notes how long the trail is.
func (s *Store) leaveMark() {
	if s.lock == nil || s.read == nil { // it was never open
		return
	}
	if head, err := s.Head(context.Background()); err == nil {
		s.lock.note(head.Seq)
	}
}

// readSQLite opens a file to look at it, beside an agent that uses it. besides are
// more parameters of the driver.
func (s *Store) readSQLite(path, besides string) error {
	s.name, s.file, s.on = path, path, onSQLite
	db, err := sql.Open("sqlite", driverDSN(path, busyTimeout, "mode=rw"+besides))
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

// prepareFile makes the folder and the file with narrow modes, and takes the
// lock that keeps a second agent out.
func (s *Store) prepareFile() error {
	if dir := filepath.Dir(s.file); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return s.unopened(fmt.Errorf("create folder of store: %w; make it writable for this user or set store.dsn to another path", err))
		}
	}
	lock, err := lockFile(s.file + ".lock")
	if err != nil {
		return s.unopened(err)
	}
	s.held = &heldFile{}
	s.closers, s.lock = append(s.closers, lock, s.held), lock
	if err := s.hold(); err != nil {
		return err
	}
	// Of an agent that was killed. What cannot be removed is in the way of the next copy
	// alone, which says so.
	_ = removeCopy(s.held.path)
	return nil
}

// hold makes the file, if it is not there, and keeps it open. SQLite gives its -wal and
// -shm files the mode of the file itself.
func (s *Store) hold() (err error) {
	s.held.f, err = os.OpenFile(s.file, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		s.held.path, err = filepath.EvalSymlinks(s.file)
	}
	if err != nil {
		return s.unopened(fmt.Errorf("open store: %w; make the file writable for this user or set store.dsn to another path", err))
	}
	return nil
}

// heldFile is the file that a store holds open. All views of a store have the same, and
// it may become another one: see renewal.
type heldFile struct {
	f *os.File
	// path is where it is, and where SQLite has its log: no symbolic link.
	path string
	// unnamed says that the disk has not confirmed yet that it has this name.
	unnamed bool
}

// Close closes the file, if it was ever open.
func (h *heldFile) Close() error {
	if h.f == nil {
		return nil
	}
	return h.f.Close()
}

// unopened gives an error of the file system its kind; the text says what to do
// already.
func (s *Store) unopened(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &kindError{ErrFull, err}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &kindError{ErrReadOnly, err}
	default:
		return err
	}
}

// kindError is an error that says all in its own text and has a kind besides.
type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return e.err.Error() }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// damagedHint says what to do about a damaged file.
func (s *Store) damagedHint() string {
	return fmt.Sprintf("move %q away and restore the last backup (docs/store.md), then run 'locksteward audit verify'; "+
		"without one the agent starts with an empty store, by itself with store.on_damage: set_aside", s.file)
}

func explainSQLite(s *Store, err error) *Error {
	driver, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return nil
	}
	e := &Error{Err: err}
	dir := filepath.Dir(s.file)
	// The low byte is the primary result code; above it stands the detail.
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
		e.Kind, e.Reason = ErrAway, "the disk gave an error"
		// The commit is in the log, and nobody knows what the disk kept of it.
		e.Unsure = driver.Code() == sqlite3.SQLITE_IOERR_FSYNC || driver.Code() == sqlite3.SQLITE_IOERR_DIR_FSYNC
		e.Hint = fmt.Sprintf("check the disk and the free space of %q", dir)
	case sqlite3.SQLITE_CANTOPEN:
		e.Kind, e.Reason = ErrAway, "the file cannot be opened"
		e.Hint = fmt.Sprintf("check that %q exists and that this user may write there", dir)
	}
	return e
}
