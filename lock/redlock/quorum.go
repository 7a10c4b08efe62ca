package redlock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

var (
	//go:embed raise.lua
	raiseText   string
	raiseScript = transport.NewScript("raise", raiseText, transport.Now)
)

// quorum runs each script on all nodes at once and answers as one server would,
// with what a majority of them says. A majority is one of all nodes that were
// given, whether they are up or not.
//
// What one acquisition may have left on a node is known by its track, and
// removed by the node's cleaner if the release itself could not.
type quorum struct {
	host        backend.Host
	nodes       []*node
	need        int
	nodeTimeout time.Duration // 0: by the TTL
	minUptime   time.Duration // 0: none

	wg sync.WaitGroup // requests on their way, and nothing else
	// met is set when all nodes have had the time to be connected to.
	met atomic.Bool
	// same is what is wrong with the nodes as far as they could be distinguished.
	same atomic.Pointer[sameServer]

	mu     sync.Mutex
	tracks map[string]*track // by value of the lock
	sweep  int               // tracks at which to look for old ones
}

func newQuorum(h backend.Host, nodes int, nodeTimeout, minUptime time.Duration) *quorum {
	q := &quorum{
		host:        h,
		need:        nodes/2 + 1,
		nodeTimeout: nodeTimeout,
		minUptime:   minUptime,
		tracks:      map[string]*track{},
		sweep:       minSweep,
	}
	for i := range nodes {
		n := &node{index: i}
		n.cleaner = &cleaner{q: q, n: n, tasks: map[string]*task{}, kick: make(chan struct{}, 1)}
		q.nodes = append(q.nodes, n)
	}
	return q
}

// What the client's scripts do (transport.Script.Op), and places in their arguments: the
// value is the first of acquire, renew and release.
const (
	opAcquire = "acquire"
	opRenew   = "renew"
	opRelease = "release"
	opBeat    = "heartbeat"

	argValue    = 0
	acquireID   = 1
	acquireTTL  = 2
	acquireTail = 4
	renewTTL    = 1
)

// Eval is one round of votes; two for an acquire.
func (q *quorum) Eval(ctx context.Context, s *transport.Script, keys []string, args []any) (reply any, err error) {
	// A request that was given up may still be written when its caller has gone
	// on: nothing of the caller's is pointed at.
	args = settled(args)
	switch s.Op {
	case opAcquire:
		reply, err = q.acquire(ctx, s, keys, args)
	case opRenew:
		reply, err = q.renew(ctx, s, keys, args)
	case opRelease:
		reply, err = q.release(ctx, keys, args)
	case opBeat:
		reply, err = q.beat(ctx, s, keys, args)
	default:
		err = fmt.Errorf("%w: script %s", lock.ErrInvalid, s.Op)
	}
	if e, ok := errors.AsType[*QuorumError](err); ok {
		err = &backend.Failure{Effect: e.effect(), Err: e}
	}
	return reply, err
}

// CheckTTL refuses a lease that a node could forget and vote against.
func (q *quorum) CheckTTL(ttl time.Duration) error {
	if q.minUptime > 0 && ttl > q.minUptime {
		return fmt.Errorf("%w: Lease.TTL: want at most redlock.Options.MinUptime, %s, got %s", lock.ErrInvalid, q.minUptime, ttl)
	}
	return nil
}

// Delete deletes a key on all nodes, as far as they answer.
func (q *quorum) Delete(ctx context.Context, key string) error {
	q.wg.Wait() // a heartbeat that a majority has answered is still on its way to others
	errs := make([]error, len(q.nodes))
	var wg sync.WaitGroup
	for i, n := range q.nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, q.patience(0))
			defer cancel()
			if err := n.server.Delete(ctx, key); err != nil {
				errs[i] = &NodeError{Node: i, Addr: n.addr, Err: err}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close waits for the requests on their way and closes the connections.
func (q *quorum) Close() error {
	q.wg.Wait()
	var errs []error
	for _, n := range q.nodes {
		errs = append(errs, n.server.Close())
	}
	return errors.Join(errs...)
}

// settled returns args without pointers.
func settled(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *string:
			out[i] = *a
		case *int64:
			out[i] = *a
		default:
			out[i] = a
		}
	}
	return out
}

// patience is how long a node may take for a lease of ttl; 0 for any.
func (q *quorum) patience(ttl time.Duration) time.Duration {
	switch {
	case q.nodeTimeout > 0:
		return q.nodeTimeout
	case ttl > 0:
		return min(DefaultNodeTimeout, max(minNodeTimeout, ttl/20))
	default:
		return DefaultNodeTimeout
	}
}

// share is how long a node may take in each of the two rounds of an acquire,
// which end within Options.Timeout.
func (q *quorum) share(ttl time.Duration) time.Duration {
	return min(q.patience(ttl), q.host.Timeout/2)
}

// Spare is what must be left of Options.Timeout for an acquire of a lease of ttl
// to be tried once more: its two rounds, so that votes are agreed upon or taken
// back before the caller gets its answer. Where nodes have so long that this is most of
// the time, the last attempt is cut short instead.
func (q *quorum) Spare(ttl time.Duration) time.Duration {
	return min(2*q.share(ttl), q.host.Timeout/4)
}

// answer is what came of a request to one node.
type answer struct {
	node  *node
	reply any
	err   error
}

// round is one script for several nodes.
type round struct {
	script  *transport.Script
	keys    []string
	args    []any
	timeout time.Duration
	// leave is when nobody waits any longer, while the requests go on; zero for
	// as long as they may take.
	leave time.Time
	// note is called with each answer, also with one that is late for the round,
	// from several goroutines. May be nil.
	note func(answer)
	// decided says, with each answer in turn, that no other can change the
	// outcome.
	decided func(answer) bool
}

// ask sends r to nodes at once and returns when all have answered, the timeout
// is over, it is time to leave or ctx has ended. Once the outcome is decided,
// those that have not answered have as long again as that took, and no longer: a
// node that hangs costs next to nothing. Requests end with their timeout, not with
// ctx. What it returns is how long nodes were waited for, to the millisecond and at
// least one.
func (q *quorum) ask(ctx context.Context, nodes []*node, r round) time.Duration {
	began := time.Now()
	waited := func() time.Duration { return max(time.Millisecond, time.Since(began).Round(time.Millisecond)) }
	until := began.Add(r.timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	detached := context.WithoutCancel(ctx)
	results := make(chan answer, len(nodes)) // a late one finds its place
	for _, n := range nodes {
		q.wg.Go(func() {
			sub, cancel := context.WithDeadline(detached, until)
			defer cancel()
			a := answer{node: n}
			a.reply, a.err = n.server.Eval(sub, r.script, r.keys, r.args)
			if r.note != nil {
				r.note(a)
			}
			results <- a
		})
	}
	leave := until
	if !r.leave.IsZero() && r.leave.Before(leave) {
		leave = r.leave
	}
	if !time.Now().Before(leave) {
		return waited()
	}
	t := time.NewTimer(time.Until(leave))
	defer t.Stop()
	decided := false
	for range nodes {
		select {
		case a := <-results:
			if r.decided(a) && !decided {
				decided = true
				now := time.Now()
				t.Reset(min(now.Sub(began)+time.Millisecond, leave.Sub(now)))
			}
		case <-t.C:
			return waited()
		case <-ctx.Done():
			return waited()
		}
	}
	return waited()
}
