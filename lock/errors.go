package lock

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/record"
)

// Facts that callers branch on, with errors.Is.
var (
	// ErrHeld is "another has it". The error is a [*HeldError].
	ErrHeld = errors.New("lock is held")
	// ErrLost is "not yours any more", whatever was asked. The error is a [*LostError].
	ErrLost = errors.New("lock is lost")
	// ErrMaxHold is "held for Lease.MaxHold": renewal has stopped. Such an error is ErrLost too.
	ErrMaxHold = errors.New("lock was held for its maximum")
	// ErrReleased is the cause of a handle's context after Release.
	ErrReleased = errors.New("lock was released")
	// ErrUnknown is "the server may or may not have done it": no reply came. The library keeps trying to free the
	// lock in the background until its TTL.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrTooLate is an acquire whose reply came so late that too little of the lease was left. The lock is given
	// back.
	ErrTooLate = errors.New("reply came too late")
	// ErrInvalid is bad input; nothing was sent.
	ErrInvalid = errors.New("invalid argument")
	// ErrClosed is a [Client] after Close.
	ErrClosed = errors.New("lock client is closed")
)

// HeldError says who holds a lock that could not be taken. It is [ErrHeld], and where waiting ended with the
// context also that context's cause.
type HeldError struct {
	Key string
	// Holder is the holder's metadata; empty if it wrote none that belongs to this hold (a lock of another
	// library).
	Holder record.Meta
	// Until is when the holder's lease runs out unless it is renewed, on the local clock; zero for a lock without
	// TTL.
	Until time.Time
	// Queued says that nobody holds the lock, but others are before in its queue.
	Queued bool
	// Err is why waiting ended; nil if the call does not wait or Lease.Wait ran out.
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
	return because(text, e.Err)
}

// Is answers to [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Unwrap returns why waiting ended.
func (e *HeldError) Unwrap() error { return e.Err }

// because returns text with a cause, if there is one.
func because(text string, cause error) string {
	if cause == nil {
		return text
	}
	return text + ": " + cause.Error()
}

// Reason is how a hold ended before its release.
type Reason string

// Reasons of a [LostError].
const (
	ReasonExpired   Reason = "expired"   // the lease ran out: no renewal succeeded, or it is not renewed
	ReasonPaused    Reason = "paused"    // it ran out while this process did not run, or the wall clock stepped beyond it
	ReasonGone      Reason = "gone"      // the lock was deleted, evicted or flushed, or expired on the server
	ReasonTaken     Reason = "taken"     // another value is under the lock's key
	ReasonForced    Reason = "forced"    // a forced release
	ReasonMaxHold   Reason = "max_hold"  // Lease.MaxHold
	ReasonClosed    Reason = "closed"    // Client.Close while the lock was held
	ReasonHeartbeat Reason = "heartbeat" // the heartbeat could not be written in time, with Options.EndWithHeartbeat
)

// LostError says that a hold ended before its release. It is [ErrLost], with [ReasonMaxHold] also [ErrMaxHold],
// with [ReasonClosed] also [ErrClosed].
type LostError struct {
	Key    string
	ID     string // acquisition id
	Reason Reason
	Err    error // the last error of a renewal, if that is why; with the refusal before it if its answer did not come
}

// Error names the lock and how it was lost.
func (e *LostError) Error() string {
	return because(fmt.Sprintf("lock %q: lost: %s", e.Key, e.Reason), e.Err)
}

// Is answers to [ErrLost] and to the sentinel of the reason.
func (e *LostError) Is(target error) bool {
	return target == ErrLost || target == ErrMaxHold && e.Reason == ReasonMaxHold || target == ErrClosed && e.Reason == ReasonClosed
}

// Unwrap returns the last error of a renewal.
func (e *LostError) Unwrap() error { return e.Err }

// Code is what kind of error reply a server gave, as far as a caller would treat it differently. The reply itself,
// with the server's own code, is in [ServerError.Err].
type Code string

// Codes of a [ServerError]. "Retried" means again with backoff, for up to Options.Timeout, before the error is
// returned; all others are returned at once.
const (
	CodeWrongType   Code = "wrong_type"  // another type is stored under one of the lock's keys
	CodeFormat      Code = "format"      // lock is held in wire format 1, which is neither waited for nor overwritten
	CodeFence       Code = "fence"       // fence counter was overwritten with something else
	CodeOOM         Code = "oom"         // server is out of memory; releases still work
	CodeDenied      Code = "denied"      // NOPERM, NOAUTH, WRONGPASS: a missing right or a wrong password
	CodeMoved       Code = "moved"       // MOVED, ASK: the slot is at another node of a Cluster; retried
	CodeUnavailable Code = "unavailable" // READONLY, LOADING, BUSY, TRYAGAIN, CLUSTERDOWN, MASTERDOWN, NOREPLICAS, MAXCLIENTS; retried
	CodeOther       Code = "other"       // anything else, MISCONF and NOSCRIPT among it
)

// codes are the first words of error replies; all others are CodeOther.
var codes = map[string]Code{
	"WRONGTYPE": CodeWrongType, "FORMAT": CodeFormat, "FENCE": CodeFence, "OOM": CodeOOM,
	"NOPERM": CodeDenied, "NOAUTH": CodeDenied, "WRONGPASS": CodeDenied, "MOVED": CodeMoved, "ASK": CodeMoved,
	"READONLY": CodeUnavailable, "LOADING": CodeUnavailable, "BUSY": CodeUnavailable, "TRYAGAIN": CodeUnavailable,
	"CLUSTERDOWN": CodeUnavailable, "MASTERDOWN": CodeUnavailable, "NOREPLICAS": CodeUnavailable,
}

// codesByText are of replies whose first word is ERR: servers refuse a command inside a script so, the first text
// by Redis 7.2 and later and Valkey.
var codesByText = []struct {
	text string
	code Code
}{
	{"ACL failure in script", CodeDenied},
	{"can't run this command", CodeDenied},
	{"can't access at least one of the keys", CodeDenied},
	{"can't publish to the channel", CodeDenied},
	{"has no permissions", CodeDenied},
	{"max number of clients", CodeUnavailable},
}

func codeOf(message string) Code {
	head, _, _ := strings.Cut(message, " ")
	// Redis before 7.0 wraps what a command said inside a script, in one way where the command ended the script,
	// and in another where the script hands it on.
	wrapped := strings.HasPrefix(message, "ERR Error running script") || strings.HasPrefix(message, "@user_script:")
	if i := strings.LastIndex(message, ": -"); i > 0 && wrapped {
		head, _, _ = strings.Cut(message[i+len(": -"):], " ")
	}
	if code, known := codes[head]; known {
		return code
	}
	for _, c := range codesByText {
		if strings.Contains(message, c.text) {
			return c.code
		}
	}
	return CodeOther
}

// ServerError is an error reply. The server did nothing, unless Op is "release" and the reply before it was lost.
type ServerError struct {
	Op   string // acquire, renew, release, leave (the queue) or heartbeat
	Key  string // lock
	Code Code
	Err  error
}

// Error names the operation, the lock and the reply.
func (e *ServerError) Error() string {
	text := fmt.Sprintf("%s lock %q: %s", e.Op, e.Key, e.Err)
	if e.Code == CodeFence {
		text += " (hint: look at the fence key of the lock's slot, and delete it if nothing else uses it)"
	}
	return text
}

// Unwrap returns the reply.
func (e *ServerError) Unwrap() error { return e.Err }

// Temporary says that the same call may succeed a moment later.
func (e *ServerError) Temporary() bool {
	return e.Code == CodeUnavailable || e.Code == CodeMoved
}

// classifyError turns a failed round trip into an error for the caller and says what the server may have done.
func classifyError(op, key string, err error) (backend.Effect, error) {
	if f, ok := errors.AsType[*backend.Failure](err); ok {
		return f.Effect, f.Err
	}
	var reply redis.Error
	dial, network := errors.AsType[*net.OpError](err)
	effect, cause := backend.EffectNone, err
	switch {
	case errors.Is(err, ErrInvalid), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
	case errors.As(err, &reply):
		e := &ServerError{Op: op, Key: key, Code: codeOf(reply.Error()), Err: err}
		if e.Temporary() {
			effect = backend.EffectRetry
		}
		return effect, e
	case errors.Is(err, redis.ErrClosed):
		cause = ErrClosed
	case network && dial.Op == "dial": // no connection was made
		effect = backend.EffectRetry
	default:
		effect, cause = backend.EffectUnknown, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return effect, fmt.Errorf("%s lock %q: %w", op, key, cause)
}
