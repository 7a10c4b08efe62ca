package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/locksteward/locksteward"
)

// Exit codes, a contract (docs/cli.md).
const (
	exitDone        = 0
	exitError       = 1   // an error, or an incomplete scan
	exitUsage       = 2   // wrong usage or invalid configuration
	exitFindings    = 3   // findings at or above --fail-on; beats exitError
	exitRefused     = 4   // refused by policy
	exitInterrupted = 130 // ended by a signal
)

// usageError marks an error as the caller's: the program exits with exitUsage.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// findingsError says that findings reached --fail-on. Its data went to stdout
// already.
type findingsError struct {
	count   int
	failOn  locksteward.Severity
	partial error // the scan was also incomplete
}

func (e *findingsError) Error() string {
	noun := "findings"
	if e.count == 1 {
		noun = "finding"
	}
	text := fmt.Sprintf("%d %s at or above %s", e.count, noun, e.failOn)
	if e.partial != nil {
		text += "; " + e.partial.Error()
	}
	return text
}

// codeError ends the program with a code that is a command's own, in silence if it
// has no error.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// exitCode maps an error to the program's exit code.
func exitCode(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[*codeError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*findingsError](err); ok {
		return exitFindings
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*usageError](err); ok || errors.Is(err, locksteward.ErrInvalid) {
		return exitUsage
	}
	if errors.Is(err, locksteward.ErrRefused) {
		return exitRefused
	}
	return exitError
}

// report writes an error for a person, each line with the program's name.
func report(stderr io.Writer, err error) {
	for _, line := range splitLines(err.Error()) {
		fmt.Fprintln(stderr, "locksteward:", line)
	}
}
