package release

import (
	"context"
	_ "embed" // for the script
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/dialect"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/lock/record"
)

//go:embed resolve.lua
var resolveLua string

const (
	// resolvePause is between two questions to a server that does not answer.
	resolvePause = 100 * time.Millisecond
	// actShare is the part of the time for an act that its script may wait for
	// an answer; the rest is for finding out what happened.
	actShare = 2
)

// ExecutorConfig is what a [RedisExecutor] needs.
type ExecutorConfig struct {
	// Connect has the target's address and the release credentials.
	Connect connect.Config
	// Digest is the installation's key: evidence is compared by its digests.
	Digest locksteward.DigestKey
	// MetaPrefixes are where companions of locks may be; none is
	// record.DefaultPrefix.
	MetaPrefixes []string
}

// RedisExecutor deletes locks on one target. It has a connection only during an
// act. It is safe for concurrent use.
type RedisExecutor struct {
	cfg ExecutorConfig
}

// NewRedisExecutor returns an executor, or what is wrong with cfg. It does no
// I/O.
func NewRedisExecutor(cfg ExecutorConfig) (*RedisExecutor, error) {
	if err := cfg.Connect.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.MetaPrefixes) == 0 {
		cfg.MetaPrefixes = []string{record.DefaultPrefix}
	}
	cfg.MetaPrefixes = slices.Clone(cfg.MetaPrefixes)
	return &RedisExecutor{cfg: cfg}, nil
}

// Execute reads the lock again, compares it with the evidence and runs the
// dialect's script, which compares once more and deletes. The script is sent
// once; if its answer is lost, the record that it left tells. An error means that
// the outcome is not known yet.
func (e *RedisExecutor) Execute(ctx context.Context, req locksteward.Request) (Result, error) {
	result, sent, err := e.act(ctx, req)
	if err == nil {
		return result, nil
	}
	if !sent {
		return failed(explain(err)), nil
	}
	// From here on only the record knows.
	cause := err
	for {
		result, found, err := e.resolve(ctx, req)
		switch {
		case err == nil && !found && isReplyError(cause):
			// The server answered with an error and the script left no record: it
			// ended before it touched the lock.
			return failed(explain(cause)), nil
		case err == nil && result.State == locksteward.RequestFailed:
			return failed(explain(cause)), nil
		case err == nil:
			return result, nil
		case isPermission(cause) && isPermission(err):
			// Not even the record can be read, but a script that lacks a permission
			// ends before it touches the lock.
			return failed(explain(cause)), nil
		}
		select {
		case <-ctx.Done():
			return Result{}, fmt.Errorf("execute release: %s; then: %s", explain(cause), explain(err))
		case <-time.After(resolvePause):
		}
	}
}

// Resolve finds out what an earlier Execute did. If the server has no record of
// it, the request is withdrawn there, so that it certainly never runs; and if
// moreover the lock stands as it stood, nothing was touched. Otherwise nobody can
// know: the record may have been evicted or lost.
func (e *RedisExecutor) Resolve(ctx context.Context, req locksteward.Request) (Result, error) {
	result, _, err := e.resolve(ctx, req)
	if err != nil {
		return Result{}, fmt.Errorf("resolve release: %s", explain(err))
	}
	return result, nil
}

// resolve is Resolve; found says that the server has a record.
func (e *RedisExecutor) resolve(ctx context.Context, req locksteward.Request) (result Result, found bool, err error) {
	err = e.with(ctx, req.Evidence, func(cn *redis.Conn) error {
		reply, err := cn.Eval(ctx, resolveLua, e.execKeys(req.Evidence.Key), req.ID, dialect.ExecTTL.Milliseconds()).Int64Slice()
		if err != nil {
			return err
		}
		if len(reply) != 3 {
			return fmt.Errorf("read record of release: %d numbers in the reply, want 3", len(reply))
		}
		if found = reply[0] == 1; found {
			result, err = resultOf(dialect.Outcome(reply[1]), reply[2])
			return err
		}
		now, err := e.look(ctx, cn, req.Evidence)
		if err != nil {
			return err
		}
		result = withdrawn(req.Evidence, now)
		return nil
	})
	return result, found, err
}

// withdrawn is the outcome of a request without a record.
func withdrawn(was locksteward.Evidence, now look) Result {
	same := now.found && len(differences(was, now.evidence)) == 0
	switch {
	case was.Identity == locksteward.IdentityNone && same:
		return unknown("the server has no record of it, and this lock cannot be told from the next of its name")
	case same:
		return failed("it was not carried out and is withdrawn; the lock is still held")
	case was.Identity == locksteward.IdentityStrong && now.found && was.TokenDigest == now.evidence.TokenDigest:
		// A token that is fresh for each acquisition does not come again.
		return failed("it was not carried out and is withdrawn; the lock is still held and was renewed")
	default:
		return unknown("the server has no record of it, and the lock is not as it was")
	}
}

// act is one connection: look, compare, script. sent says that the script may
// have reached the server.
func (e *RedisExecutor) act(ctx context.Context, req locksteward.Request) (result Result, sent bool, err error) {
	err = e.with(ctx, req.Evidence, func(cn *redis.Conn) error {
		now, err := e.look(ctx, cn, req.Evidence)
		if err != nil {
			return err
		}
		if !now.found {
			result = resultGone()
			return nil
		}
		if diff := differences(req.Evidence, now.evidence); len(diff) > 0 {
			result = resultChanged(diff)
			return nil
		}
		d, ok := dialect.Get(req.Evidence.Dialect)
		if !ok {
			result = failed(fmt.Sprintf("this version does not know the dialect %q", req.Evidence.Dialect))
			return nil
		}
		command, err := d.Release(now.sample, dialect.Release{
			RequestID: req.ID, ExpireAt: req.Evidence.ExpireAt, MetaPrefix: now.prefix,
		})
		if err != nil {
			result = failed(err.Error())
			return nil
		}
		sent = true
		reply, err := e.run(ctx, cn, command)
		switch {
		case redis.HasErrorPrefix(err, "NOPERM"):
			// The server refuses before it runs anything.
			sent = false
			return err
		case err != nil:
			return err
		}
		answer, err := dialect.ParseReply(reply)
		if err != nil {
			return err
		}
		result, err = resultOf(answer.Recorded, answer.Woken)
		return err
	})
	return result, sent, err
}

// run sends the script, once: a pinned connection that broke is not replaced.
// EVAL and not EVALSHA: an act is rare, and this is one round trip and one
// permission in every case.
func (e *RedisExecutor) run(ctx context.Context, cn *redis.Conn, c dialect.Command) (any, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(deadline)/actShare, errTooSlow)
		defer cancel()
	}
	return cn.Eval(ctx, c.Script, c.Keys, c.Args...).Result()
}

// with opens the release connection to the master of the lock, for fn alone.
func (e *RedisExecutor) with(ctx context.Context, lock locksteward.Evidence, fn func(cn *redis.Conn) error) error {
	conn, err := connect.Open(e.cfg.Connect)
	if err != nil {
		return err
	}
	// What closing says changes nothing: the work was done before, or was not.
	defer func() { _ = conn.Close() }()
	master, err := conn.MasterFor(ctx, lock.Key)
	if err != nil {
		return err
	}
	if db := conn.DB(); db != lock.DB {
		return &databaseError{was: lock.DB, is: db}
	}
	// One connection for the look and the script: if it works for the first, the
	// second is not sent into a dead one, and it is never sent twice.
	cn := master.Client.Conn()
	defer func() { _ = cn.Close() }()
	return fn(cn)
}

func (e *RedisExecutor) execKeys(key string) []string {
	keys := make([]string, 0, len(e.cfg.MetaPrefixes))
	for _, prefix := range e.cfg.MetaPrefixes {
		keys = append(keys, record.Companion(prefix, record.KindExec, key))
	}
	return keys
}

// databaseError is a target that was given another database since the request.
type databaseError struct{ was, is int }

// Error returns the sentence.
func (e *databaseError) Error() string {
	return fmt.Sprintf("the lock is in database %d but the target is configured for database %d now; request again", e.was, e.is)
}

// isPermission says that the server's ACL refused a command, or one of a script.
func isPermission(err error) bool {
	return isReplyError(err) && (redis.HasErrorPrefix(err, "NOPERM") || strings.Contains(err.Error(), "user executing the script can't"))
}

// explain is an error in words for people, without secrets.
func explain(err error) string {
	if isPermission(err) && !redis.HasErrorPrefix(err, "NOPERM") {
		return "the server's ACL does not let this user do all that the script needs; grant what `locksteward acl` prints"
	}
	if own, ok := errors.AsType[*databaseError](err); ok {
		return own.Error()
	}
	return connect.Explain(err)
}

// resultOf is what the scripts' outcomes mean for a request.
func resultOf(o dialect.Outcome, woken int64) (Result, error) {
	switch o {
	case dialect.OutcomeReleased:
		return Result{State: locksteward.RequestReleased, WaitersWoken: woken, Outcome: releasedSentence(woken)}, nil
	case dialect.OutcomeAlreadyGone:
		return resultGone(), nil
	case dialect.OutcomeChanged:
		return resultChanged([]string{"it changed in the moment of the release"}), nil
	default:
		return Result{}, fmt.Errorf("unknown outcome %d in the record of the release", int64(o))
	}
}

func releasedSentence(woken int64) string {
	switch woken {
	case 0:
		return "Released: the lock was deleted."
	case 1:
		return "Released: the lock was deleted and 1 waiting client was told."
	default:
		return fmt.Sprintf("Released: the lock was deleted and %d waiting clients were told.", woken)
	}
}

func resultGone() Result {
	return Result{
		State:   locksteward.RequestAlreadyGone,
		Outcome: "Not released: the lock had ended by itself. Nothing was touched.",
	}
}

func resultChanged(diff []string) Result {
	return Result{
		State:       locksteward.RequestChanged,
		Outcome:     "Not released: the lock changed since the request. Nothing was touched.",
		Differences: diff,
	}
}

var _ Executor = (*RedisExecutor)(nil)
