package lock

import (
	"errors"
	"fmt"
	"time"
)

// Facts that callers branch on, with errors.Is.
var (
	// ErrHeld is "another has it". The error is a [*HeldError].
	ErrHeld = errors.New("lock is held")
	// ErrLost is "not yours any more", whatever was asked. The error is a
	// [*LostError].
	ErrLost = errors.New("lock is lost")
	// ErrMaxHold is "held for Lease.MaxHold": renewal has stopped. Such an error
	// is ErrLost too.
	ErrMaxHold = errors.New("lock was held for its maximum")
	// ErrReleased is the cause of a handle's context after Release.
	ErrReleased = errors.New("lock was released")
	// ErrUnknown is "the server may or may not have done it": no reply came. The
	// library keeps trying to free the lock in the background until its TTL.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrTooLate is an acquire whose reply came so late that too little of the
	// lease was left. The lock is given back.
	ErrTooLate = errors.New("reply came too late")
	// ErrInvalid is bad input; nothing was sent.
	ErrInvalid = errors.New("invalid argument")
	// ErrWrongType is a lock name under which another kind of data is stored.
	// The error is a [*ServerError] with [CodeWrongType].
	ErrWrongType = errors.New("key holds another type")
	// ErrClosed is a [Client] after Close.
	ErrClosed = errors.New("lock client is closed")
)

// Holder is who has a lock, from its metadata. All of it is empty when the lock
// has none, or none that belongs to this hold (a lock of another library).
type Holder struct {
	ID       string // acquisition id
	Instance string
	App      string
	Host     string
	PID      int
	Session  string
	Class    string
	Purpose  string
	Fence    int64
	Acquired time.Time // server time
}

// HeldError says who holds a lock that could not be taken. It is [ErrHeld], and
// where waiting ended with the context also that context's cause.
type HeldError struct {
	Key    string
	Holder Holder
	// Until is when the holder's lease runs out unless it is renewed, on the
	// local clock; zero for a lock without TTL.
	Until time.Time
	// Queued says that nobody holds the lock, but others are before in its queue.
	Queued bool
	// Err is why waiting ended; nil if the call does not wait or Lease.Wait ran
	// out.
	Err error
}

// Error names the lock and its holder.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("acquire lock %q: held", e.Key)
	switch {
	case e.Queued:
		text = fmt.Sprintf("acquire lock %q: others are before in its queue", e.Key)
	case e.Holder.ID != "":
		text += fmt.Sprintf(" by %q on %q (pid %d)", e.Holder.App, e.Holder.Host, e.Holder.PID)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is answers to [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Unwrap returns why waiting ended.
func (e *HeldError) Unwrap() error { return e.Err }

// Reason is how a hold ended before its release.
type Reason string

// Reasons of a [LostError].
const (
	// ReasonExpired is a lease that ran out because no renewal succeeded, or
	// because the lease is not renewed.
	ReasonExpired Reason = "expired"
	// ReasonPaused is a lease that ran out while this process did not run
	// (SIGSTOP, a suspended machine, a very long pause), or whose wall clock
	// stepped beyond the lease.
	ReasonPaused Reason = "paused"
	// ReasonGone is a lock that was deleted, evicted or flushed, or expired on
	// the server.
	ReasonGone Reason = "gone"
	// ReasonTaken is another value under the lock's key.
	ReasonTaken Reason = "taken"
	// ReasonForced is a forced release: the holder was told.
	ReasonForced Reason = "forced"
	// ReasonMaxHold is Lease.MaxHold.
	ReasonMaxHold Reason = "max_hold"
	// ReasonClosed is Client.Close while the lock was held.
	ReasonClosed Reason = "closed"
	// ReasonHeartbeat is a process whose heartbeat could not be written in time,
	// with Options.EndWithHeartbeat.
	ReasonHeartbeat Reason = "heartbeat"
)

// LostError says that a hold ended before its release. It is [ErrLost], with
// [ReasonMaxHold] also [ErrMaxHold], with [ReasonClosed] also [ErrClosed].
type LostError struct {
	Key    string
	ID     string // acquisition id
	Reason Reason
	// Err is the last error of a renewal, if that is why.
	Err error
}

// Error names the lock and how it was lost.
func (e *LostError) Error() string {
	text := fmt.Sprintf("lock %q: lost: %s", e.Key, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is answers to [ErrLost] and to the sentinel of the reason.
func (e *LostError) Is(target error) bool {
	switch target {
	case ErrLost:
		return true
	case ErrMaxHold:
		return e.Reason == ReasonMaxHold
	case ErrClosed:
		return e.Reason == ReasonClosed
	default:
		return false
	}
}

// Unwrap returns the last error of a renewal.
func (e *LostError) Unwrap() error { return e.Err }
