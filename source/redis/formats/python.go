package formats

import (
	_ "embed" // for the script
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

//go:embed python_redis_lock.lua
var pythonRedisLockLua string

// pythonFormats are the lock libraries of Python. Several write a bare UUID under
// any name: those are claimed only where the name says whose they are.
var pythonFormats = []*Format{
	// dogpile.cache's distributed lock: redis-py's under _lock<cache key>, no TTL unless
	// lock_timeout is set.
	// Source: sqlalchemy/dogpile.cache dogpile/cache/backends/redis.py.
	{
		Name:    "dogpile",
		Type:    typeString,
		matches: prefixed("_lock"),
		decode:  decodeRedisPy,
		release: deleteString,
	},
	// celery-once's QueueOnce: redis-py's lock under qo_<task>_<argument>-<value>…, one
	// hour by default.
	// Source: cameronmaske/celery-once celery_once/{helpers,backends/redis}.py.
	{
		Name:    "celery-once",
		Type:    typeString,
		matches: prefixed("qo_"),
		names:   []namePattern{{prefix: "qo_"}},
		decode:  decodeRedisPy,
		release: deleteString,
	},
	// celery-redbeat's lock of the one running scheduler: redis-py's under <prefix>:lock,
	// where the prefix is "redbeat:" by default.
	// Source: sibson/redbeat redbeat/schedulers.py.
	{
		Name:    "redbeat",
		Type:    typeString,
		matches: func(key string) bool { return strings.HasSuffix(key, ":lock") && strings.Contains(key, "redbeat") },
		decode:  decodeRedisPy,
		// beat's longest sleep (max_interval's default): the lock is renewed at least
		// that often.
		RenewEvery:   5 * time.Minute,
		release:      deleteString,
		auxiliaryKey: func(key string) (string, bool) { return "", key == "redbeat::schedule" || key == "redbeat::statics" },
	},
	// python-redis-lock: base64 of 18 random bytes per Lock object under lock:<name>;
	// waiters block in BLPOP lock-signal:<name>.
	// Source: ionelmc/python-redis-lock src/redis_lock/__init__.py.
	{
		Name:    "python-redis-lock",
		Type:    typeString,
		matches: prefixed(pythonRedisLockPrefix),
		decode: stringLock{
			kind: "random base64 of a python-redis-lock object",
			value: func(text string) bool {
				return len(text) == 24 && !strings.ContainsAny(text, "=-_") && isRandomBase64(text)
			},
			origin:     originProcess,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: func(s Sample, p plan) (Command, error) {
			name := strings.TrimPrefix(s.Key, pythonRedisLockPrefix)
			return p.command(pythonRedisLockLua, nil, s.Value, pythonRedisLockSignals+name), nil
		},
		NoPlaceholder: noPlaceholderBlocks,
		auxiliaryKey: func(key string) (string, bool) {
			name, ok := strings.CutPrefix(key, pythonRedisLockSignals)
			if !ok || name == "" {
				return "", false
			}
			return pythonRedisLockPrefix + name, true
		},
		Grants: func(glob string) (keys, channels []string) {
			name, ok := strings.CutPrefix(glob, pythonRedisLockPrefix)
			switch {
			case ok:
				return []string{pythonRedisLockSignals + name}, nil
			case matchesAnyBeginning(glob):
				return []string{pythonRedisLockSignals + "*"}, nil
			default:
				return nil, nil
			}
		},
	},
	// celery-singleton: the id of the task under SINGLETONLOCK_<md5 of its name and
	// arguments>, without TTL by default.
	// Source: steinitzu/celery-singleton celery_singleton/{singleton,util}.py.
	{
		Name:    "celery-singleton",
		Type:    typeString,
		matches: func(key string) bool { return hasPrefixed(key, "SINGLETONLOCK_", isHex32) },
		decode: stringLock{
			kind:       "a Celery task id",
			value:      isFreshUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceHigh,
			// The id is no secret that opens the lock: the library deletes by name alone.
			holder: func(text string) locksteward.Holder { return locksteward.Holder{Session: text} },
		}.decode,
		Facts:         locksteward.LibraryFacts{NoTTLByDesign: true},
		release:       deleteString,
		NoPlaceholder: noPlaceholderTask,
	},
	// RQ's lock of the scheduler of one queue, rq:scheduler-lock:<queue>: the scheduler's
	// process id, in later versions its name, which by default is a UUID in hex.
	// Source: rq/rq rq/scheduler.py.
	{
		Name:    "rq-scheduler",
		Type:    typeString,
		matches: prefixed("rq:scheduler-lock:"),
		decode: stringLock{
			kind: "the name or process id of an RQ scheduler",
			value: func(text string) bool {
				return text != "" && len(text) <= maxShared && isPrintableText(text)
			},
			origin:     originProcess,
			confidence: locksteward.ConfidenceHigh,
			// Name and id are no secret that opens the lock: RQ deletes by name alone.
			holder: func(text string) locksteward.Holder {
				if isDigits(text) && len(text) <= 7 {
					pid, _ := strconv.Atoi(text) // at most seven digits
					return locksteward.Holder{PID: pid}
				}
				return locksteward.Holder{Session: text}
			},
		}.decode,
		release: deleteString,
	},
	// RQ's rq:clean_registries:<queue>: "1" for 899 s, so that one worker in a quarter of
	// an hour cleans the registries.
	// Source: rq/rq rq/queue.py.
	{
		Name:    "rq-maintenance",
		Type:    typeString,
		matches: prefixed("rq:clean_registries:"),
		names:   []namePattern{{prefix: "rq:clean_registries:"}},
		decode: stringLock{
			kind:       "a one-digit number",
			value:      func(text string) bool { return text == "1" },
			origin:     originShared,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		Never: "it has no holder to compare, marks work that was done and not work that goes on, and ends by itself within 15 minutes",
	},
	// Huey's lock_task: "1" (a pickle of it in later versions) under <huey>.lock.<name>,
	// as a field of the hash that has the results, or as a key of its own with
	// RedisExpireHuey.
	// Source: coleifer/huey huey/{api,storage}.py.
	{
		Name: "huey-lock",
		matches: func(key string) bool {
			return strings.HasPrefix(key, "huey.results.") || strings.HasPrefix(key, "huey.r.") && strings.Contains(key, ".lock.")
		},
		names:  []namePattern{{prefix: "huey.results."}},
		decode: decodeHuey,
		Facts:  locksteward.LibraryFacts{NoTTLByDesign: true},
		Never:  "its value is the same for every holder, so nobody can tell this hold from the next",
	},
	// Sentry's lock manager: one UUID per process, in hex, under l:<key>.
	// Source: getsentry/sentry src/sentry/utils/locking/backends/redis.py.
	{
		Name:    "sentry-lock",
		Type:    typeString,
		matches: prefixed("l:"),
		names:   []namePattern{{prefix: "l:"}},
		decode: stringLock{
			kind: "a UUID of a Sentry process",
			value: func(text string) bool {
				if !isHex32(text) {
					return false
				}
				return isRandomUUID(text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:])
			},
			origin:     originProcess,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// aioredlock: a UUID under a name as given. Nothing in the value is its own, so only
	// keys that name the library are claimed.
	// Source: joanvila/aioredlock aioredlock/{algorithm,redis}.py.
	{
		Name:    "aioredlock",
		Type:    typeString,
		matches: named("aioredlock"),
		decode: stringLock{
			kind:       "a UUID, under a key that names aioredlock",
			value:      isRandomUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		RenewEvery: 6 * time.Second, // 0.6 of the default TTL of 10 s
		release:    deleteString,
	},
	// pottery's Redlock: a UUID under redlock:<key>, which is RedLock.net's layout too,
	// so only keys that name the library are claimed.
	// Source: brainix/pottery pottery/{redlock,base}.py.
	{
		Name:    "pottery-redlock",
		Type:    typeString,
		matches: func(key string) bool { return strings.HasPrefix(key, "redlock:") && namesPottery(key) },
		decode: stringLock{
			kind:       "a UUID, under a key that names pottery",
			value:      isRandomUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// sherlock's RedisLock: a UUID under [<namespace>_]<name>. Nothing in the value is
	// its own, so only keys that name the library are claimed.
	// Source: py-sherlock/sherlock sherlock/lock.py.
	{
		Name:    "sherlock",
		Type:    typeString,
		matches: named("sherlock"),
		decode: stringLock{
			kind:       "a UUID, under a key that names sherlock",
			value:      isRandomUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// aiocache's RedLock: a UUID under <namespace><key>-lock, always with a lease.
	// Source: aio-libs/aiocache aiocache/lock.py.
	{
		Name:     "aiocache-redlock",
		Type:     typeString,
		matches:  func(key string) bool { return len(key) > len("-lock") && strings.HasSuffix(key, "-lock") },
		needsTTL: true,
		decode: stringLock{
			kind:       "a UUID under a key that ends in -lock, as aiocache writes them",
			value:      isRandomUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// redis-py's Lock (and django-redis's cache.lock): the text of uuid1().hex under any
	// name.
	// Source: redis/redis-py redis/lock.py.
	{
		Name:    "redis-py",
		Type:    typeString,
		decode:  decodeRedisPy,
		release: deleteString,
	},
	// redlock-py: 22 random letters and digits under any name. Others write those too: it
	// is named only where the key says redlock-py.
	// Source: SPSCommerce/redlock-py redlock/__init__.py.
	{
		Name:    "redlock-py",
		Type:    typeString,
		matches: named("redlock-py"),
		decode: stringLock{
			kind: "22 random letters and digits, as redlock-py writes them",
			value: func(text string) bool {
				if len(text) != 22 || !every(text, isAlnum) {
					return false
				}
				v := varietyOf(text)
				return v.lower && v.upper && isRandomAlnum(text)
			},
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
}

// Prefixes of python-redis-lock.
const (
	pythonRedisLockPrefix  = "lock:"
	pythonRedisLockSignals = "lock-signal:"
)

var namesPottery = named("pottery")

var redisPyString = stringLock{
	kind:       "a UUID with a time, as redis-py writes it",
	value:      func(text string) bool { _, ok := timeOfUUIDHex(text); return ok },
	origin:     originAcquisition,
	confidence: locksteward.ConfidenceHigh,
	holder:     func(text string) locksteward.Holder { return locksteward.Holder{Instance: hostOfUUIDHex(text)} },
}

// decodeRedisPy decodes redis-py's lock, which other libraries use under names of
// their own.
func decodeRedisPy(s Sample) (Decoded, bool) {
	d, ok := redisPyString.decode(s)
	if ok {
		// To the second: the whole time would reveal most of the token. The token is
		// drawn before the library begins to wait.
		at, _ := timeOfUUIDHex(s.plain())
		d.Acquired, d.Asked = at.Truncate(time.Second), true
	}
	return d, ok
}

// uuidEpoch is the 100 ns steps from 1582-10-15, where the time in a version 1
// UUID begins, to 1970 (RFC 9562, section 5.1).
const uuidEpoch = 0x01b21dd213814000

// timeOfUUIDHex parses the time in the 32 hex digits of a version 1 UUID, if it
// is plausible: of random hex digits, one text in about 2,500 passes.
func timeOfUUIDHex(text string) (time.Time, bool) {
	if len(text) != 32 || !isLowerHex(text) || text[12] != '1' || strings.IndexByte("89ab", text[16]) < 0 {
		return time.Time{}, false
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return time.Time{}, false
	}
	low := int64(raw[0])<<24 | int64(raw[1])<<16 | int64(raw[2])<<8 | int64(raw[3])
	mid := int64(raw[4])<<8 | int64(raw[5])
	high := int64(raw[6]&0x0f)<<8 | int64(raw[7])
	at := time.UnixMicro(((high<<48 | mid<<32 | low) - uuidEpoch) / 10).UTC()
	return at, at.After(firstTime) && at.Before(lastTime)
}

// hostOfUUIDHex is the network address in a version 1 UUID: the same for all
// processes of a host. A drawn one (multicast bit) says nothing.
func hostOfUUIDHex(text string) string {
	node := text[20:]
	if first, err := hex.DecodeString(node[:2]); err != nil || first[0]&1 == 1 {
		return ""
	}
	parts := make([]string, 0, 6)
	for i := 0; i < len(node); i += 2 {
		parts = append(parts, node[i:i+2])
	}
	return "mac " + strings.Join(parts, ":")
}

func decodeHuey(s Sample) (Decoded, bool) {
	d := Decoded{
		Confidence: locksteward.ConfidenceHigh, Identity: lineage(s), Count: 1, Waiters: -1,
		SharedToken: true, TokenKind: "a one-digit number",
	}
	if whole(s) {
		return d, strings.HasPrefix(s.Key, "huey.r.") && isHueyHeld(string(s.Value))
	}
	if s.Type != typeHash || s.TooLarge || !strings.HasPrefix(s.Key, "huey.results.") {
		return Decoded{}, false
	}
	held := int64(0)
	for field, value := range s.Fields {
		if i := strings.Index(field, ".lock."); i > 0 && isHueyHeld(value) {
			held++
		}
	}
	d.Count = held // locks in this one hash
	return d, held > 0
}

// isHueyHeld matches "1", bare or as pickle writes it in any of its protocols.
func isHueyHeld(value string) bool {
	switch value {
	case "1", "V1\np0\n.", "X\x01\x00\x00\x001q\x00.", "\x80\x02X\x01\x00\x00\x001q\x00.", "\x80\x03X\x01\x00\x00\x001q\x00.",
		"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x011\x94.", "\x80\x05\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x011\x94.":
		return true
	}
	return false
}
