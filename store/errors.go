package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Error is a failure of the database itself. The sentence of Error ends with
// what to do; Unwrap gives the driver's error.
type Error struct {
	Op     string // what was attempted: "save history"
	Path   string // the file
	Reason string // why, in a person's words; "" when there is no better text than Err's
	Hint   string // what to do; "" when nothing can be said
	Err    error
}

// Error returns the sentence.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s in %q: ", e.Op, e.Path)
	if e.Reason != "" {
		text += e.Reason + " (" + e.Err.Error() + ")"
	} else {
		text += e.Err.Error()
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// explain turns an error of the driver into an [Error]; every other error comes
// back as it is.
func (s *Store) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	driver, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	e := &Error{Op: op, Path: s.path, Err: err}
	dir := filepath.Dir(s.path)
	// The low byte is the primary result code; above it stands the detail.
	switch driver.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		e.Reason = "no space left"
		e.Hint = fmt.Sprintf("free space on the disk of %q: nothing accepted before is lost, nothing is released until then", dir)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		e.Reason = "the file cannot be written"
		e.Hint = fmt.Sprintf("make %q and its folder writable for this user, or remount it read-write", s.path)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e.Reason = "another program keeps the file locked"
		e.Hint = "end the other program (an open sqlite3 shell, a backup) and try again"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		e.Reason = "the file is damaged or not a database"
		e.Hint = fmt.Sprintf("move %q away and restore the last backup; without one the agent starts with an empty store", s.path)
	case sqlite3.SQLITE_IOERR:
		e.Reason = "the disk gave an error"
		e.Hint = fmt.Sprintf("check the disk and the free space of %q", dir)
	case sqlite3.SQLITE_CANTOPEN:
		e.Reason = "the file cannot be opened"
		e.Hint = fmt.Sprintf("check that %q exists and that this user may write there", dir)
	}
	return e
}
