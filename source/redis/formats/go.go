package formats

import (
	_ "embed" // for the scripts
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

var (
	//go:embed asynq_unique.lua
	asynqUniqueLua string
	//go:embed go_redislock.lua
	goRedisLockLua string
	//go:embed go_redislock_rw.lua
	goRedisLockRWLua string
)

// goFormats are the lock libraries of Go.
var goFormats = []*Format{
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
	// go-redislock's plain lock, re-entrant or of several names: a token per lock
	// object under {name}, and a counter in an auxiliary key. Before version 1.1.4 the
	// names had no braces.
	// Source: jefferyjob/go-redislock lua/{reentrantLock,reentrantUnLock,multiLock}.lua.
	{
		Name:  "go-redislock-reentrant",
		Type:  typeString,
		names: bracedNames,
		bare:  true,
		decode: func(s Sample) (Decoded, bool) {
			d, ok := goRedisLockString.decode(s)
			d.Count = goRedisLockCount(string(s.Auxiliary[goRedisLockCounter(s)].Value))
			return d, ok
		},
		release: releaseGoRedisLock,
		reads: func(s Sample) []AuxiliaryRead {
			if !isBraced(s.Key) || !whole(s) || !isGoRedisLockToken(string(s.Value)) {
				return nil
			}
			return []AuxiliaryRead{{Key: goRedisLockCounter(s), Type: typeString}}
		},
		// The counter ends when the lock would have, so it is nobody's orphan.
		auxiliaryKey: func(key string) (string, bool) {
			lock, token, ok := cutLast(key, ":count:")
			return "", ok && lock != "" && strings.HasPrefix(token, "lock_token:") && isGoRedisLockToken(token)
		},
		Grants: goRedisLockGrants,
	},
	// go-redislock's read/write lock: a hash with the mode, the writer and its count,
	// and a count for each reader. The writer may read too.
	// Source: jefferyjob/go-redislock lua/{readLock,readUnLock,writeLock,writeUnLock}.lua.
	{
		Name: "go-redislock-rw",
		decode: func(s Sample) (Decoded, bool) {
			rw, ok := goRedisLockRWOf(s)
			if !ok {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   lineage(s),
				Mode:       rw.mode,
				Count:      rw.count,
				Waiters:    -1, // they poll
				TokenKind:  "a text that the caller gave",
			}
			for holder := range rw.holders {
				if isGoRedisLockToken(holder) {
					d.TokenKind = goRedisLockKind
				}
			}
			return d, true
		},
		release: func(s Sample, p plan) (Command, error) {
			rw, _ := goRedisLockRWOf(s) // the plan has recognised it
			if n := len(rw.holders); n > 1 {
				return Command{}, p.refuseSeveral(n, "read locks")
			}
			return p.command(goRedisLockRWLua, nil, fieldArgs(s)...), nil
		},
		placeholder: func(owner string) placeholder {
			return placeholder{Type: typeHash, Name: "writer", Parts: []string{"writer", owner, "mode", modeWrite, "wcount", "1"}}
		},
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
	// go-redislock's fair lock: the request id that the caller gave under {name}, and
	// the waiters in a sorted set. Such names and values are anybody's, so without its
	// queue it is no more than a guess. Any text under a name in braces matches: it is
	// the last of those that know the name.
	// Source: jefferyjob/go-redislock lua/{fairLock,fairUnLock}.lua, lock_fair.go.
	{
		Name:     "go-redislock-fair",
		Type:     typeString,
		matches:  isBraced,
		names:    bracedNames,
		needsTTL: true,
		decode: func(s Sample) (Decoded, bool) {
			if !whole(s) || !isRequestID(string(s.Value)) {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceLow,
				Identity:   lineage(s),
				Count:      1,
				Waiters:    -1,
				TokenKind:  "a request id that the caller gave",
			}
			if queue, ok := s.Auxiliary[goRedisLockQueue(s)]; ok {
				d.Confidence = locksteward.ConfidenceMedium
				d.Waiters = int(max(0, queue.Size-1)) // the holder stays in it
			}
			return d, true
		},
		release: releaseGoRedisLock,
		reads: func(s Sample) []AuxiliaryRead {
			if !isBraced(s.Key) || !whole(s) || !isRequestID(string(s.Value)) {
				return nil
			}
			return []AuxiliaryRead{{Key: goRedisLockQueue(s), Type: typeZSet}}
		},
		Grants: goRedisLockGrants,
	},
}

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

// The string locks of go-redislock have in common the name in braces, so that their
// auxiliary keys are in the lock's slot (jefferyjob/go-redislock
// lua/{reentrant,fair,multi}Lock.lua).
var bracedNames = []namePattern{{prefix: "{", suffix: "}"}}

// goRedisLockKind is the token that the library generates.
const goRedisLockKind = "a UUID, as go-redislock writes it"

var goRedisLockString = stringLock{
	kind: goRedisLockKind, value: isGoRedisLockToken,
	origin: originProcess, confidence: locksteward.ConfidenceHigh,
}

// releaseGoRedisLock removes the auxiliary keys too. The script builds their names
// itself: one of them contains the token.
func releaseGoRedisLock(s Sample, p plan) (Command, error) {
	return p.command(goRedisLockLua, nil, s.Value), nil
}

func goRedisLockGrants(glob string) (keys, channels []string) {
	return []string{glob + ":count:*", glob + ":queue"}, nil
}

func isGoRedisLockToken(text string) bool { return hasPrefixed(text, "lock_token:", isFreshUUID) }

// isBraced matches {name}.
func isBraced(key string) bool {
	return len(key) > 2 && key[0] == '{' && strings.IndexAny(key[1:], "{}") == len(key)-2
}

// goRedisLockCounter is the key that counts how often the holder has acquired the lock.
func goRedisLockCounter(s Sample) string { return s.Key + ":count:" + string(s.Value) }

// goRedisLockQueue is the key of a fair lock's queue, its holder at the head.
func goRedisLockQueue(s Sample) string { return s.Key + ":queue" }

// goRedisLockCount parses the counter's text; 1 if there is none.
func goRedisLockCount(text string) int64 {
	count, ok := countOf(text)
	if !ok {
		return 1
	}
	return count
}

// countOf parses a number of holds, which is never 0 in Redis.
func countOf(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return n, err == nil && n > 0 && isDigits(text)
}

// maxRequestID bounds what is taken for a request id.
const maxRequestID = 128

// isRequestID matches what is likely given for one: a UUID, with a name before it
// or not, and a name with a number.
func isRequestID(text string) bool {
	if len(text) > maxRequestID || !isPrintableText(text) || strings.ContainsAny(text, ` {}[]"@`) || isGoRedisLockToken(text) {
		return false
	}
	if i := len(text) - uuidLength; i >= 0 && isFreshUUID(text[i:]) {
		return i == 0 || !isAlnum(text[i-1])
	}
	_, process := hostAndPID(text)
	return !process && !isAddress(text) && isName(text) && strings.ContainsAny(text, "0123456789") && strings.ContainsAny(text, "-_:#")
}

// goRedisLockRWState is the content of such a hash.
type goRedisLockRWState struct {
	mode    string
	count   int64 // of the writer, or of all readers
	holders map[string]bool
}

// goRedisLockRWOf parses a hash whose counts agree with each other.
func goRedisLockRWOf(s Sample) (goRedisLockRWState, bool) {
	var none goRedisLockRWState
	if s.Type != typeHash || s.TooLarge || int64(len(s.Fields)) != s.Size {
		return none, false
	}
	rw := goRedisLockRWState{mode: s.Fields["mode"], holders: map[string]bool{}}
	var reads, readers int64 // as counted, as said
	for field, value := range s.Fields {
		reader, isReader := strings.CutPrefix(field, "r:")
		count, counted := countOf(value)
		switch {
		case field == "mode":
		case field == "writer" && value != "":
			rw.holders[value] = true
		case field == "wcount" && counted:
			rw.count = count
		case field == "rcount" && counted:
			readers = count
		case isReader && reader != "" && counted:
			rw.holders[reader] = true
			reads += count
		default:
			return none, false
		}
	}
	if reads != readers {
		return none, false
	}
	_, writer := s.Fields["writer"]
	switch rw.mode {
	case modeRead:
		rw.count = reads
		return rw, reads > 0 && !writer && s.Fields["wcount"] == ""
	case modeWrite:
		return rw, writer && rw.count > 0
	default:
		return none, false
	}
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
