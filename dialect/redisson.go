package dialect

import (
	_ "embed" // for the script
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Redisson is the name of the dialect of Redisson's RLock (Java).
const Redisson = "redisson"

// redissonRenewEvery is a third of lockWatchdogTimeout's default.
const redissonRenewEvery = 10 * time.Second

// redissonFree is LockPubSub's message for "the lock was released".
const redissonFree = "0"

//go:embed redisson.lua
var redissonLua string

// redissonDialect is a hash with one field <client uuid>:<thread id> and the
// re-entrancy count as its value: RLock, spin, fenced and non-reentrant locks.
type redissonDialect struct{}

// Name returns "redisson".
func (redissonDialect) Name() string { return Redisson }

// Recognise decodes a plain RLock. Client and thread are the same in each
// acquisition of that thread, so the identity is a lineage.
func (redissonDialect) Recognise(s Sample) (Decoded, bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) != 1 || s.Size != 1 {
		return Decoded{}, false
	}
	for field, value := range s.Fields {
		client, thread, ok := redissonField(field)
		count, counted := redissonCount(value)
		if !ok || !counted {
			return Decoded{}, false
		}
		return Decoded{
			Dialect:    Redisson,
			Confidence: locksteward.ConfidenceHigh,
			Identity:   lineage(s),
			Holder:     locksteward.Holder{Instance: client, Session: thread},
			Count:      count,
			Waiters:    -1, // subscribers of a channel
			TokenKind:  "a Redisson client's UUID and a thread id",
			RenewEvery: redissonRenewEvery,
		}, true
	}
	return Decoded{}, false
}

// Release deletes the hash if it has the same fields and counts, and publishes
// the release to the waiters.
func (redissonDialect) Release(s Sample, r Release) (Command, error) {
	p, err := planRelease(Redisson, s, r)
	if err != nil {
		return Command{}, err
	}
	args := []any{redissonChannel(s.Key), redissonFree}
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		args = append(args, field, s.Fields[field])
	}
	return p.command(redissonLua, nil, args...), nil
}

// redissonChannel is RedissonLock's channel: the name goes into braces unless it
// has an opening brace already.
func redissonChannel(name string) string {
	if strings.Contains(name, "{") {
		return "redisson_lock__channel:" + name
	}
	return "redisson_lock__channel:{" + name + "}"
}

// redissonField splits <uuid>:<thread id>.
func redissonField(field string) (client, thread string, ok bool) {
	client, thread, ok = strings.Cut(field, ":")
	if !ok || !isLowerUUID(client) || !isDigits(thread) || len(thread) > 19 {
		return "", "", false
	}
	return client, thread, true
}

// redissonCount reads a re-entrancy count, which is never 0 in Redis.
func redissonCount(value string) (int64, bool) {
	if !isDigits(value) {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil && n > 0
}

var _ Dialect = redissonDialect{}
