package acl

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Rights is what a user may do beyond what it needs.
type Rights struct {
	// Known is false where the server would not say: it has no ACLs, or a proxy
	// stands before it.
	Known bool
	// All says that nothing that was asked is refused: it may do everything.
	All bool
	// Excess are commands that it may run and does not need, sorted by how bad
	// that is, as an ACL writes them.
	Excess []string
	// How is "dry run" (each command was asked of the server) or "attempt" (one
	// write was tried that cannot be carried out, so that only writing is known).
	How string
}

// Doer runs one command: a *redis.Client or *redis.Conn.
type Doer interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// probeKey is the key that questions name. Nothing is ever written there.
const probeKey = "locksteward:acl-probe"

// probes are what no scanner needs and what does harm: at most one of a kind. The
// rest of what a server can do is compared by a test.
var probes = []struct {
	name string
	args []any
}{
	{"flushall", []any{"flushall"}},
	{"flushdb", []any{"flushdb"}},
	{"del", []any{"del", probeKey}},
	{"unlink", []any{"unlink", probeKey}},
	{"set", []any{"set", probeKey, "x"}},
	{"rename", []any{"rename", probeKey, probeKey}},
	{"expire", []any{"expire", probeKey, "1"}},
	{"pexpire", []any{"pexpire", probeKey, "1"}},
	{"persist", []any{"persist", probeKey}},
	{"hset", []any{"hset", probeKey, "f", "x"}},
	{"lpush", []any{"lpush", probeKey, "x"}},
	{"zadd", []any{"zadd", probeKey, "1", "x"}},
	{"restore", []any{"restore", probeKey, "0", "x"}},
	{"eval", []any{"eval", "return 1", "0"}},
	{"function|load", []any{"function", "load", "x"}},
	{"script|load", []any{"script", "load", "x"}},
	{"config|set", []any{"config", "set", "maxmemory", "0"}},
	{"config|get", []any{"config", "get", "requirepass"}},
	{"acl|setuser", []any{"acl", "setuser", "x"}},
	{"module|load", []any{"module", "load", "x"}},
	{"shutdown", []any{"shutdown"}},
	{"debug", []any{"debug", "jmap"}},
	{"replicaof", []any{"replicaof", "no", "one"}},
	{"cluster|failover", []any{"cluster", "failover"}},
	{"client|kill", []any{"client", "kill", "127.0.0.1:1"}},
	{"monitor", []any{"monitor"}},
	{"keys", []any{"keys", "*"}},
	{"publish", []any{"publish", "x", "x"}},
}

// Excess asks whether the user that rdb is logged in with may do what a user of
// Locksteward that only reads does not need. Nothing is written: with ACL DRYRUN
// (Redis 7.0, and granted by [Scanner]) the server only says what it would do, and
// leaves no trace; else one SET is tried that is wrong in itself, so that it is
// either refused or a syntax error. That refusal is an entry in ACL LOG. user is
// the name that rdb logs in with, "" for the default one.
func Excess(ctx context.Context, rdb Doer, user string) (Rights, error) {
	if user == "" {
		user = "default"
	}
	out := Rights{Known: true, How: "dry run", All: true}
	for _, p := range probes {
		v, err := dryRun(ctx, rdb, user, p.args)
		switch {
		case errors.Is(err, errNoDryRun):
			return attempt(ctx, rdb)
		case err != nil:
			return Rights{}, err
		case v == Allowed || v == KeyRefused: // another key would do
			out.Excess = append(out.Excess, p.name)
			out.All = out.All && v == Allowed
		case v == Refused:
			out.All = false
		}
	}
	return out, nil
}

// Verdict is what a dry run says.
type Verdict string

// Verdicts of [DryRun].
const (
	Unknown    Verdict = ""            // the server does not say, or has no such command
	Allowed    Verdict = "allowed"     // it would be carried out
	Refused    Verdict = "refused"     // the command is not granted
	KeyRefused Verdict = "key refused" // it is, but not with these keys or channels
)

// errNoDryRun is a server that has no ACL DRYRUN for us.
var errNoDryRun = errors.New("ACL DRYRUN is not there or not granted")

// dryRun asks the server whether user may run a command.
func dryRun(ctx context.Context, rdb Doer, user string, args []any) (Verdict, error) {
	reply, err := rdb.Do(ctx, append([]any{"acl", "dryrun", user}, args...)...).Text()
	switch {
	case err == nil && reply == "OK":
		return Allowed, nil
	case err == nil && strings.Contains(reply, "to run"):
		return Refused, nil
	case err == nil:
		return KeyRefused, nil
	case !isReply(err):
		return Unknown, err
	case denied(err), has(err, "unknown"), has(err, "dryrun"), has(err, "user"):
		return Unknown, errNoDryRun
	default: // "Command 'x' not found", another number of arguments
		return Unknown, nil
	}
}

// DryRun asks the server whether the user that rdb is logged in with, "" for the
// default one, may run a command. No trace is left, unless ACL DRYRUN itself is
// refused: then, as where the server has none, the verdict is [Unknown]. An error
// is a server that did not answer.
func DryRun(ctx context.Context, rdb Doer, user string, args ...any) (Verdict, error) {
	if user == "" {
		user = "default"
	}
	v, err := dryRun(ctx, rdb, user, args)
	if errors.Is(err, errNoDryRun) {
		return Unknown, nil
	}
	return v, err
}

// attempt tries the one command that tells most of those who may too much. It is
// checked for rights before its arguments are, and its arguments are wrong.
func attempt(ctx context.Context, rdb Doer) (Rights, error) {
	err := rdb.Do(ctx, "set", probeKey, "x", "not-an-option").Err()
	out := Rights{Known: true, How: "attempt"}
	switch {
	case err != nil && !isReply(err):
		return Rights{}, err
	case has(err, "unknown command"):
		return Rights{}, nil
	case denied(err) && has(err, "to run"):
		return out, nil
	case denied(err): // the key was refused, the command was not
		out.Excess = []string{"set"}
		return out, nil
	}
	out.Excess = []string{"set"}
	// Who may write under any name may well do everything; asking costs nothing
	// now.
	out.All = rdb.Do(ctx, "acl", "whoami").Err() == nil
	return out, nil
}

func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// denied says that the server's ACL refused a command or a key.
func denied(err error) bool { return redis.HasErrorPrefix(err, "NOPERM") }

func has(err error, text string) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), text)
}

// Warning is the sentence about a user that has more rights than it needs, ""
// for one that does not.
func (r Rights) Warning(user string) string {
	if !r.Known || len(r.Excess) == 0 {
		return ""
	}
	if user == "" {
		user = "default"
	}
	what := "everything"
	if !r.All {
		list := r.Excess
		rest := ""
		if len(list) > 6 {
			list, rest = list[:6], ", …"
		}
		what = strings.ToUpper(strings.ReplaceAll(strings.Join(list, ", "), "|", " ")) + rest
	}
	return "the Redis user " + user + " may do " + what + ", and looking needs none of it; make one with what `locksteward acl` prints"
}
