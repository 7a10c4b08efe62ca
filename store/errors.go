package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// What can be wrong with a database, for errors.Is on what the methods of a
// [Store] return. The error's own text says what to do.
var (
	// ErrFull is a disk without space.
	ErrFull = errors.New("store is full")
	// ErrReadOnly is a file or server that takes no writes, or not from this user.
	ErrReadOnly = errors.New("store is read-only")
	// ErrBusy is a lock that somebody else keeps for too long.
	ErrBusy = errors.New("store is locked")
	// ErrAway is a server or file that cannot be reached. The store recovers by
	// itself.
	ErrAway = errors.New("store is away")
	// ErrDamaged is a file or database with broken content.
	ErrDamaged = errors.New("store is damaged")
	// ErrUnsure comes with ErrAway when the connection broke while a write was
	// being committed, or the disk did not confirm it: it may or may not be there. All other errors mean that
	// nothing was written.
	ErrUnsure = errors.New("it is not known whether this was written")
	// ErrLeaseLost is a write under a lease that ended or that another process
	// took over. Nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseHeld is a target on which another process works.
	ErrLeaseHeld = errors.New("lease held by another")
	// ErrNewerSchema is a database that a newer program brought up to date while this
	// one was at work on it: it gets no lease any more. Nothing was written.
	ErrNewerSchema = errors.New("schema is newer than this program")
	// ErrNoEntry is a change of a request's state that brought no audit entry.
	ErrNoEntry = errors.New("no audit entry for the change")
)

// Error is a failure of the database itself. The sentence of Error ends with
// what to do; Unwrap gives its kind and the driver's error.
type Error struct {
	Op     string // what was attempted: "save history"
	Path   string // the file, or host and database
	Reason string // why, in a person's words; "" when there is no better text than Err's
	Hint   string // what to do; "" when nothing can be said
	Kind   error  // ErrFull and so on; nil when it is none of them
	Unsure bool   // it may have been written: see ErrUnsure
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

// Unwrap returns the kind, if it has one, and the driver's error.
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

// explain turns an error of the driver into an [Error]; every other error comes
// back as it is.
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

// judged is explain for a call under the caller's context ctx and our own bound
// on it. A server that is away is known to be so from then on.
func (s *Store) judged(ctx, bound context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	err = s.explain(op, err)
	e, ours := errors.AsType[*Error](err)
	if ours {
		s.memory.health.count(e)
		if e.Unsure && s.file != "" {
			s.distrust(e)
		}
	}
	over := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone)
	switch {
	case !ours && !over:
		return err // a callback's own
	case ctx.Err() != nil:
		// The caller left: what broke by that says nothing about the server.
		if ours && e.Unsure {
			return err
		}
		return fmt.Errorf("%s: %w", op, ctx.Err())
	case bound.Err() != nil && (!ours || e.Kind == nil || errors.Is(e.Kind, ErrAway)):
		e = &Error{Op: op, Path: s.name, Kind: ErrAway, Reason: fmt.Sprintf("no answer within %s", s.patience), Hint: s.awayHint(), Err: err}
		err = e
	}
	if e != nil && errors.Is(e.Kind, ErrAway) && s.lines != nil {
		s.gate.shut(e, s.ask)
	}
	return err
}
