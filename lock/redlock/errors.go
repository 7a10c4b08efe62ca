package redlock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/backend"
)

// QuorumError is a call of a [New] client for which too few nodes gave
// their vote. errors.Is and errors.As find what each node said: a
// [*lock.ServerError], [lock.ErrUnknown] where no reply came.
//
// An acquire that fails so was given back on all nodes; where that was not
// certain in time, the library goes on in the background until the lock's TTL. A release
// goes on likewise. A renewal is tried again inside the lease.
type QuorumError struct {
	Op   string // acquire, renew, release or heartbeat
	Key  string // lock
	Need int    // votes, of all nodes
	Got  int
	// Nodes are those that did not give their vote, in the order given to [New].
	Nodes []NodeError
}

// Error names the lock and what each node said.
func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s lock %q: %d of %d nodes that are needed", e.Op, e.Key, e.Got, e.Need)
	for i := range e.Nodes {
		b.WriteString("; ")
		b.WriteString(e.Nodes[i].Error())
	}
	return b.String()
}

// Unwrap returns what the nodes said.
func (e *QuorumError) Unwrap() []error {
	list := make([]error, len(e.Nodes))
	for i := range e.Nodes {
		list[i] = &e.Nodes[i]
	}
	return list
}

// Temporary says that the same call may succeed a moment later: the nodes that
// may say otherwise then are a majority, with those that gave their vote.
func (e *QuorumError) Temporary() bool {
	votes := e.Got
	for i := range e.Nodes {
		if e.Nodes[i].Temporary() {
			votes++
		}
	}
	return votes >= e.Need
}

// effect is what a failed round may have done, for who may repeat it.
func (e *QuorumError) effect() backend.Effect {
	switch {
	case e.Op != opAcquire && errors.Is(e, lock.ErrUnknown):
		return backend.EffectUnknown
	case e.Temporary():
		return backend.EffectRetry // an acquire was given back
	default:
		return backend.EffectNone
	}
}

// NodeError is what one node said.
type NodeError struct {
	Node int    // place in the nodes given to [New]
	Addr string // of its server
	Err  error
}

// Error names the node.
func (e *NodeError) Error() string {
	err := e.Err
	if reply, ok := errors.AsType[*lock.ServerError](err); ok {
		err = reply.Err // lock and operation are named already
	}
	return fmt.Sprintf("nodes[%d] %s: %s", e.Node, e.Addr, err)
}

// Unwrap returns the error of the node.
func (e *NodeError) Unwrap() error { return e.Err }

// Temporary says that the node may say otherwise a moment later.
func (e *NodeError) Temporary() bool {
	if _, refused := errors.AsType[guardError](e.Err); refused {
		return false
	}
	if reply, ok := errors.AsType[*lock.ServerError](e.Err); ok {
		return reply.Temporary()
	}
	return !errors.Is(e.Err, lock.ErrClosed)
}
