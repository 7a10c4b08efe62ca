//go:build !unix

package execlock

import (
	"context"
	"errors"
	"io"
	"time"
)

// Result is how a command ended that was started.
type Result struct {
	Code    int
	Lost    error
	Release error
}

var errSystem = errors.New("this system has no process groups: a command and what it starts could not be stopped when the lock is lost; use package lock in the program itself")

// Run needs the process groups of Unix.
func Run(context.Context, Options) (Result, error) { return Result{}, errSystem }

// Guard needs them too.
func Guard(io.Reader, Stop, time.Duration, func(string)) error { return errSystem }
