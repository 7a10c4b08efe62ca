package formats

import (
	_ "embed" // for the script
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

//go:embed bullmq_dedup.lua
var bullMQDedupLua string

// nodeFormats are the lock libraries of Node.js.
var nodeFormats = []*Format{
	// The lock of a BullMQ job that a worker processes: the worker's UUID and a number
	// that grows with each job it fetches.
	// Source: taskforcesh/bullmq src/classes/{worker,lock-manager}.ts, src/commands/{moveToActive-11,extendLock-2}.lua.
	{
		Name:    "bullmq-job",
		Type:    typeString,
		matches: func(key string) bool { _, ok := bullLock(key); return ok },
		decode: func(s Sample) (Decoded, bool) {
			text := string(s.Value)
			if !whole(s) || !isWorkerToken(text) {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   locksteward.IdentityStrong,
				// Enough to tell workers apart; more would reveal the token.
				Holder:    locksteward.Holder{Instance: "worker " + text[:8]},
				Count:     1,
				Waiters:   -1, // nobody waits: other workers look for stalled jobs
				TokenKind: "a BullMQ worker's UUID and a number",
			}
			// Java programs write a UUID and a thread id, which come again.
			if own, _ := bullLock(s.Key); !own {
				d.Confidence, d.Identity = locksteward.ConfidenceMedium, lineage(s)
			}
			return d, true
		},
		RenewEvery:   bullRenewEvery,
		release:      deleteString,
		auxiliaryKey: bullAuxiliaryKey,
	},
	// The lock of a job of Bull 3 and 4: one UUID per queue object, for all its jobs.
	// With a prefix of its own it is any UUID under a name.
	// Source: OptimalBits/bull lib/queue.js (token), lib/commands/{takeLock-1,extendLock-2}.lua.
	{
		Name:    "bull-job",
		Type:    typeString,
		matches: func(key string) bool { own, ok := bullLock(key); return own && ok },
		bare:    true,
		decode: stringLock{
			kind:       "a UUID of a Bull queue object",
			value:      isLowerUUID,
			origin:     originProcess,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		RenewEvery: bullRenewEvery,
		release:    deleteString,
	},
	// BullMQ's deduplication, Bull's debouncing too: the id of the job that keeps
	// others of the same kind away, under <prefix>:<queue>:de:<id>. By design it has no
	// TTL unless one is requested, and goes when its job is over. A prefix of one's own
	// is not claimed: messages:home:de:title is German.
	// Source: taskforcesh/bullmq src/commands/includes/{deduplicateJob,removeDeduplicationKeyIfNeededOnFinalization}.lua.
	{
		Name: "bullmq-dedup",
		Type: typeString,
		matches: func(key string) bool {
			_, rest, ok := bullQueue(key)
			return ok && prefixed("de:")(rest)
		},
		names: []namePattern{{prefix: "bull", infix: ":de:"}, {prefix: "{bull", infix: ":de:"}},
		decode: func(s Sample) (Decoded, bool) {
			text := string(s.Value)
			if !whole(s) || text == "" || !isPrintableText(text) || strings.ContainsAny(text, " {}[]\"") {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   locksteward.IdentityStrong,
				Count:      1,
				Waiters:    -1, // nobody waits: a second job is dropped
				TokenKind:  "the id of a BullMQ job",
			}
			if !isFreshUUID(text) { // counted, and from 1 again in an emptied queue, or given
				d.Identity = lineage(s)
			}
			return d, true
		},
		Facts: locksteward.LibraryFacts{NoTTLByDesign: true},
		release: func(s Sample, p plan) (Command, error) {
			queue, _, _ := bullQueue(s.Key)
			return p.command(bullMQDedupLua, nil, s.Value, queue), nil
		},
		NoPlaceholder: noPlaceholderTask,
		Grants:        func(glob string) (keys, channels []string) { return globsOfQueue(glob, ":de:", ":*"), nil },
	},
	// redis-semaphore's Mutex and RedlockMutex: the identifier of a lock object under
	// mutex:<name>.
	// Source: swarthy/redis-semaphore src/RedisMutex.ts, src/mutex/*.
	{
		Name:    "redis-semaphore-mutex",
		Type:    typeString,
		matches: prefixed("mutex:"),
		bare:    true,
		decode: stringLock{
			kind:       "a UUID of a redis-semaphore object",
			value:      func(text string) bool { _, ok := redisSemaphoreHolder(text); return ok },
			origin:     originProcess,
			confidence: locksteward.ConfidenceMedium,
			holder:     func(text string) locksteward.Holder { holder, _ := redisSemaphoreHolder(text); return holder },
		}.decode,
		RenewEvery: redisSemaphoreRenewEvery,
		release:    deleteString,
	},
	// redis-semaphore's Semaphore and MultiSemaphore: a sorted set semaphore:<name> with
	// an identifier for each permit (<identifier>_<i> for several of one holder) and the
	// ms of its last renewal by its holder's clock. The key ends one lockTimeout after
	// the last.
	// Source: swarthy/redis-semaphore src/{semaphore,multiSemaphore}/*.
	{
		Name:    "redis-semaphore-semaphore",
		matches: prefixed("semaphore:"),
		decode: func(s Sample) (Decoded, bool) {
			holders, ok := redisSemaphoreHolders(s)
			if !ok {
				return Decoded{}, false
			}
			d := Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   lineage(s), // an object keeps its identifier
				Count:      s.Size,
				Waiters:    -1, // they poll
				TokenKind:  "a UUID of a redis-semaphore object for each permit",
			}
			if len(holders) == 1 { // of several none is the holder
				d.Holder = holders[s.Members[0].Name[:uuidLength]]
			}
			return d, true
		},
		RenewEvery: redisSemaphoreRenewEvery,
		release: func(s Sample, p plan) (Command, error) {
			if holders, _ := redisSemaphoreHolders(s); len(holders) != 1 {
				return Command{}, p.refuse("%d hold it together, and nobody can say which of them is dead; the permit of one that is ends by itself", len(holders))
			}
			// All members with their scores: what Symfony's needs as well.
			return p.command(symfonyLockLua, nil, p.memberArgs(s)...), nil
		},
		NoPlaceholder: noPlaceholderShared,
	},
	// redis-lock of npm, once errorception's: under lock.<name> the time in ms when the
	// lock ends by its holder's clock. Two holders may write the same, so it does not
	// tell one holder from another.
	// Source: errorception/redis-lock index.js.
	{
		Name:    "errorception-redis-lock",
		Type:    typeString,
		matches: prefixed("lock."),
		bare:    true,
		decode: stringLock{
			kind: "a point in time in milliseconds, which names no holder",
			value: func(text string) bool {
				if len(text) != 13 {
					return false
				}
				_, ok := timeShape("", text)
				return ok
			},
			origin:     originTime,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release:       deleteString,
		NoPlaceholder: noPlaceholderTime,
	},
	// node-redis-lock: one UUID per lock object under [<namespace>:]<name>. That is
	// anybody's layout, so it is claimed only where the name says node-redis-lock.
	// Source: Philmod/node-redis-lock lib/index.js.
	{
		Name:    "node-redis-lock",
		Type:    typeString,
		matches: named("node-redis-lock"),
		bare:    true,
		decode: stringLock{
			kind:       "a UUID of a node-redis-lock object",
			value:      isRandomUUID,
			origin:     originProcess,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// node-redlock 4 and 5 and @sesamecare-oss/redlock: 16 random bytes in hex, under any
	// name, on several keys for several resources and on each server of the quorum,
	// always with a TTL. A UUID without dashes is as long: where the name does not say
	// redlock it is left to other formats.
	// Source: mike-marcacci/node-redlock redlock.js (_random), src/index.ts; sesamecare/redlock src/index.ts.
	{
		Name:     "node-redlock",
		Type:     typeString,
		matches:  named("redlock"),
		needsTTL: true,
		bare:     true,
		decode: stringLock{
			kind:       "16 random bytes in hex, as node-redlock writes them",
			value:      func(text string) bool { return isHex32(text) && isRandomHex(text) },
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
	// ioredis-lock: one UUID per Lock object under any name. UUIDs are everybody's, also
	// those with a time (version 1) of its version 4.0.0, so it is named only where the
	// key says ioredis-lock. The time is that of the object, not of the lock.
	// Source: microfleet/ioredis-lock src/lock.js.
	{
		Name:    "ioredis-lock",
		Type:    typeString,
		matches: named("ioredis-lock"),
		bare:    true,
		decode: stringLock{
			kind: "a UUID of an ioredis-lock object",
			value: func(text string) bool {
				_, timed := timeOfUUIDHex(strings.ReplaceAll(text, "-", ""))
				return isLowerUUID(text) && (timed || isRandomUUID(text))
			},
			origin:     originProcess,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
}

// The keys of Bull and BullMQ are <prefix>:<queue>:<rest> (OptimalBits/bull
// lib/queue.js, taskforcesh/bullmq src/classes/queue-keys.ts). The prefix is "bull"
// unless configured, in braces for a Cluster.

// bullRenewEvery is half of lockDuration's default; BullMQ may renew sooner.
const bullRenewEvery = 15 * time.Second

// bullLock matches <prefix>:<queue>:<job>:lock. own says that the prefix is one of
// the libraries' own, so that the name tells whose the key is.
func bullLock(key string) (own, ok bool) {
	rest, ok := strings.CutSuffix(key, ":lock")
	if !ok || strings.Count(rest, ":") < 2 || rest[0] == ':' || rest[len(rest)-1] == ':' {
		return false, false
	}
	prefix, _, _ := strings.Cut(rest, ":")
	return isBullPrefix(prefix), true
}

func isBullPrefix(prefix string) bool {
	switch prefix {
	case "bull", "{bull}", "bullmq", "{bullmq}":
		return true
	}
	return false
}

// bullQueue splits <prefix>:<queue>:<rest> with a prefix of the libraries' own.
func bullQueue(key string) (queue, rest string, ok bool) {
	prefix, rest, ok := strings.Cut(key, ":")
	if !ok || !isBullPrefix(prefix) {
		return "", "", false
	}
	name, rest, ok := strings.Cut(rest, ":")
	return prefix + ":" + name + ":", rest, ok && name != ""
}

// bullAuxiliaryKey matches the other keys of a queue, and the jobs with an id that
// the library gave.
func bullAuxiliaryKey(key string) (string, bool) {
	_, rest, ok := bullQueue(key)
	if !ok {
		return "", false
	}
	switch rest {
	case "active", "wait", "waiting-children", "paused", "id", "delayed", "prioritized", "priority", "completed", "failed",
		"stalled", "stalled-check", "repeat", "limiter", "meta", "meta-paused", "events", "pc", "marker":
		return "", true
	}
	return "", isDigits(rest)
}

// isWorkerToken matches <worker's uuid>:<number>.
func isWorkerToken(s string) bool {
	return len(s) > uuidLength+1 && isLowerUUID(s[:uuidLength]) && s[uuidLength] == ':' && isDigits(s[uuidLength+1:])
}

// queueAuxiliaryKey matches the bookkeeping of Node's job queues, whatever their prefix.
func queueAuxiliaryKey(key string) (lock string, ok bool) {
	if strings.HasSuffix(key, ":stalled") || strings.HasSuffix(key, ":stalled-check") { // Bull, BullMQ
		return "", true
	}
	rest, ok := strings.CutPrefix(key, "bq:") // bee-queue
	return "", ok && (strings.HasSuffix(rest, ":stallBlock") || strings.HasSuffix(rest, ":stalling"))
}

// redisSemaphoreRenewEvery is 80 % of lockTimeout's default of 10 s
// (swarthy/redis-semaphore src/{Lock,RedisMutex}.ts).
const redisSemaphoreRenewEvery = 8 * time.Second

// redisSemaphoreHolder splits <uuid>[-<suffix>]: a UUID per lock object, with a
// suffix that the application may add. Where the suffix is a host and a process it
// names the holder.
func redisSemaphoreHolder(text string) (locksteward.Holder, bool) {
	if len(text) < uuidLength || !isLowerUUID(text[:uuidLength]) {
		return locksteward.Holder{}, false
	}
	suffix := text[uuidLength:]
	if suffix == "" {
		return locksteward.Holder{}, true
	}
	suffix, ok := strings.CutPrefix(suffix, "-")
	if !ok || suffix == "" || !isPrintableText(suffix) {
		return locksteward.Holder{}, false
	}
	holder, _ := hostAndPID(suffix)
	return holder, true
}

// redisSemaphoreHolders returns the holders of permits, by their UUIDs.
func redisSemaphoreHolders(s Sample) (map[string]locksteward.Holder, bool) {
	if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 || int64(len(s.Members)) != s.Size {
		return nil, false
	}
	holders := map[string]locksteward.Holder{}
	for _, m := range s.Members {
		identifier := m.Name
		if before, permit, ok := cutLast(identifier, "_"); ok && isDigits(permit) {
			identifier = before
		}
		holder, ok := redisSemaphoreHolder(identifier)
		if !ok || !isSymfonyTime(m.Score) {
			return nil, false
		}
		holders[strings.Clone(identifier[:uuidLength])] = holder
	}
	return holders, true
}
