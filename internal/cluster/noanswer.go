package cluster

import (
	"errors"
	"fmt"
	"net"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// noAnswer is the error of a call that was not answered: the replica died, hangs, or cannot be reached.
type noAnswer struct {
	problem *api.Problem // for people
	sent    bool         // the call may have arrived
}

func newNoAnswer(to store.Replica, err error) error {
	dial, ok := errors.AsType[*net.OpError](err)
	return &noAnswer{sent: !ok || dial.Op != "dial", problem: api.NewProblem(api.CodeUnavailable, fmt.Sprintf(
		"replica %s at %s does not answer: %v; if it runs, cluster.advertise there must be an address that reaches it from here", to.Name, to.Address, err))}
}

// Error returns the message of the problem.
func (e *noAnswer) Error() string { return e.problem.Error() }

// Unwrap returns the problem.
func (e *noAnswer) Unwrap() error { return e.problem }

// NoAnswer reports whether the error of a [Call] means that no answer came.
func NoAnswer(err error) bool {
	_, ok := errors.AsType[*noAnswer](err)
	return ok
}

// NotSent reports whether the error of a [Call] means that it did not arrive: it may be repeated, whatever it does.
func NotSent(err error) bool {
	e, ok := errors.AsType[*noAnswer](err)
	return ok && !e.sent
}
