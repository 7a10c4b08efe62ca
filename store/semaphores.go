package store

import (
	"context"
	"errors"
	"fmt"
)

// writeSemaphores bound how many writers of this process hold or wait for a
// connection, by kind of write. A process holds at most one of them at a time.
//
// A file has one semaphore for all kinds: the next writer starts after the outcome of
// the commit before it is known, and is refused if that failed at fsync.
//
// With a server they keep one replica from blocking all others. One chain writer of each
// process waits for the advisory lock that orders chain writers. With more, a replica
// that waits for a frozen one would have all its connections in that queue and could not
// renew its leases; and each writer that the frozen replica has queued would get
// the lock in turn, and keep it until the server ends the idle session
// ([idleTransactionTimeout]).
type writeSemaphores struct {
	chain  chan struct{} // writes that exclude each other over all processes
	target chan struct{} // writes beside which others may run
	lease  chan struct{} // heartbeats and leases, which wait for no other write
}

func fileSemaphores() *writeSemaphores {
	one := make(chan struct{}, 1)
	return &writeSemaphores{chain: one, target: one, lease: one}
}

// serverSemaphores have one connection for each writer that they admit.
func serverSemaphores() *writeSemaphores {
	return &writeSemaphores{chain: make(chan struct{}, 1), target: make(chan struct{}, maxConnections-2), lease: make(chan struct{}, 1)}
}

// acquire waits for a place in a semaphore, at most for the timeout of the store.
// The caller calls release once.
func (s *Store) acquire(ctx context.Context, op string, semaphore chan struct{}) (release func(), err error) {
	release = func() { <-semaphore }
	select {
	case semaphore <- struct{}{}:
		return release, nil
	default:
	}
	bound, cancel := s.withTimeout(ctx)
	defer cancel()
	select {
	case semaphore <- struct{}{}:
		return release, nil
	case <-bound.Done():
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", op, ctx.Err())
	}
	if err := s.availability.check(op); err != nil {
		return nil, err // the write before this one found the outage
	}
	return nil, s.classify(ctx, bound, op, &Error{
		Op: op, Path: s.name, Kind: ErrBusy, Reason: fmt.Sprintf("other writes of this agent were not done within %s", s.timeout),
		Hint: "check what the server is doing (pg_stat_activity), and try again", Err: errSemaphore,
	})
}

var errSemaphore = errors.New("write semaphore not acquired")
