package dialect

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// library is a lock library that stores its lock as one string and is known by
// the form of its key and value (docs/dialects/token.md has the same table).
type library struct {
	kind       string
	key        func(key string) bool // nil: any key
	value      func(text string) bool
	origin     origin
	confidence locksteward.Confidence
	renewEvery time.Duration
	holder     func(text string) locksteward.Holder // nil: none in the value
	refuse     string
}

// libraries are tried in this order: key and value together first, then values
// that are particular enough on their own.
var libraries = [...]library{
	{
		kind: "24 random bytes, as rueidislock and valkeylock write them", key: isRueidisKey, value: func(s string) bool { return len(s) == 24 },
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh, renewEvery: 2500 * time.Millisecond,
	},
	{
		kind: "a UUID, as go-redislock writes it", key: isBracedKey, value: func(s string) bool { return hasPrefixed(s, "lock_token:", isUUID) },
		origin: originProcess, confidence: locksteward.ConfidenceHigh,
		refuse: "go-redislock keeps a counter beside the lock that would let its old holder in again",
	},
	{
		kind: "a BullMQ worker's UUID and a number", key: isBullKey, value: isWorkerToken,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh, renewEvery: 15 * time.Second,
	},
	{
		kind: "a UUID of a Bull queue object", key: func(k string) bool { return isBullKey(k) && strings.HasPrefix(k, "bull:") }, value: isUUID,
		origin: originProcess, confidence: locksteward.ConfidenceHigh, renewEvery: 15 * time.Second,
	},
	{
		kind: "a UUID of a Hangfire process", key: prefixed("{hangfire}:"), value: isUUID,
		origin: originProcess, confidence: locksteward.ConfidenceHigh, renewEvery: 15 * time.Second,
	},
	{
		kind: "a UUID, as GitLab writes it", key: prefixed("gitlab:exclusive_lease:"), value: isFreshUUID,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a Celery task id", key: func(k string) bool { return hasPrefixed(k, "SINGLETONLOCK_", isHex32) }, value: isFreshUUID,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a UUID, as activejob-uniqueness writes it", key: prefixed("activejob_uniqueness:"), value: isFreshUUID,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a UUID, as RedLock.net and pottery write it", key: prefixed("redlock:"), value: isFreshUUID,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a UUID of a redis-semaphore object", key: prefixed("mutex:"), value: func(s string) bool {
			return isUUID(s) || len(s) > uuidLength+1 && s[uuidLength] == '-' && isUUID(s[:uuidLength])
		},
		origin: originProcess, confidence: locksteward.ConfidenceMedium, renewEvery: 8 * time.Second,
	},
	{
		kind: "the name or process id of an RQ scheduler", key: prefixed("rq:scheduler-lock:"), value: func(s string) bool { return isHex32(s) || isDigits(s) },
		origin: originProcess, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a UUID of a Sentry process", key: prefixed("l:"), value: isHex32,
		origin: originProcess, confidence: locksteward.ConfidenceMedium,
	},
	{
		kind: "random base64 of a python-redis-lock object", key: prefixed("lock:"), value: func(s string) bool { return len(s) == 24 && !strings.Contains(s, "=") && isRandomBase64(s) },
		origin: originProcess, confidence: locksteward.ConfidenceMedium,
	},
	{
		kind: "random letters of a Laravel lock object", key: isLaravelKey, value: func(s string) bool { return len(s) == 16 && every(s, isAlnum) },
		origin: originProcess, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a host name with a process id", key: func(k string) bool { return strings.HasSuffix(k, "resque_scheduler_master_lock") }, value: isHostAndPID,
		origin: originShared, confidence: locksteward.ConfidenceHigh, holder: holderOfHostAndPID,
	},

	{
		kind: "time, host and UUID, as ShedLock writes them", value: isShedLock,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh, holder: holderOfShedLock,
	},
	{
		kind: "machine, process and UUID, as DistributedLock writes them", value: isDistributedLock,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh, renewEvery: 9 * time.Second, holder: holderOfDistributedLock,
	},
	{
		kind: "a UUID with a time, as redis-py writes it", value: isTimeUUIDHex,
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "random base64, as redsync writes it", value: func(s string) bool { return len(s) == 24 && strings.HasSuffix(s, "==") && isRandomBase64(s) },
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "random base64, as bsm/redislock writes it", value: func(s string) bool { return len(s) == 22 && isRandomBase64(s) && !strings.ContainsAny(s, "+/") },
		origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
	},
	{
		kind: "a UUID and a number, as of one process and thread", value: isProcessAndThread,
		origin: originProcess, confidence: locksteward.ConfidenceMedium,
	},
}

func libraryShape(key, text string) (tokenShape, bool) {
	for i := range libraries {
		l := &libraries[i]
		if l.key != nil && !l.key(key) || !l.value(text) {
			continue
		}
		shape := tokenShape{kind: l.kind, origin: l.origin, confidence: l.confidence, renewEvery: l.renewEvery, refuse: l.refuse}
		if l.holder != nil {
			shape.holder = l.holder(text)
		}
		return shape, true
	}
	return tokenShape{}, false
}

func prefixed(prefix string) func(string) bool {
	return func(s string) bool { return len(s) > len(prefix) && strings.HasPrefix(s, prefix) }
}

func hasPrefixed(s, prefix string, ok func(string) bool) bool {
	rest, found := strings.CutPrefix(s, prefix)
	return found && ok(rest)
}

func isHex32(s string) bool { return len(s) == 32 && isLowerHex(s) }

// isRueidisKey knows rueidislock:<i>:<name>.
func isRueidisKey(key string) bool {
	rest, ok := strings.CutPrefix(key, "rueidislock:")
	if !ok {
		rest, ok = strings.CutPrefix(key, "valkeylock:")
	}
	i, name, found := strings.Cut(rest, ":")
	return ok && found && isDigits(i) && name != ""
}

// isBracedKey knows {name}.
func isBracedKey(key string) bool {
	return len(key) > 2 && key[0] == '{' && strings.IndexAny(key[1:], "{}") == len(key)-2
}

// isBullKey knows <prefix>:<queue>:<job>:lock.
func isBullKey(key string) bool {
	rest, ok := strings.CutSuffix(key, ":lock")
	return ok && strings.Count(rest, ":") >= 2 && rest[0] != ':'
}

// isWorkerToken knows <uuid>:<number>.
func isWorkerToken(s string) bool {
	return len(s) > uuidLength+1 && isUUID(s[:uuidLength]) && s[uuidLength] == ':' && isDigits(s[uuidLength+1:])
}

// isProcessAndThread knows a UUID followed by a number, as code copied from
// many articles writes it: the UUID of the process and Thread.getId().
func isProcessAndThread(s string) bool {
	if len(s) <= uuidLength || !isUUID(s[:uuidLength]) {
		return false
	}
	thread := strings.TrimLeft(s[uuidLength:], "-:_#")
	return len(thread) <= 19 && isDigits(thread)
}

// isLaravelKey knows what Laravel's cache prefixes and lock names contain.
func isLaravelKey(key string) bool {
	for _, mark := range []string{
		"-cache-", "_cache_", "_cache:", "laravel_unique_job:", "laravel-queue-overlap:",
		"framework/schedule-", "framework/command-", "illuminate:cache:flexible:lock:",
	} {
		if strings.Contains(key, mark) {
			return true
		}
	}
	return false
}

func isHostAndPID(s string) bool {
	_, ok := hostAndPID(s)
	return ok
}

func holderOfHostAndPID(s string) locksteward.Holder {
	holder, _ := hostAndPID(s)
	return holder
}

// isShedLock knows ADDED:<RFC 3339 with ms>@<host>:<uuid>.
func isShedLock(s string) bool {
	rest, ok := strings.CutPrefix(s, "ADDED:")
	at, rest, found := strings.Cut(rest, "@")
	if !ok || !found || len(rest) < uuidLength+2 {
		return false
	}
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
		return false
	}
	i := len(rest) - uuidLength
	return rest[i-1] == ':' && isUUID(rest[i:])
}

func holderOfShedLock(s string) locksteward.Holder {
	_, rest, _ := strings.Cut(s, "@")
	return locksteward.Holder{Host: rest[:len(rest)-uuidLength-1]}
}

// isDistributedLock knows <machine>_<pid>_<32 hex digits>.
func isDistributedLock(s string) bool { return holderOfDistributedLock(s).PID > 0 }

func holderOfDistributedLock(s string) locksteward.Holder {
	rest, id, ok := cutLast(s, "_")
	machine, pid, found := cutLast(rest, "_")
	if !ok || !found || !isHex32(id) || machine == "" || !isDigits(pid) || len(pid) > 10 || !isPrintableText(machine) {
		return locksteward.Holder{}
	}
	n, err := strconv.ParseInt(pid, 10, 32)
	if err != nil {
		return locksteward.Holder{}
	}
	return locksteward.Holder{Host: machine, PID: int(n)}
}

// gregorianOffset is the 100 ns steps from 1582-10-15, where the time in a UUID
// begins, to 1970.
const gregorianOffset = 0x01b21dd213814000

// isTimeUUIDHex knows a version 1 UUID without dashes whose time is plausible:
// of random hex digits, one in about 2,500 is.
func isTimeUUIDHex(s string) bool {
	if !isHex32(s) || s[12] != '1' || strings.IndexByte("89ab", s[16]) < 0 {
		return false
	}
	raw, err := hex.DecodeString(s)
	if err != nil {
		return false
	}
	low := int64(raw[0])<<24 | int64(raw[1])<<16 | int64(raw[2])<<8 | int64(raw[3])
	mid := int64(raw[4])<<8 | int64(raw[5])
	high := int64(raw[6]&0x0f)<<8 | int64(raw[7])
	at := time.UnixMicro(((high<<48 | mid<<32 | low) - gregorianOffset) / 10)
	return at.After(firstTime) && at.Before(lastTime)
}
