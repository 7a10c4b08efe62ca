// Package backend is between lock.Client and package redlock, which runs the client's
// scripts on several servers.
package backend

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// Backend runs the scripts of a client and answers as one server would. There is no queue
// of waiters, and each attempt to acquire has an acquisition id of its own. It is safe for
// concurrent use.
type Backend interface {
	// Eval runs a script. An error that is a [*Failure] is one of the backend's own.
	Eval(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error)
	// CheckTTL returns why no lease may last so long.
	CheckTTL(ttl time.Duration) error
	// Spare is what must be left of Host.Timeout to try an acquire once more.
	Spare(ttl time.Duration) time.Duration
	// Delete deletes a key once nothing is under way.
	Delete(ctx context.Context, key string) error
	// Close waits for what is under way and closes the connections.
	Close() error
}

// Host is what a client offers to its backend. All of it is safe for concurrent use.
type Host struct {
	Timeout time.Duration     // lock.Options.Timeout
	Release *transport.Script // with value and "PUBLISH" as arguments
	// Spawn runs a function in the background. Its context ends when the client is closed.
	Spawn func(func(context.Context))
	// Classify turns a failed round trip into an error for the caller.
	Classify func(op, key string, err error) (Effect, error)
	// Cleaned reports that an acquisition is gone from a node, or why it could not be
	// removed.
	Cleaned func(key, class, id string, took time.Duration, err error)
}

// Effect is what a failed round trip may have done at the server.
type Effect int

const (
	EffectNone    Effect = iota // nothing, and trying again will not help
	EffectRetry                 // nothing; trying again may help
	EffectUnknown               // the request may have been executed; its reply is lost
)

// Failure is an error of a backend.
type Failure struct {
	Effect Effect
	Err    error // for the caller
}

// Error is that of Err.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }
