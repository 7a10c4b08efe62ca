package redis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Bounds of one look at one key.
const (
	maxString       = 4096 // bytes read of a string
	maxMembers      = 64   // of any other type, else it is not read
	maxHash         = 16 << 10
	maxWaiters      = 64 << 10 // bytes of the records of who waits for one lock
	maxAuxiliary    = 64       // bytes read of a string beside a lock
	maxPipeline     = 100
	subjectsPerLook = 96
)

// errMoved is a key that is not where it was a moment ago: its slot is moving.
var errMoved = errors.New("hash slots moved during the pass")

// pipeliner is a client or a connection.
type pipeliner interface{ Pipeline() redis.Pipeliner }

// reader reads keys of one master in bounded pipelines.
type reader struct {
	client pipeliner
	node   string
	// clockRead is called with what the server's clock showed between two moments.
	clockRead func(node string, now, began, ended time.Time)
	caps      *caps
	prefixes  []string
	// noIdle and noExpireTime say that this server has no such thing: it keeps
	// frequencies instead, it is older than 7.0.
	noIdle, noExpireTime bool
	// along are commands that go along with the next ones: a round trip less.
	along []redis.Cmder
	// call runs one pipeline of n commands: it waits for the budget before and
	// books what it took.
	call func(ctx context.Context, n int, pipeline func() error) error
}

// exec runs commands in order, in pipelines of at most 100. Its error is one
// that makes all replies worthless; errors about single commands stay with them
// and are judged by [judge].
func (r *reader) exec(ctx context.Context, cmds []redis.Cmder) error {
	if len(cmds) == 0 {
		return nil
	}
	if len(r.along) > 0 {
		cmds, r.along = append(r.along, cmds...), nil
	}
	for chunk := range slices.Chunk(cmds, maxPipeline) {
		err := r.call(ctx, len(chunk), func() error {
			pipe := r.client.Pipeline()
			if err := pipe.BatchProcess(ctx, chunk...); err != nil {
				return err
			}
			began := time.Now()
			// The first error may be about one command only: each has its own.
			_, _ = pipe.Exec(ctx)
			ended := time.Now()
			for _, cmd := range chunk {
				if err := cmd.Err(); err != nil && (fatal(err) || isTime(cmd)) {
					return err // what has no time is no reading
				}
				if now, ok := cmd.(*redis.TimeCmd); ok && now.Err() == nil {
					r.clockRead(r.node, now.Val(), began, ended)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func isTime(cmd redis.Cmder) bool {
	_, is := cmd.(*redis.TimeCmd)
	return is
}

// flush runs what was to go along with others, if there were none.
func (r *reader) flush(ctx context.Context) error {
	cmds := r.along
	r.along = nil
	return r.exec(ctx, cmds)
}

// fatal says that an error is not about the one command that got it: the
// connection broke, or the server would answer the same to all.
func fatal(err error) bool {
	if errors.Is(err, redis.Nil) {
		return false
	}
	e, ok := errors.AsType[redis.Error](err)
	if !ok {
		return true
	}
	word, _, _ := strings.Cut(e.Error(), " ")
	switch word {
	case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "NOAUTH", "WRONGPASS", "OOM":
		return true
	}
	return false
}

// verdict is what a command's own error means for the key.
type verdict int

const (
	fine      verdict = iota
	forbidden         // the ACL does not let us read this key
	without           // the server or the ACL does not have this command for us
	changed           // the key is of another type now
	moved             // the key's slot is moving
	odd               // anything else
)

func judge(err error) verdict {
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return fine
	case redis.HasErrorPrefix(err, "NOPERM"):
		// Redis to 7.2; Redis 8 and Valkey 8.
		if strings.Contains(err.Error(), "access one of the keys") || strings.Contains(err.Error(), "access a key") {
			return forbidden
		}
		return without
	case redis.HasErrorPrefix(err, "unknown command"), redis.HasErrorPrefix(err, "Unknown subcommand"),
		redis.HasErrorPrefix(err, "unknown subcommand"):
		return without
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return changed
	case redis.HasErrorPrefix(err, "MOVED"), redis.HasErrorPrefix(err, "ASK"), redis.HasErrorPrefix(err, "TRYAGAIN"):
		return moved
	default:
		return odd
	}
}

// noWrites says that a server which cannot save what it has refused a command. It
// refuses PING too (processCommand in src/server.c), and no other that reads: it
// answers, which is all that a PING asks.
func noWrites(err error) bool { return redis.HasErrorPrefix(err, "MISCONF") }

// usable says whether a command's reply can be used. false without an error
// means that this key cannot be read now; an error, that the look failed.
func (r *reader) usable(err error) (bool, error) {
	switch judge(err) {
	case fine:
		return true, nil
	case changed:
		return false, nil
	case forbidden:
		r.caps.forbid(err)
		return false, nil
	case moved:
		return false, errMoved
	default:
		return false, err
	}
}

// tooLong says that text was too long to be read, and counts it.
func (r *reader) tooLong(text string) bool {
	_, long := respcheck.Long(text)
	if long {
		r.caps.tooLong()
	}
	return long
}

// anyTooLong says that a field or its value was.
func (r *reader) anyTooLong(fields map[string]string) bool {
	for name, value := range fields {
		if r.tooLong(name) || r.tooLong(value) {
			return true
		}
	}
	return false
}

// Commands, each with the reply's type.

func typeCmd(ctx context.Context, key string) *redis.StatusCmd {
	return redis.NewStatusCmd(ctx, "type", key)
}

func idleCmd(ctx context.Context, key string) *redis.DurationCmd {
	return redis.NewDurationCmd(ctx, time.Second, "object", "idletime", key)
}

func pttlCmd(ctx context.Context, key string) *redis.DurationCmd {
	return redis.NewDurationCmd(ctx, time.Millisecond, "pttl", key)
}

func expireTimeCmd(ctx context.Context, key string) *redis.IntCmd {
	return redis.NewIntCmd(ctx, "pexpiretime", key)
}

func sizeCmd(ctx context.Context, command, key string) *redis.IntCmd {
	return redis.NewIntCmd(ctx, command, key)
}

func rangeCmd(ctx context.Context, key string) *redis.StringCmd {
	return redis.NewStringCmd(ctx, "getrange", key, 0, maxString-1)
}

// metaCmd reads metadata, one byte more than is wanted at most.
func metaCmd(ctx context.Context, name string) *redis.StringCmd {
	return redis.NewStringCmd(ctx, "getrange", name, 0, record.MaxMeta)
}

// memoryCmd asks for the exact size of a hash of at most maxMembers members,
// and looks at no more than that many of a larger one.
func memoryCmd(ctx context.Context, key string) *redis.IntCmd {
	return redis.NewIntCmd(ctx, "memory", "usage", key, "samples", maxMembers)
}

func fieldsCmd(ctx context.Context, key string) *redis.MapStringStringCmd {
	return redis.NewMapStringStringCmd(ctx, "hgetall", key)
}

// membersCmd reads the members of a sorted set, a list or a set, one more than
// is wanted at most where the command can say so; nil for other types.
func membersCmd(ctx context.Context, typ, key string) redis.Cmder {
	switch typ {
	case "zset":
		return redis.NewZSliceCmd(ctx, "zrange", key, 0, maxMembers, "withscores")
	case "list":
		return redis.NewStringSliceCmd(ctx, "lrange", key, 0, maxMembers)
	case "set":
		return redis.NewStringSliceCmd(ctx, "smembers", key)
	default:
		return nil
	}
}

// membersOf returns what membersCmd read: sets, which have no order, sorted.
func membersOf(cmd redis.Cmder, typ string) []formats.Member {
	var out []formats.Member
	switch c := cmd.(type) {
	case *redis.ZSliceCmd:
		for _, z := range c.Val() {
			name, _ := z.Member.(string)
			out = append(out, formats.Member{Name: name, Score: z.Score})
		}
	case *redis.StringSliceCmd:
		for _, name := range c.Val() {
			out = append(out, formats.Member{Name: name})
		}
		if typ == "set" {
			slices.SortFunc(out, func(a, b formats.Member) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	return out
}

func timeCmd(ctx context.Context) *redis.TimeCmd { return redis.NewTimeCmd(ctx, "time") }
