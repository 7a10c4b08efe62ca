package execlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
)

// StartError says that the command could not be started. The lock is not held.
type StartError struct {
	Command string
	Err     error
}

// Error names the command.
func (e *StartError) Error() string { return fmt.Sprintf("start %q: %v", e.Command, e.Err) }

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// NotFound says that there is no such program, rather than one that cannot be
// executed.
func (e *StartError) NotFound() bool {
	return errors.Is(e.Err, exec.ErrNotFound) || errors.Is(e.Err, fs.ErrNotExist)
}

func startError(command string, err error) *StartError {
	// "exec: "x": executable file not found in $PATH" names the command a second time.
	if inner, ok := errors.AsType[*exec.Error](err); ok {
		err = inner.Err
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return &StartError{Command: command, Err: err}
}

// SignalError says that a signal ended the wait for the lock.
type SignalError struct{ Signal syscall.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return "ended by a signal while waiting: " + e.Signal.String() }
