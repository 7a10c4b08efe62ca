package formats

import (
	_ "embed" // for the scripts
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// What Redisson's locks have in common (redisson/redisson,
// org/redisson/{RedissonBaseLock,RedissonObject,pubsub/LockPubSub}.java).

// redissonRenewEvery is a third of lockWatchdogTimeout's default.
const redissonRenewEvery = 10 * time.Second

// Messages of LockPubSub: the lock was released, and all who wait may try.
const (
	redissonFree    = "0"
	redissonFreeAll = "1"
)

const redissonKind = "a Redisson client's UUID and a thread id"

// redissonPrefixed is RedissonObject.prefixName: the name goes into braces
// unless it has an opening brace already.
func redissonPrefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// redissonSuffixed is RedissonObject.suffixName.
func redissonSuffixed(name, suffix string) string {
	if strings.Contains(name, "{") {
		return name + ":" + suffix
	}
	return "{" + name + "}:" + suffix
}

// redissonBare is the inverse of [redissonSuffixed] and [redissonPrefixed] on
// what they put before or behind their words.
func redissonBare(name string) string {
	if len(name) > 2 && name[0] == '{' && name[len(name)-1] == '}' && !strings.Contains(name[1:], "{") {
		return name[1 : len(name)-1]
	}
	return name
}

func redissonChannel(name string) string { return redissonPrefixed("redisson_lock__channel", name) }
func redissonQueue(name string) string   { return redissonPrefixed("redisson_lock_queue", name) }
func redissonTimeout(name string) string { return redissonPrefixed("redisson_lock_timeout", name) }
func redissonToken(name string) string   { return redissonPrefixed("redisson_lock_token", name) }

// sameSlot says that a script may use all keys on a Cluster.
func sameSlot(keys ...string) bool {
	for _, key := range keys[1:] {
		if record.Slot(key) != record.Slot(keys[0]) {
			return false
		}
	}
	return true
}

// redissonOwner is one owner in a hash: a thread of a client.
type redissonOwner struct{ client, thread string }

func (o redissonOwner) String() string { return o.client + ":" + o.thread }

func (o redissonOwner) holder() locksteward.Holder {
	return locksteward.Holder{Instance: o.client, Session: o.thread}
}

// redissonField splits <uuid>:<thread id>.
func redissonField(field string) (redissonOwner, bool) {
	client, thread, ok := strings.Cut(field, ":")
	if !ok || !isLowerUUID(client) || !isDigits(thread) || len(thread) > 19 {
		return redissonOwner{}, false
	}
	return redissonOwner{client, thread}, true
}

// redissonCount reads a re-entrancy count, which is never 0 in Redis.
func redissonCount(value string) (int64, bool) {
	if !isDigits(value) {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil && n > 0
}

// redissonHash decodes a hash with one owner and its count: RLock, spin, fair,
// fenced and non-reentrant locks. Client and thread are the same in each
// acquisition of that thread, so the identity is a lineage.
func redissonHash(s Sample) (Decoded, bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) != 1 || s.Size != 1 {
		return Decoded{}, false
	}
	for field, value := range s.Fields {
		owner, ok := redissonField(field)
		count, counted := redissonCount(value)
		if ok && counted {
			return redissonDecoded(s, owner, count), true
		}
	}
	return Decoded{}, false
}

func redissonDecoded(s Sample, owner redissonOwner, count int64) Decoded {
	return Decoded{
		Confidence: locksteward.ConfidenceHigh,
		Identity:   lineage(s),
		Holder:     owner.holder(),
		Count:      count,
		Waiters:    -1, // subscribers of a channel
		TokenKind:  redissonKind,
		RenewEvery: redissonRenewEvery,
	}
}

// redissonAsks names the keys that tell a fair or fenced lock from a plain one.
func redissonAsks(s Sample) []Ask {
	if _, ok := redissonHash(s); !ok {
		return nil
	}
	return []Ask{{Key: redissonQueue(s.Key), Type: typeList}, {Key: redissonToken(s.Key), Type: typeString}}
}

// fieldArgs are all fields and values of a hash, in the order of their names.
func fieldArgs(s Sample) []any {
	args := make([]any, 0, 2*len(s.Fields))
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		args = append(args, field, s.Fields[field])
	}
	return args
}
