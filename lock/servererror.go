package lock

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/backend"
)

// Code is what kind of error reply a server gave, as far as a caller would treat
// it differently. The reply itself, with the server's own code, is in
// [ServerError.Err].
type Code string

// Codes of a [ServerError]. "Retried" means again with backoff, for up to
// Options.Timeout, before the error is returned; all others are returned at once.
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
	"WRONGTYPE":   CodeWrongType,
	"FORMAT":      CodeFormat,
	"FENCE":       CodeFence,
	"OOM":         CodeOOM,
	"NOPERM":      CodeDenied,
	"NOAUTH":      CodeDenied,
	"WRONGPASS":   CodeDenied,
	"MOVED":       CodeMoved,
	"ASK":         CodeMoved,
	"READONLY":    CodeUnavailable,
	"LOADING":     CodeUnavailable,
	"BUSY":        CodeUnavailable,
	"TRYAGAIN":    CodeUnavailable,
	"CLUSTERDOWN": CodeUnavailable,
	"MASTERDOWN":  CodeUnavailable,
	"NOREPLICAS":  CodeUnavailable,
}

// ServerError is an error reply. The server did nothing, unless Op is "release"
// and the reply before it was lost.
type ServerError struct {
	Op   string // acquire, renew, release, leave (the queue) or heartbeat
	Key  string // lock
	Code Code
	Err  error
}

// Error names the operation and the lock.
func (e *ServerError) Error() string {
	text := fmt.Sprintf("%s lock %q: %s", e.Op, e.Key, e.Err)
	if e.Code == CodeFence {
		text += " (hint: look at the fence key of the lock's slot, and delete it if nothing else uses it)"
	}
	return text
}

// Is answers to [ErrWrongType].
func (e *ServerError) Is(target error) bool {
	return target == ErrWrongType && e.Code == CodeWrongType
}

// Unwrap returns the reply.
func (e *ServerError) Unwrap() error { return e.Err }

// Temporary says that the same call may succeed a moment later.
func (e *ServerError) Temporary() bool {
	return e.Code == CodeUnavailable || e.Code == CodeMoved
}

// classifyError turns a failed round trip into an error for the caller and says what
// the server may have done.
func classifyError(op, key string, err error) (backend.Effect, error) {
	if f, ok := errors.AsType[*backend.Failure](err); ok {
		return f.Effect, f.Err
	}
	var reply redis.Error
	switch {
	case errors.Is(err, ErrInvalid):
		return backend.EffectNone, fmt.Errorf("%s lock %q: %w", op, key, err)
	case errors.As(err, &reply):
		e := &ServerError{Op: op, Key: key, Code: codeOf(reply.Error()), Err: err}
		if e.Temporary() {
			return backend.EffectRetry, e
		}
		return backend.EffectNone, e
	case errors.Is(err, redis.ErrClosed):
		return backend.EffectNone, fmt.Errorf("%s lock %q: %w", op, key, ErrClosed)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return backend.EffectNone, fmt.Errorf("%s lock %q: %w", op, key, err)
	case neverSent(err):
		return backend.EffectRetry, fmt.Errorf("%s lock %q: %w", op, key, err)
	default:
		return backend.EffectUnknown, fmt.Errorf("%s lock %q: %w: %w", op, key, ErrUnknown, err)
	}
}

// neverSent says that no connection was made.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// scriptDenied are the words with which servers refuse a command inside a
// script; their code is ERR. The first is Redis 7.2 and later and Valkey, the others
// are those before.
var scriptDenied = []string{
	"ACL failure in script",
	"can't run this command",
	"can't access at least one of the keys",
	"can't publish to the channel",
	"has no permissions",
}

func codeOf(message string) Code {
	head, _, _ := strings.Cut(message, " ")
	// Redis before 7.0 wraps what a command said inside a script, in one way where the
	// command ended the script, and in another where the script hands it on.
	wrapped := strings.HasPrefix(message, "ERR Error running script") || strings.HasPrefix(message, "@user_script:")
	if i := strings.LastIndex(message, ": -"); i > 0 && wrapped {
		head, _, _ = strings.Cut(message[i+len(": -"):], " ")
	}
	if code, known := codes[head]; known {
		return code
	}
	for _, words := range scriptDenied {
		if strings.Contains(message, words) {
			return CodeDenied
		}
	}
	if strings.Contains(message, "max number of clients") {
		return CodeUnavailable
	}
	return CodeOther
}
