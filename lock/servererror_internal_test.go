package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/backend"
)

// What servers say, word for word (redis/redis src/server.c, src/script.c,
// src/cluster.c, src/acl.c at 7.0.15, and how 6.2 wraps it in scripts), and what
// becomes of it. reliability.md §3, "Errors".
func TestEveryErrorReplyIsTyped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reply string
		code  Code
		again bool
	}{
		{"WRONGTYPE Operation against a key holding the wrong kind of value", CodeWrongType, false},
		{"WRONGTYPE the lock key holds another type", CodeWrongType, false},
		{"FENCE the counter of the slot is not a number that can grow", CodeFence, false},
		{"OOM command not allowed when used memory > 'maxmemory'.", CodeOOM, false},
		{"OOM command not allowed when used memory > 'maxmemory'. script: 5b4f, on @user_script:131.", CodeOOM, false},
		{"ERR Error running script (call to f_5b4f): @user_script:131: @user_script: 131: -OOM command not allowed when used memory > 'maxmemory'.", CodeOOM, false},
		{"NOPERM this user has no permissions to run the 'evalsha' command", CodeDenied, false},
		{"NOPERM User app has no permissions to access one of the keys used as arguments", CodeDenied, false},
		{"ERR The user executing the script can't run this command or subcommand script: 5b4f, on @user_script:12.", CodeDenied, false},
		{"ERR ACL failure in script: No permissions to access a key script: 6eea, on @user_script:1.", CodeDenied, false},
		{"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 5b4f, on @user_script:12.", CodeDenied, false},
		{"NOAUTH Authentication required.", CodeDenied, false},
		{"WRONGPASS invalid username-password pair or user is disabled.", CodeDenied, false},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", CodeOther, false},
		{"MISCONF Errors writing to the AOF file: No space left on device script: 5b4f, on @user_script:131.", CodeOther, false},
		{"READONLY You can't write against a read only replica.", CodeUnavailable, true},
		{"READONLY You can't write against a read only replica. script: 5b4f, on @user_script:131.", CodeUnavailable, true},
		{"ERR Error running script (call to f_5b4f): @user_script:131: @user_script: 131: -READONLY You can't write against a read only replica.", CodeUnavailable, true},
		{"@user_script: 34: -READONLY You can't write against a read only replica.  ", CodeUnavailable, true},
		{"@user_script: 34: -OOM command not allowed when used memory > 'maxmemory'.  ", CodeOOM, false},
		{"@user_script: 72: The user executing the script can't run this command or subcommand", CodeDenied, false},
		{"LOADING Redis is loading the dataset in memory", CodeUnavailable, true},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", CodeUnavailable, true},
		{"TRYAGAIN Multiple keys request during rehashing of slot", CodeUnavailable, true},
		{"MOVED 3999 127.0.0.1:6381", CodeMoved, true},
		{"ASK 3999 127.0.0.1:6381", CodeMoved, true},
		{"CLUSTERDOWN The cluster is down", CodeUnavailable, true},
		{"CLUSTERDOWN Hash slot not served", CodeUnavailable, true},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", CodeUnavailable, true},
		{"NOREPLICAS Not enough good replicas to write.", CodeUnavailable, true},
		{"ERR max number of clients reached", CodeUnavailable, true},
		{"NOSCRIPT No matching script. Please use EVAL.", CodeOther, false},
		{"ERR unknown command 'EVALSHA', with args beginning with: ", CodeOther, false},
		{"ERR value is not an integer or out of range", CodeOther, false},
		{"CROSSSLOT Keys in request don't hash to the same slot", CodeOther, false},
		{"", CodeOther, false},
	} {
		effect, err := classifyError("acquire", "k", redisError(tc.reply))
		e, ok := errors.AsType[*ServerError](err)
		if !ok || e.Code != tc.code || e.Temporary() != tc.again || e.Key != "k" || e.Op != "acquire" {
			t.Errorf("%q became %#v", tc.reply, err)
			continue
		}
		if want := map[bool]any{true: backend.EffectRetry, false: backend.EffectNone}[tc.again]; effect != want {
			t.Errorf("%q has effect %v", tc.reply, effect)
		}
		if errors.Is(err, ErrUnknown) || errors.Is(err, ErrHeld) {
			t.Errorf("%q answers to the wrong sentinel: %v", tc.reply, err)
		}
		if !strings.Contains(err.Error(), tc.reply) {
			t.Errorf("%q is not in %q", tc.reply, err)
		}
	}
}

// Without a reply nobody knows, unless nothing was sent.
func TestFailuresWithoutReply(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		effect backend.Effect
		is     error
	}{
		{io.EOF, backend.EffectUnknown, ErrUnknown},
		{io.ErrUnexpectedEOF, backend.EffectUnknown, ErrUnknown},
		{context.DeadlineExceeded, backend.EffectUnknown, ErrUnknown},
		{os.ErrDeadlineExceeded, backend.EffectUnknown, ErrUnknown},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, backend.EffectUnknown, ErrUnknown},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, backend.EffectUnknown, ErrUnknown},
		{fmt.Errorf("wrapped: %w", io.EOF), backend.EffectUnknown, ErrUnknown},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, backend.EffectRetry, nil},
		{redis.ErrPoolTimeout, backend.EffectNone, redis.ErrPoolTimeout},
		{redis.ErrPoolExhausted, backend.EffectNone, redis.ErrPoolExhausted},
		{redis.ErrClosed, backend.EffectNone, ErrClosed},
	} {
		effect, err := classifyError("renew", "k", tc.err)
		if effect != tc.effect || tc.is != nil && !errors.Is(err, tc.is) || tc.effect == backend.EffectRetry && errors.Is(err, ErrUnknown) {
			t.Errorf("%v: effect %v, %v", tc.err, effect, err)
		}
		if _, ok := errors.AsType[*ServerError](err); ok {
			t.Errorf("%v is taken for a reply", tc.err)
		}
	}
}
