package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The kinds of errors of a database, for errors.Is. The text of an error says what to do.
var (
	// ErrFull is a disk without space.
	ErrFull = errors.New("store is full")
	// ErrReadOnly is a file or server that accepts no writes, or none from this user.
	ErrReadOnly = errors.New("store is read-only")
	// ErrBusy is a lock that another program holds for too long.
	ErrBusy = errors.New("store is locked")
	// ErrAway is a server or file that cannot be reached. The store recovers without
	// intervention.
	ErrAway = errors.New("store is away")
	// ErrDamaged is a file or database with corrupt content.
	ErrDamaged = errors.New("store is damaged")
	// ErrNeedsRepair is a file after a failed fsync: nothing is written to it, and no agent
	// opens it, before [Repair] or a restored backup replaced it.
	ErrNeedsRepair = errors.New("store needs repair")
	// ErrUnsure comes with ErrAway if the connection broke during a commit, and with
	// ErrNeedsRepair if the disk did not confirm it: the write may or may not be there. All
	// other errors mean that nothing was written.
	ErrUnsure = errors.New("it is not known whether this was written")
	// ErrLeaseLost is a write under a lease that expired or that another process took
	// over. Nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseHeld is a lease that another process holds.
	ErrLeaseHeld = errors.New("lease held by another")
	// ErrOtherSchema is a database with a schema of another version. A process gets no
	// lease in it any more, even if the schema changed while it was running.
	ErrOtherSchema = errors.New("schema is of another version")
	// ErrClaimLost is an update of a message whose claim expired: another sender may have
	// claimed it.
	ErrClaimLost = errors.New("claim lost")
	// ErrNoEntry is a change of a request's state without an audit entry.
	ErrNoEntry = errors.New("no audit entry for the change")
)

// Error is a failure of the database itself. The sentence of Error ends with
// what to do; Unwrap gives its kind and the driver's error.
type Error struct {
	Op     string // what was attempted: "save history"
	Path   string // the file, or host and database
	Reason string // the cause in plain words; "" if Err says all
	Hint   string // what to do; may be ""
	Kind   error  // ErrFull and so on; nil if none applies
	Unsure bool   // the write may have happened: see ErrUnsure
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
	if e.Unsure {
		text += "; " + ErrUnsure.Error()
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the kind, if there is one, and the driver's error.
func (e *Error) Unwrap() []error {
	var out []error
	if e.Kind != nil {
		out = append(out, e.Kind)
	}
	if e.Unsure {
		out = append(out, ErrUnsure)
	}
	return append(out, e.Err)
}

// explain turns an error of the driver into an [Error]. Other errors are returned unchanged.
func (s *Store) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*Error](err); done {
		return err
	}
	e := s.on.explain(s, err)
	if e == nil {
		return err
	}
	e.Op, e.Path = op, s.name
	return e
}

// classify is explain for a call under the caller's context ctx and the timeout bound.
// It counts the error, and records that a server is unreachable or a file needs repair.
func (s *Store) classify(ctx, bound context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	err = s.explain(op, err)
	e, ours := errors.AsType[*Error](err)
	if ours {
		s.memory.health.count(e)
		if errors.Is(e.Kind, ErrNeedsRepair) {
			s.stopWriting(e)
		}
	}
	expired := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone)
	switch {
	case !ours && !expired:
		return err // a callback's own
	case ctx.Err() != nil:
		// The caller gave up: that says nothing about the server.
		if ours && e.Unsure {
			return err
		}
		return fmt.Errorf("%s: %w", op, ctx.Err())
	case bound.Err() != nil && (!ours || e.Kind == nil || errors.Is(e.Kind, ErrAway)):
		e = &Error{Op: op, Path: s.name, Kind: ErrAway, Reason: fmt.Sprintf("no answer within %s", s.timeout), Hint: s.awayHint(), Err: err}
		err = e
	}
	if e != nil && errors.Is(e.Kind, ErrAway) && s.conns != nil {
		s.availability.lost(e, s.probe)
	}
	return err
}
