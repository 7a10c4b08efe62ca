package formats

import (
	_ "embed" // for the scripts
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Redisson is the name of the format of Redisson's RLock (Java).
const Redisson = "redisson"

// Files of redisson/redisson below org/redisson. Keys, fields and channels are in
// RedissonBaseLock.java, RedissonObject.java and pubsub/LockPubSub.java.
var (
	//go:embed redisson.lua
	redissonLua string
	//go:embed redisson_fair.lua
	redissonFairLua string
	//go:embed redisson_fenced.lua
	redissonFencedLua string
)

const (
	// redissonRenewEvery is a third of lockWatchdogTimeout's default.
	redissonRenewEvery = 10 * time.Second
	// redissonPerLease is how many renewals the watchdog makes per lease, whatever
	// lockWatchdogTimeout is set to.
	redissonPerLease = 3

	redissonKind = "a Redisson client's UUID and a thread id"

	// Messages of LockPubSub: the lock was released, and all waiters may try.
	redissonFree    = "0"
	redissonFreeAll = "1"
)

// redissonFormats: fair and fenced locks are a plain lock with auxiliary keys, so
// they come before it.
var redissonFormats = []*Format{
	// Fair lock: the hash of a plain one, and the waiters in a list, in their order,
	// with the time until which each is believed in a sorted set. Neither has a TTL.
	// Each waiter listens on a channel of its own. Known by its queue, so only while
	// somebody waits, or by the name of a lock of one element (`{map}:<hash>:fairlock`).
	// Source: RedissonFairLock.java.
	{
		Name: "redisson-fair",
		Type: typeHash,
		decode: func(s Sample) (Decoded, bool) {
			d, ok := redissonHash(s)
			queue, waits := s.Auxiliary[redissonQueue(s.Key)]
			if !ok || !waits && !isRedissonElement(s.Key, ":fairlock") {
				return Decoded{}, false
			}
			d.Waiters = int(queue.Size)
			return d, true
		},
		RenewEvery: redissonRenewEvery,
		Facts:      locksteward.LibraryFacts{RenewalsPerLease: redissonPerLease},
		release: func(s Sample, p plan) (Command, error) {
			queue, timeout := redissonQueue(s.Key), redissonTimeout(s.Key)
			if !sameSlot(s.Key, queue, timeout) {
				return Command{}, p.refuse("its queue is in another slot of a Cluster, so one script cannot wake who waits")
			}
			args := append([]any{redissonChannel(s.Key), redissonFree}, fieldArgs(s)...)
			return p.command(redissonFairLua, []string{queue, timeout}, args...), nil
		},
		placeholder:  hashPlaceholder(""),
		waitersSleep: true,
		reads: func(s Sample) []AuxiliaryRead {
			if _, ok := redissonHash(s); !ok {
				return nil
			}
			return []AuxiliaryRead{{Key: redissonQueue(s.Key), Type: typeList}}
		},
		auxiliaryKey: func(key string) (string, bool) {
			for _, prefix := range []string{redissonQueues, redissonTimeouts} {
				if name, ok := strings.CutPrefix(key, prefix); ok && name != "" {
					return redissonBare(name), true
				}
			}
			return "", false
		},
		deadlines: func(key string) string {
			if strings.HasPrefix(key, redissonTimeouts) {
				return key
			}
			if name, ok := strings.CutPrefix(key, redissonQueues); ok {
				return redissonTimeouts + name
			}
			return ""
		},
		Grants: func(glob string) (keys, channels []string) {
			keys = append(redissonGlobs("redisson_lock_queue", glob), redissonGlobs("redisson_lock_timeout", glob)...)
			for _, c := range redissonGlobs("redisson_lock__channel", glob) {
				channels = append(channels, c+":*") // one for each waiter
			}
			return keys, channels
		},
		ScannerReads: []string{redissonQueues + "*", redissonTimeouts + "*"},
	},
	// FencedLock: the hash of a plain lock, and a counter without TTL that grows with
	// every acquisition and is never removed.
	// Source: RedissonFencedLock.java.
	{
		Name: "redisson-fenced",
		Type: typeHash,
		decode: func(s Sample) (Decoded, bool) {
			d, ok := redissonHash(s)
			fence, err := strconv.ParseInt(string(s.Auxiliary[redissonToken(s.Key)].Value), 10, 64)
			if !ok || err != nil || fence <= 0 {
				return Decoded{}, false
			}
			d.Fence = fence
			return d, true
		},
		RenewEvery: redissonRenewEvery,
		Facts:      locksteward.LibraryFacts{RenewalsPerLease: redissonPerLease},
		release: func(s Sample, p plan) (Command, error) {
			args := append([]any{redissonChannel(s.Key), redissonFree, p.decoded.Fence}, fieldArgs(s)...)
			return p.command(redissonFencedLua, []string{redissonToken(s.Key)}, args...), nil
		},
		placeholder:  hashPlaceholder(""),
		waitersSleep: true,
		reads: func(s Sample) []AuxiliaryRead {
			if _, ok := redissonHash(s); !ok {
				return nil
			}
			return []AuxiliaryRead{{Key: redissonToken(s.Key), Type: typeString}}
		},
		// The counter belongs to all holds of the lock and must outlive each.
		auxiliaryKey: func(key string) (string, bool) { return "", prefixed(redissonTokens)(key) },
		Grants: func(glob string) (keys, channels []string) {
			return redissonGlobs("redisson_lock_token", glob), redissonGlobs("redisson_lock__channel", glob)
		},
		ScannerReads: []string{redissonTokens + "*"},
	},
	// Plain lock: a hash with one field <client uuid>:<thread id> and the re-entrancy
	// count as its value. Spin locks, non-reentrant locks and the members of a
	// MultiLock are the same. Fair locks without waiters, too: then nobody has to be
	// woken in another way.
	// Source: RedissonLock.java, RedissonSpinLock.java, RedissonMultiLock.java.
	{
		Name:       Redisson,
		Type:       typeHash,
		decode:     redissonHash,
		RenewEvery: redissonRenewEvery,
		Facts: locksteward.LibraryFacts{
			RenewalsPerLease: redissonPerLease,
			NoTTLCause:       locksteward.NewMessage("library.redisson-removed-ttl"),
		},
		release: func(s Sample, p plan) (Command, error) {
			args := append([]any{redissonChannel(s.Key), redissonFree}, fieldArgs(s)...)
			return p.command(redissonLua, nil, args...), nil
		},
		placeholder:  hashPlaceholder(""),
		waitersSleep: true,
		auxiliaryKey: func(key string) (string, bool) {
			rest, ok := strings.CutPrefix(key, "redisson_unlock_latch:")
			name, id, cut := cutLast(rest, ":")
			return redissonBare(name), ok && cut && isHex32(id)
		},
		Grants: func(glob string) (keys, channels []string) {
			return nil, redissonGlobs("redisson_lock__channel", glob)
		},
	},
	// FasterMultiLock: one hash for a group of values, three fields for each value
	// that is locked. A value's hash is 22 characters of base64; its expiry is in a
	// field, so an entry may be dead while the key lives.
	// Source: RedissonFasterMultiLock.java, misc/Hash.java.
	{
		Name: "redisson-faster-multilock",
		Type: typeHash,
		decode: func(s Sample) (Decoded, bool) {
			values, owners, ok := redissonMultilock(s)
			if !ok {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   lineage(s),
				Count:      int64(len(values)), // values locked
				Waiters:    -1,
				TokenKind:  redissonKind,
			}
			if len(owners) == 1 {
				d.Holder = owners[0].holder()
			}
			return d, true
		},
		RenewEvery: redissonRenewEvery,
		Facts:      locksteward.LibraryFacts{RenewalsPerLease: redissonPerLease},
		release: func(s Sample, p plan) (Command, error) {
			_, owners, _ := redissonMultilock(s) // the plan has recognised it
			if len(owners) > 1 {
				return Command{}, p.refuse("%d threads hold values of this group and nobody can say which of them is dead", len(owners))
			}
			args := append([]any{redissonChannel(s.Key), redissonFree}, fieldArgs(s)...)
			for i := 2; i < len(args); i += 2 {
				if strings.HasSuffix(args[i].(string), ":expire_time") {
					args[i+1] = p.volatile(args[i+1])
				}
			}
			return p.command(redissonLua, nil, args...), nil
		},
		NoPlaceholder: noPlaceholderParts,
		stableFields: func(s Sample) map[string]string {
			if _, _, ok := redissonMultilock(s); !ok {
				return nil
			}
			stable := maps.Clone(s.Fields)
			maps.DeleteFunc(stable, func(field, _ string) bool { return strings.HasSuffix(field, ":expire_time") })
			return stable
		},
		Grants: func(glob string) (keys, channels []string) {
			return nil, redissonGlobs("redisson_lock__channel", glob)
		},
	},
}

// redissonPrefixed is RedissonObject.prefixName: the name is put in braces unless
// it has an opening brace already.
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

// redissonBare is the inverse of [redissonSuffixed] and [redissonPrefixed] on the
// name that they put in braces.
func redissonBare(name string) string {
	if len(name) > 2 && name[0] == '{' && name[len(name)-1] == '}' && !strings.Contains(name[1:], "{") {
		return name[1 : len(name)-1]
	}
	return name
}

// redissonGlobs are the two forms of [redissonPrefixed] for names that match glob.
func redissonGlobs(prefix, glob string) []string {
	if strings.HasPrefix(glob, "{") {
		return []string{prefix + ":" + glob}
	}
	return []string{prefix + ":{" + glob + "}", prefix + ":" + glob}
}

// Prefixes of auxiliary keys.
const (
	redissonQueues   = "redisson_lock_queue:"
	redissonTimeouts = "redisson_lock_timeout:"
	redissonTokens   = "redisson_lock_token:"
)

func redissonChannel(name string) string { return redissonPrefixed("redisson_lock__channel", name) }
func redissonQueue(name string) string   { return redissonPrefixed("redisson_lock_queue", name) }
func redissonTimeout(name string) string { return redissonPrefixed("redisson_lock_timeout", name) }
func redissonToken(name string) string   { return redissonPrefixed("redisson_lock_token", name) }

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

// redissonHash decodes a hash with one owner and its count: plain, spin, fair,
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
	}
}

// isRedissonElement matches {object}:<hash of the element><suffix>, the name of a
// lock of one element of a map or set.
func isRedissonElement(key, suffix string) bool {
	rest, ok := strings.CutSuffix(key, suffix)
	if !ok || len(rest) < 22+2 {
		return false
	}
	object := rest[:len(rest)-22]
	return strings.HasSuffix(object, ":") && strings.Contains(object, "{") && isRedissonHash(rest[len(rest)-22:])
}

// isRedissonHash matches Hash.hash128toBase64: 16 bytes without padding.
func isRedissonHash(s string) bool {
	return len(s) == 22 && every(s, func(c byte) bool { return isAlnum(c) || c == '+' || c == '/' })
}

// redissonMultilock returns the locked values' hashes and the threads that hold
// them. Every value must have its three fields.
func redissonMultilock(s Sample) (values map[string]redissonOwner, owners []redissonOwner, ok bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 || len(s.Fields)%3 != 0 {
		return nil, nil, false
	}
	values = map[string]redissonOwner{}
	seen := map[redissonOwner]bool{}
	for field, value := range s.Fields {
		hash, rest, more := strings.Cut(field, ":")
		if !isRedissonHash(hash) {
			return nil, nil, false
		}
		if more {
			if !strings.HasSuffix(rest, ":expire_time") && !strings.HasSuffix(rest, ":lock_count") || !isDigits(value) {
				return nil, nil, false
			}
			continue
		}
		owner, known := redissonField(value)
		if !known {
			return nil, nil, false
		}
		values[hash] = owner
		if !seen[owner] {
			seen[owner] = true
			owners = append(owners, owner)
		}
	}
	for hash, owner := range values {
		own := hash + ":" + owner.String()
		_, expires := s.Fields[own+":expire_time"]
		_, counted := redissonCount(s.Fields[own+":lock_count"])
		if !expires || !counted {
			return nil, nil, false
		}
	}
	return values, owners, len(values)*3 == len(s.Fields)
}
