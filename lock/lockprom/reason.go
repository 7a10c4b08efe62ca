package lockprom

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/redlock"
)

// reason is why something failed: the label "reason" of failures.
type reason int

const (
	reasonHeld reason = iota
	reasonCanceled
	reasonDeadline
	reasonUnknown
	reasonTooLate
	reasonUnreachable
	reasonPool
	reasonClosed
	reasonWrongType
	reasonDenied
	reasonOOM
	reasonUnavailable
	reasonServer
	reasonQuorum
	reasonOther
	reasonCount
)

// reasonNames are the values of the label, and what they mean.
var reasonNames = [reasonCount]struct{ name, help string }{
	reasonHeld:        {"held", "another had the lock when the call gave up: at once (`TryAcquire`), after `Lease.Wait`, or at the context's deadline"},
	reasonCanceled:    {"canceled", "the caller cancelled the context, also while another had the lock"},
	reasonDeadline:    {"deadline", "the context's deadline came before an answer did"},
	reasonUnknown:     {"unknown", "no reply, so the outcome is not known (`ErrUnknown`)"},
	reasonTooLate:     {"too_late", "the reply left too little of the lease (`ErrTooLate`)"},
	reasonUnreachable: {"unreachable", "no connection could be made"},
	reasonPool:        {"pool", "no connection was free in time; raise the `PoolSize` of the client of go-redis"},
	reasonClosed:      {"closed", "the client was closed meanwhile (`ErrClosed`)"},
	reasonWrongType:   {"wrong_type", "another type of data is stored under the name"},
	reasonDenied:      {"denied", "a missing right or a wrong password (`CodeDenied`): `NOPERM`, `NOAUTH`, `WRONGPASS`"},
	reasonOOM:         {"oom", "the server is out of memory (`CodeOOM`)"},
	reasonUnavailable: {"unavailable", "`READONLY`, `LOADING`, `BUSY`, `TRYAGAIN`, `MOVED`, `ASK`, `CLUSTERDOWN`, `MASTERDOWN`, `NOREPLICAS`, `MAXCLIENTS`: what passes by itself (`CodeUnavailable`, `CodeMoved`)"},
	reasonServer:      {"server", "any other error reply (`CodeFormat`, `CodeFence`, `CodeOther`): `FORMAT`, `FENCE`, `MISCONF`, `NOSCRIPT`, `ERR`"},
	reasonQuorum:      {"quorum", "too few nodes of a Redlock client answered as needed (`*redlock.QuorumError`)"},
	reasonOther:       {"other", "anything else, such as a cause of its own given to the context"},
}

// String is the value of the label.
func (r reason) String() string { return reasonNames[r].name }

// ofRenewal says that a renewal can fail so; any other is reasonOther there.
func (r reason) ofRenewal() bool { return r != reasonHeld && r != reasonTooLate }

// reasonOf maps the error of a failed event. What the library decided comes
// before what it was caused by: a reply that did not come in time is unknown,
// not a deadline.
func reasonOf(err error) reason {
	switch {
	case err == nil:
		return reasonOther
	case errors.Is(err, lock.ErrClosed):
		return reasonClosed
	case errors.Is(err, lock.ErrHeld):
		if errors.Is(err, context.Canceled) {
			return reasonCanceled
		}
		return reasonHeld
	case isQuorum(err):
		return reasonQuorum
	case errors.Is(err, lock.ErrTooLate):
		return reasonTooLate
	case errors.Is(err, lock.ErrUnknown):
		return reasonUnknown
	}
	if reply, ok := errors.AsType[*lock.ServerError](err); ok {
		return reasonOfReply(reply)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return reasonUnreachable
	}
	switch {
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return reasonPool
	case errors.Is(err, context.Canceled):
		return reasonCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return reasonDeadline
	default:
		return reasonOther
	}
}

func isQuorum(err error) bool {
	_, ok := errors.AsType[*redlock.QuorumError](err)
	return ok
}

func reasonOfReply(e *lock.ServerError) reason {
	switch e.Code {
	case lock.CodeWrongType:
		return reasonWrongType
	case lock.CodeDenied:
		return reasonDenied
	case lock.CodeOOM:
		return reasonOOM
	}
	if e.Temporary() {
		return reasonUnavailable
	}
	return reasonServer
}

// lossNames are the values of the label "reason" of losses: those of
// [lock.Reason], and last one for those of a later version.
var lossNames = [...]string{
	string(lock.ReasonExpired), string(lock.ReasonPaused), string(lock.ReasonGone), string(lock.ReasonTaken),
	string(lock.ReasonForced), string(lock.ReasonMaxHold), string(lock.ReasonClosed),
	string(lock.ReasonHeartbeat), "other",
}

// lossOf returns the place in lossNames of the error of a loss.
func lossOf(err error) int {
	if e, ok := errors.AsType[*lock.LostError](err); ok {
		for i, name := range lossNames {
			if name == string(e.Reason) {
				return i
			}
		}
	}
	return len(lossNames) - 1
}
