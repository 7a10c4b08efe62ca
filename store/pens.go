package store

import (
	"context"
	"errors"
	"fmt"
)

// pens keep those of a process apart that write: each is with as many of them as it has
// room for. Of a file all pens are one: a writer that waits for the connection must not
// get it from one whose commit is in doubt, but is let in when that is known.
//
// Of a server they keep one replica from standing in the way of all. One writer of each
// process waits for the lock that orders them. Were there more, a replica would have all
// its connections wait behind one that is frozen, and could not say any more that it is
// there; and each writer that the frozen one has in the queue would be given the lock in
// its turn, and keep it until the server ends what stands still ([idleTransaction]).
type pens struct {
	chain chan struct{} // those that no other writes beside, in whatever process
	own   chan struct{} // those that others may write beside
	lease chan struct{} // beats and leases: they wait for nothing else
}

func pensOfFile() *pens {
	pen := make(chan struct{}, 1)
	return &pens{chain: pen, own: pen, lease: pen}
}

// pensOfServer has a connection for each pen.
func pensOfServer() *pens {
	return &pens{chain: make(chan struct{}, 1), own: make(chan struct{}, connections-2), lease: make(chan struct{}, 1)}
}

// takePen waits for a pen, for no longer than the store has patience; put gives it back.
func (s *Store) takePen(ctx context.Context, op string, pen chan struct{}) (put func(), err error) {
	put = func() { <-pen }
	select {
	case pen <- struct{}{}:
		return put, nil
	default:
	}
	bound, cancel := s.bounded(ctx)
	defer cancel()
	select {
	case pen <- struct{}{}:
		return put, nil
	case <-bound.Done():
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", op, ctx.Err())
	}
	if err := s.gate.enter(op); err != nil {
		return nil, err // what was waited for met it
	}
	return nil, s.judged(ctx, bound, op, &Error{
		Op: op, Path: s.name, Kind: ErrBusy, Reason: fmt.Sprintf("other writes of this agent were not done within %s", s.patience),
		Hint: "see what the server is about (pg_stat_activity), and try again", Err: errNoPen,
	})
}

var errNoPen = errors.New("it waited behind them")
