package formats

import (
	_ "embed" // for the script
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

//go:embed asynq_unique.lua
var asynqUniqueLua string

// goFormats are the lock libraries of Go.
var goFormats = slices.Concat([]*Format{
	// rueidislock of redis/rueidis: 24 random bytes, the same on the keys
	// rueidislock:0:<name> to rueidislock:2:<name>, of which a majority is the lock.
	// Holder and waiters learn of a key that was deleted through client tracking, so
	// nobody has to be notified.
	// Source: redis/rueidis rueidislock/lock.go (keyname, try, onInvalidations).
	{
		Name:       "rueidislock",
		Type:       typeString,
		matches:    indexed("rueidislock:"),
		decode:     decodeTracked,
		RenewEvery: trackedRenewEvery,
		release:    deleteString,
	},
	// valkeylock of valkey-io/valkey-go: rueidislock's layout under
	// valkeylock:<i>:<name>.
	// Source: valkey-io/valkey-go valkeylock/lock.go.
	{
		Name:       "valkeylock",
		Type:       typeString,
		matches:    indexed("valkeylock:"),
		decode:     decodeTracked,
		RenewEvery: trackedRenewEvery,
		release:    deleteString,
	},
	// asynq's unique tasks: the id of the task under asynq:{<queue>}:unique:<type>:<md5
	// of the payload, if there is one>.
	// Source: hibiken/asynq internal/base/base.go (UniqueKey), internal/rdb/rdb.go (enqueueUniqueCmd, doneUniqueCmd).
	{
		Name: "asynq-unique",
		Type: typeString,
		matches: func(key string) bool {
			_, rest, ok := asynqQueue(key)
			task, ok2 := strings.CutPrefix(rest, "unique:")
			name, sum, cut := cutLast(task, ":")
			return ok && ok2 && cut && name != "" && (sum == "" || isHex32(sum))
		},
		names: []namePattern{{prefix: "asynq:{", infix: "}:unique:"}},
		decode: func(s Sample) (Decoded, bool) {
			text := string(s.Value)
			if !whole(s) || text == "" || !isPrintableText(text) {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   locksteward.IdentityStrong,
				Count:      1,
				Waiters:    -1, // nobody waits: a second task is refused
				TokenKind:  "the id of an asynq task",
			}
			if !isFreshUUID(text) { // given by the caller, so it may come again
				d.Identity = lineage(s)
				d.TokenKind = "the id of an asynq task, as the caller gave it"
			}
			return d, true
		},
		release: func(s Sample, p plan) (Command, error) {
			prefix, _, _ := asynqQueue(s.Key)
			return p.command(asynqUniqueLua, nil, s.Value, prefix+"t:"), nil
		},
		NoPlaceholder: noPlaceholderTask,
		Grants: func(glob string) (keys, channels []string) {
			if !strings.HasPrefix(glob, "asynq:") {
				return nil, nil
			}
			return globsOfQueue(glob, ":unique:", ":t:*"), nil
		},
	},
	// asynq's leases on the active tasks of one queue: a sorted set of task ids and the
	// time in seconds when each lease ends. Its workers extend that every 5 s; the key
	// itself never expires.
	// Source: hibiken/asynq internal/rdb/rdb.go (dequeueCmd, ExtendLease), heartbeat.go, recoverer.go.
	{
		Name: "asynq-lease",
		matches: func(key string) bool {
			_, rest, ok := asynqQueue(key)
			return ok && rest == "lease"
		},
		decode: func(s Sample) (Decoded, bool) {
			if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 || int64(len(s.Members)) != s.Size {
				return Decoded{}, false
			}
			for _, m := range s.Members {
				if m.Score < float64(firstTime.Unix()) || m.Score >= float64(lastTime.Unix()) {
					return Decoded{}, false
				}
			}
			return Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   lineage(s),
				Count:      s.Size,
				Waiters:    -1,
				TokenKind:  "the ids of asynq tasks and the time when each lease ends",
			}, true
		},
		Facts:        locksteward.LibraryFacts{NoTTLByDesign: true},
		Never:        "asynq's own servers take back a lease that ran out within 90 seconds, and a task whose live lease is taken away is done twice",
		auxiliaryKey: asynqAuxiliaryKey,
	},
	// Dapr's lock API on Redis: the text that the caller gave as lockOwner under
	// lock||<app id>||<resource>.
	// Source: dapr/components-contrib lock/redis/standalone.go; dapr/dapr pkg/components/lock/lock_config.go.
	{
		Name:    "dapr-lock",
		Type:    typeString,
		matches: prefixed("lock||"),
		decode: func(s Sample) (Decoded, bool) {
			text := string(s.Value)
			if !whole(s) || text == "" {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   lineage(s), // an owner's name may come again
				Count:      1,
				Waiters:    -1, // they try again
				TokenKind:  "the owner's name, as the caller gave it",
			}
			kind, holder := sharedKind(text)
			if kind != "" {
				d.SharedToken, d.TokenKind = true, kind
			}
			d.Holder = holder
			if app, _, ok := strings.Cut(strings.TrimPrefix(s.Key, "lock||"), "||"); ok {
				d.Holder.App = app
			}
			return d, true
		},
		release: deleteString,
	},
	// redsync 4, gocron-redis-lock too: base64 of 16 random bytes, fresh for each
	// acquisition, under any name and on each server of the quorum. Others write those
	// too: it is named only where the key says redsync.
	// Source: go-redsync/redsync mutex.go (genValue).
	{
		Name:    "redsync",
		Type:    typeString,
		matches: named("redsync"),
		bare:    true,
		decode: stringLock{
			kind: "random base64, as redsync writes it",
			value: func(text string) bool {
				return len(text) == 24 && strings.HasSuffix(text, "==") && isRandomBase64(text)
			},
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// bsm/redislock, caddy-storage-redis too: base64url of 16 random bytes, fresh for
	// each acquisition, and behind it the metadata that the application gave. Others
	// write such tokens too: without metadata it is named only where the key says
	// redislock. Several keys of one ObtainMulti have the same value.
	// Source: bsm/redislock redislock.go (randomToken, ObtainMulti).
	{
		Name: "bsm-redislock",
		Type: typeString,
		bare: true,
		decode: func(s Sample) (Decoded, bool) {
			d, ok := bsmString.decode(s)
			return d, ok && (s.Size > bsmTokenLength || namesRedislock(s.Key))
		},
		release: deleteString,
	},
}, goRedisLockFormats)

// trackedRenewEvery is half of KeyValidity's default.
const trackedRenewEvery = 2500 * time.Millisecond

// indexed matches <prefix><number>:<name>.
func indexed(prefix string) func(key string) bool {
	return func(key string) bool {
		rest, ok := strings.CutPrefix(key, prefix)
		i, lock, cut := strings.Cut(rest, ":")
		return ok && cut && isDigits(i) && lock != ""
	}
}

// decodeTracked decodes a key of rueidislock or valkeylock.
func decodeTracked(s Sample) (Decoded, bool) {
	if !whole(s) || len(s.Value) != 24 || isPrintableText(string(s.Value)) {
		return Decoded{}, false
	}
	return Decoded{
		Confidence: locksteward.ConfidenceHigh,
		Identity:   locksteward.IdentityStrong,
		Count:      1,
		Waiters:    -1, // clients that track the key
		TokenKind:  "24 random bytes, as rueidislock and valkeylock write them",
	}, true
}

// asynqQueue splits asynq:{<queue>}:<rest>.
func asynqQueue(key string) (prefix, rest string, ok bool) {
	inner, ok := strings.CutPrefix(key, "asynq:{")
	queue, rest, cut := strings.Cut(inner, "}:")
	if !ok || !cut || queue == "" {
		return "", "", false
	}
	return "asynq:{" + queue + "}:", rest, true
}

// asynqAuxiliaryKey matches all keys of asynq but its locks.
func asynqAuxiliaryKey(key string) (string, bool) {
	for _, prefix := range []string{"asynq:servers", "asynq:workers", "asynq:schedulers", "asynq:scheduler_history:"} {
		if strings.HasPrefix(key, prefix) {
			return "", true
		}
	}
	_, rest, ok := asynqQueue(key)
	return "", ok && !strings.HasPrefix(rest, "unique:") && rest != "lease"
}

// globsOfQueue returns the pattern of a queue's keys that end as instead says, for
// locks that match glob, whose names have word after the queue; nil if they have not.
func globsOfQueue(glob, word, instead string) []string {
	queue, _, ok := strings.Cut(glob, word)
	if !ok {
		return nil
	}
	return []string{queue + instead}
}

// bsmTokenLength is base64url of 16 bytes without padding.
const bsmTokenLength = 22

var (
	namesRedislock = named("redislock")

	bsmString = stringLock{
		kind: "random base64, as bsm/redislock writes it",
		value: func(text string) bool {
			token, metadata, ok := bsmToken(text)
			return ok && isRandomBase64(token) && (metadata == "" || isBSMMetadata(metadata))
		},
		origin:     originAcquisition,
		confidence: locksteward.ConfidenceMedium,
		holder: func(text string) locksteward.Holder {
			_, metadata, _ := bsmToken(text)
			holder, _ := hostAndPID(metadata)
			return holder
		},
	}
)

func bsmToken(text string) (token, metadata string, ok bool) {
	if len(text) < bsmTokenLength || strings.ContainsAny(text[:bsmTokenLength], "+/=") {
		return "", "", false
	}
	return text[:bsmTokenLength], text[bsmTokenLength:], true
}

// isBSMMetadata tells text that was put behind a token from the rest of a longer
// random text: it has characters that such a text has not.
func isBSMMetadata(text string) bool {
	if !isPrintableText(text) {
		return false
	}
	return !every(text, func(c byte) bool { return isAlnum(c) || strings.IndexByte("+/=-_", c) >= 0 })
}

// workCounterReads: a sample that looks like gocraft/work's number of running jobs
// is one if its auxiliary hash exists.
func workCounterReads(s Sample) []AuxiliaryRead {
	if !isWorkCounterName(s) {
		return nil
	}
	return []AuxiliaryRead{{Key: s.Key + "_info", Type: typeHash}}
}

// isWorkCounterName reports whether s may be the number of running jobs that
// gocraft/work (Harbor's job service) keeps as <namespace>:jobs:<job>:lock.
func isWorkCounterName(s Sample) bool {
	return whole(s) && strings.HasSuffix(s.Key, ":lock") && strings.Contains(s.Key, ":jobs:") &&
		len(s.Value) <= 6 && isDigits(string(s.Value))
}

// isWorkCounter reports whether s is that number: its auxiliary hash counts by pool
// of workers. It never has a TTL, and nobody holds it.
// Source: gocraft/work redis.go (redisKeyJobsLock, redisKeyJobsLockInfo).
func isWorkCounter(s Sample) bool {
	_, counted := s.Auxiliary[s.Key+"_info"]
	return counted && isWorkCounterName(s)
}
