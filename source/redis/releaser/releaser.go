// Package releaser frees locks of one Redis target, on standalone servers, Sentinel
// and Cluster: it reads a lock, compares it with the evidence of a request, and has
// one script compare once more and delete. It alone has a user that may write; see
// [ACL].
package releaser

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
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
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

// errTooSlow is the cause when a script takes longer than it may.
var errTooSlow = errors.New("the act took too long")

// Config is what a [Releaser] needs.
type Config struct {
	// Connect has the target's address and the release credentials.
	Connect connect.Config
	// Digest is the installation's key: evidence is compared by its digests.
	Digest locksteward.DigestKey
	// MetaPrefixes are where companions of locks may be; none is
	// record.DefaultPrefix.
	MetaPrefixes []string
}

// Releaser deletes locks on one target. It has a connection only while a method
// runs. It is safe for concurrent use. Make one with [New].
type Releaser struct {
	cfg Config
}

var _ source.Releaser = (*Releaser)(nil)

// New returns a releaser, or what is wrong with cfg. It does no I/O.
func New(cfg Config) (*Releaser, error) {
	if err := cfg.Connect.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.MetaPrefixes) == 0 {
		cfg.MetaPrefixes = []string{record.DefaultPrefix}
	}
	cfg.MetaPrefixes = slices.Clone(cfg.MetaPrefixes)
	return &Releaser{cfg: cfg}, nil
}

// Release reads the lock again, compares it with the evidence and runs the
// format's script, which compares once more and deletes. The script is sent once;
// if its answer is lost, the record that it left is read.
func (r *Releaser) Release(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	outcome, sent, err := r.act(ctx, req)
	if err == nil {
		return outcome, nil
	}
	if !sent {
		return source.Failed(explain(err)), nil
	}
	// From here on only the record knows.
	cause := err
	for {
		outcome, found, err := r.resolve(ctx, req)
		switch {
		case err == nil && !found && isReplyError(cause):
			// The server answered with an error and the script left no record: it
			// ended before it touched the lock.
			return source.Failed(explain(cause)), nil
		case err == nil && outcome.State == locksteward.RequestFailed:
			return source.Failed(explain(cause)), nil
		case err == nil:
			return outcome, nil
		case isPermission(cause) && isPermission(err):
			// Not even the record can be read, but a script that lacks a permission
			// ends before it touches the lock.
			return source.Failed(explain(cause)), nil
		}
		select {
		case <-ctx.Done():
			return source.Outcome{}, fmt.Errorf("execute release: %s; then: %s", explain(cause), explain(err))
		case <-time.After(resolvePause):
		}
	}
}

// Resolve reads the record of an earlier Release. If the server has none, the
// request is withdrawn there, so that it certainly never runs; and if moreover the
// lock is as it was, nothing was touched. Otherwise the outcome is unknown: the
// record may have been evicted or lost.
func (r *Releaser) Resolve(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	outcome, _, err := r.resolve(ctx, req)
	if err != nil {
		return source.Outcome{}, fmt.Errorf("resolve release: %s", explain(err))
	}
	return outcome, nil
}

// resolve is Resolve; found says that the server has a record.
func (r *Releaser) resolve(ctx context.Context, req locksteward.Request) (outcome source.Outcome, found bool, err error) {
	err = r.with(ctx, req.Evidence, func(cn *redis.Conn) error {
		reply, err := cn.Eval(ctx, resolveLua, r.execKeys(req.Evidence.Key), req.ID, formats.ExecTTL.Milliseconds()).Int64Slice()
		if err != nil {
			return err
		}
		if len(reply) != 3 {
			return fmt.Errorf("read record of release: %d numbers in the reply, want 3", len(reply))
		}
		if found = reply[0] == 1; found {
			outcome, err = outcomeOf(req.Evidence.Act, formats.Outcome(reply[1]), reply[2], source.ConfirmedByRecord)
			return err
		}
		now, err := r.read(ctx, cn, req.Evidence)
		if err != nil {
			return err
		}
		outcome = withdrawn(req.Evidence, now)
		return nil
	})
	return outcome, found, err
}

// act is one connection: read, compare, script. sent says that the script may
// have reached the server.
func (r *Releaser) act(ctx context.Context, req locksteward.Request) (outcome source.Outcome, sent bool, err error) {
	err = r.with(ctx, req.Evidence, func(cn *redis.Conn) error {
		var err error
		outcome, sent, err = r.actOn(ctx, cn, req)
		return err
	})
	return outcome, sent, err
}

func (r *Releaser) actOn(ctx context.Context, cn *redis.Conn, req locksteward.Request) (outcome source.Outcome, sent bool, err error) {
	command, now, err := r.command(ctx, cn, req)
	switch {
	case errors.Is(err, locksteward.ErrRefused):
		return source.Failed(err.Error()), false, nil
	case err != nil:
		return source.Outcome{}, false, err
	case now != nil && !now.Found:
		return source.Outcome{State: locksteward.RequestAlreadyGone}, false, nil
	case now != nil && len(now.differences) > 0:
		return source.Outcome{State: locksteward.RequestChanged, Differences: now.differences}, false, nil
	}
	reply, err := r.run(ctx, cn, command)
	if err != nil {
		// With NOPERM the server refused before it ran anything.
		return source.Outcome{}, !redis.HasErrorPrefix(err, "NOPERM"), err
	}
	answer, err := formats.ParseReply(reply)
	if err != nil {
		return source.Outcome{}, true, err
	}
	by := source.ConfirmedByAnswer
	if answer.Outcome == formats.OutcomeRepeated { // it ran before: this is what it left
		by = source.ConfirmedByRecord
	}
	outcome, err = outcomeOf(req.Evidence.Act, answer.Recorded, answer.Woken, by)
	return outcome, true, err
}

// command returns the script for a request and what was read of the lock; nil for
// an act on what an earlier one left, which the script alone compares. There is no
// script where nothing is found or it is not what was frozen. A refusal of the
// format comes with what was read.
func (r *Releaser) command(ctx context.Context, cn *redis.Conn, req locksteward.Request) (formats.Command, *reading, error) {
	ev := req.Evidence
	what := formats.Release{RequestID: req.ID, ExpireAt: ev.ExpireAt, HolderAlive: ev.HolderAlive, Undo: ev.Undo}
	switch ev.Act {
	case locksteward.ActUndo, locksteward.ActLift:
		prefix, err := r.prefixOf(ctx, cn, ev.Key, ev.Of)
		if err != nil {
			return formats.Command{}, nil, err
		}
		what.MetaPrefix = prefix
		follow := formats.Undo
		if ev.Act == locksteward.ActLift {
			follow = formats.Lift
		}
		command, err := follow(ev.Library, ev.Key, ev.Of, what)
		return command, nil, err
	}
	now, err := r.read(ctx, cn, ev)
	if err != nil {
		return formats.Command{}, nil, err
	}
	if !now.Found {
		return formats.Command{}, &now, nil
	}
	if now.differences = source.Differences(ev, now.evidence); len(now.differences) > 0 {
		return formats.Command{}, &now, nil
	}
	d, ok := formats.Get(ev.Library)
	if !ok {
		return formats.Command{}, &now, &formats.Refusal{Key: ev.Key, Format: ev.Library, Why: formats.WhyNever(ev.Library)}
	}
	what.MetaPrefix = now.MetaPrefix
	if ev.Placeholder > 0 {
		what.Placeholder = ev.Placeholder + source.PlaceholderMargin
	}
	command, err := d.Release(now.Sample, what)
	return command, &now, err
}

// prefixOf is that of the companions where an earlier request left its record.
func (r *Releaser) prefixOf(ctx context.Context, cn *redis.Conn, key, of string) (string, error) {
	if len(r.cfg.MetaPrefixes) > 1 {
		for i, exec := range r.execKeys(key) {
			was, err := cn.HMGet(ctx, exec, "request", "undo").Result()
			if err != nil {
				return "", err
			}
			if was[0] == of || was[1] == of {
				return r.cfg.MetaPrefixes[i], nil
			}
		}
	}
	return r.cfg.MetaPrefixes[0], nil
}

// run sends the script, once: a pinned connection that broke is not replaced.
// EVAL and not EVALSHA: an act is rare, and this is one round trip and one
// permission in every case.
func (r *Releaser) run(ctx context.Context, cn *redis.Conn, c formats.Command) (any, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(deadline)/actShare, errTooSlow)
		defer cancel()
	}
	return cn.Eval(ctx, c.Script, c.Keys, c.Args...).Result()
}

// with opens the release connection to the master of the lock, for fn alone.
func (r *Releaser) with(ctx context.Context, lock locksteward.Evidence, fn func(cn *redis.Conn) error) error {
	cfg := r.cfg.Connect
	cfg.Writes = true
	conn, err := connect.Open(cfg)
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
	// One connection for the reading and the script: if it works for the first, the
	// second is not sent into a dead one, and it is never sent twice.
	cn := master.Client.Conn()
	defer func() { _ = cn.Close() }()
	return fn(cn)
}

func (r *Releaser) execKeys(key string) []string {
	keys := make([]string, 0, len(r.cfg.MetaPrefixes))
	for _, prefix := range r.cfg.MetaPrefixes {
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
	return isReplyError(err) && (redis.HasErrorPrefix(err, "NOPERM") ||
		strings.Contains(err.Error(), "ACL failure in script") || // Redis 7.2 and later, Valkey
		strings.Contains(err.Error(), "user executing the script can't")) // before
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
