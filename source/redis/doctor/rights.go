package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// probeKey is a name under which nothing is.
const probeKey = "locksteward:acl-probe"

// questions are the commands of the scanner's list with arguments that change
// nothing, on a connection of their own. What the tracking check does for real is
// not among them, nor logging in.
var questions = []struct {
	name string
	args []any
	// without says what is missing without it; empty: the target cannot be swept.
	without string
}{
	{"ping", []any{"ping"}, ""},
	{"scan", []any{"scan", "0", "count", "1"}, ""},
	{"type", []any{"type", probeKey}, ""},
	{"pttl", []any{"pttl", probeKey}, ""},
	{"getrange", []any{"getrange", probeKey, "0", "0"}, ""},
	{"strlen", []any{"strlen", probeKey}, ""},
	{"exists", []any{"exists", probeKey}, ""},
	{"time", []any{"time"}, ""},
	{"hlen", []any{"hlen", probeKey}, "hash locks and metadata are not read"},
	{"hgetall", []any{"hgetall", probeKey}, "hash locks and metadata are not read"},
	{"hmget", []any{"hmget", probeKey, "id"}, "lost locks are not reported"},
	{"zcard", []any{"zcard", probeKey}, "locks that are sorted sets are not read"},
	{"zrange", []any{"zrange", probeKey, "0", "0"}, "locks that are sorted sets, and waiters, are not read"},
	{"scard", []any{"scard", probeKey}, "locks that are sets are not read"},
	{"smembers", []any{"smembers", probeKey}, "locks that are sets are not read"},
	{"llen", []any{"llen", probeKey}, "queues of waiters are not counted"},
	{"lrange", []any{"lrange", probeKey, "0", "0"}, "locks that are lists are not read"},
	{"pexpiretime", []any{"pexpiretime", probeKey}, "expiry times are computed from TTLs"},
	{"info", []any{"info", "server"}, "failovers, restarts, evictions and missing persistence go unnoticed"},
	{"object|idletime", []any{"object", "idletime", probeKey}, "ages of locks first seen begin at 0"},
	{"memory|usage", []any{"memory", "usage", probeKey}, "hash locks and metadata are listed and not read"},
	{"pubsub|numsub", []any{"pubsub", "numsub", "locksteward:instance:x"}, "no holder is presumed dead for its silence"},
	{"client|trackinginfo", []any{"client", "trackinginfo"}, "no watch: changes are seen by sweeps alone"},
}

// rights asks of each master whether the scanner may do what it must, and no
// more.
func (e *exam) rights(ctx context.Context) {
	for _, m := range e.masters {
		client := e.conn.Dedicated(ctx, m.Addr, "-doctor", nil)
		e.rightsOn(ctx, m, client)
		_ = client.Close() // it was only asked
	}
}

func (e *exam) rightsOn(ctx context.Context, m connect.Master, client *redis.Client) {
	verdict, err := acl.DryRun(ctx, client, e.user, "ping")
	if err != nil {
		e.report.add("rights", Fail, m.Addr, "cannot be asked", connect.Explain(err))
		return
	}
	may, how := e.attempt, "by trying each command"
	if verdict != acl.Unknown {
		may, how = e.dryRun, "by a dry run of each command"
	}
	fatal, missing, closed := []string{}, []string{}, []string{}
	for _, q := range questions {
		v, err := may(ctx, client, q.args)
		switch {
		case err != nil:
			e.report.add("rights", Fail, m.Addr, "cannot be asked", connect.Explain(err))
			return
		case v == acl.Refused && q.without == "":
			fatal = append(fatal, upper(q.name))
		case v == acl.Refused:
			missing = append(missing, upper(q.name)+": "+q.without)
		}
	}
	for _, c := range e.Classes.All() {
		for _, glob := range c.Match {
			if v, err := may(ctx, client, []any{"getrange", example(glob), "0", "0"}); err == nil && v == acl.KeyRefused {
				closed = append(closed, glob+" of class "+c.Name)
			}
		}
	}
	const grant = "grant what `locksteward acl` prints"
	if len(fatal) > 0 {
		e.report.add("rights", Fail, m.Addr, "user "+orDefault(e.user)+" may not "+strings.Join(fatal, ", ")+", without which nothing can be swept", grant)
	}
	if len(missing) > 0 {
		e.report.add("rights", Warn, m.Addr, "user "+orDefault(e.user)+" may not "+strings.Join(missing, "; "), grant)
	}
	if len(closed) > 0 {
		e.report.add("rights", Warn, m.Addr, "user "+orDefault(e.user)+" may not read the values of "+strings.Join(closed, ", "), "grant these patterns, or what `locksteward acl` prints")
	}
	if len(fatal)+len(missing)+len(closed) == 0 {
		e.report.add("rights", OK, m.Addr, fmt.Sprintf("user %s may do all that looking needs (%s)", orDefault(e.user), how), "")
	}
	e.excess(ctx, m, client)
}

func (e *exam) excess(ctx context.Context, m connect.Master, client *redis.Client) {
	r, err := acl.Excess(ctx, client, e.user)
	switch {
	case err != nil:
		e.report.add("least-rights", Warn, m.Addr, "cannot be asked", connect.Explain(err))
	case !r.Known:
		e.report.add("least-rights", Warn, m.Addr, "the server has no ACLs, or does not say", "nothing keeps this agent from writing but its own code: update the server to 6.2 or later")
	case len(r.Excess) > 0:
		e.report.add("least-rights", Warn, m.Addr, firstHalf(r.Warning(e.user)), "log in as a user with the rights that `locksteward acl` prints")
	case r.How == "attempt":
		e.report.add("least-rights", OK, m.Addr, "user "+orDefault(e.user)+" may not write (one write was tried; grant +acl|dryrun for an answer about each command)", "")
	default:
		e.report.add("least-rights", OK, m.Addr, "user "+orDefault(e.user)+" may do nothing that harms (dry run)", "")
	}
}

func firstHalf(warning string) string {
	found, _, _ := strings.Cut(warning, "; ")
	return found
}

func (e *exam) dryRun(ctx context.Context, client *redis.Client, args []any) (acl.Verdict, error) {
	return acl.DryRun(ctx, client, e.user, args...)
}

// attempt runs the command. Errors of the server other than a refusal are about
// what it was asked of: it may be asked.
func (e *exam) attempt(ctx context.Context, client *redis.Client, args []any) (acl.Verdict, error) {
	err := client.Do(ctx, args...).Err()
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return acl.Allowed, nil
	case !isReply(err):
		return acl.Unknown, err
	case denied(err) && strings.Contains(err.Error(), "to run"):
		return acl.Refused, nil
	case denied(err):
		return acl.KeyRefused, nil
	case isMissingCommand(err):
		return acl.Unknown, nil // the version check says what is missing
	default:
		return acl.Allowed, nil
	}
}

// example is a name that a pattern matches.
func example(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteByte(glob[i])
		case c == '*' || c == '?':
			b.WriteByte('x')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func upper(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "|", " ")) }

// releaser looks whether the releaser can log in and run a script.
func (e *exam) releaser(ctx context.Context) {
	if e.Release == nil {
		return
	}
	if !slices.ContainsFunc(e.Classes.All(), releasable) {
		e.report.add("releaser", Warn, "", "release credentials are there, but no class may be released", "set release: approve on a class, or take release_credentials away")
		return
	}
	conn, err := connect.Open(*e.Release)
	if err != nil {
		e.report.add("releaser", Fail, "", "its settings are wrong: "+oneLine(err.Error()), "correct release_credentials")
		return
	}
	defer func() { _ = conn.Close() }()
	masters, err := conn.Masters(ctx)
	if err != nil {
		e.report.add("releaser", Fail, "", "the releaser cannot log in", connect.Explain(err))
		return
	}
	for _, m := range masters {
		e.releaserOn(ctx, m)
	}
}

func (e *exam) releaserOn(ctx context.Context, m connect.Master) {
	user := orDefault(e.Release.Username)
	if err := m.Client.Eval(ctx, "return 1", nil).Err(); err != nil {
		e.report.add("releaser", Fail, m.Addr, "user "+user+" cannot run the scripts of a release", connect.Explain(err))
		return
	}
	closed := []string{}
	for _, c := range e.Classes.All() {
		for _, glob := range c.Match {
			// TYPE reads and DEL of nothing deletes nothing, but a name may be there by
			// chance: it is only looked at.
			if err := m.Client.Type(ctx, example(glob)).Err(); releasable(c) && denied(err) {
				closed = append(closed, glob+" of class "+c.Name)
			}
		}
	}
	if len(closed) > 0 {
		e.report.add("releaser", Fail, m.Addr, "user "+user+" may not touch "+strings.Join(closed, ", "), "grant what `locksteward acl --config` prints")
		return
	}
	e.report.add("releaser", OK, m.Addr, "user "+user+" runs scripts and reaches the locks of every class that may be released", "")
}

func releasable(c class.Class) bool { return c.Releasable() }
