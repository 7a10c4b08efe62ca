package formats

import (
	_ "embed" // for the script
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

//go:embed distributedlock.lua
var distributedLockLua string

// dotnetFormats are the lock libraries of .NET.
var dotnetFormats = []*Format{
	// Hangfire.Redis.StackExchange: the UUID of the process under {hangfire}:<resource>.
	// Source: marcoCasamento/Hangfire.Redis.StackExchange RedisLock.cs.
	{
		Name:    "hangfire",
		Type:    typeString,
		matches: prefixed("{hangfire}:"),
		decode: stringLock{
			kind:       "a UUID of a Hangfire process",
			value:      isUUID,
			origin:     originProcess,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		RenewEvery: 15 * time.Second,
		release:    deleteString,
	},
	// RedLock.net: a UUID under redlock:<resource>. It renews at half of the lease,
	// which the value does not contain. pottery (Python) has the same layout: under a
	// key that names it, it is pottery-redlock.
	// Source: samcook/RedLock.net RedLockNet.SERedis/RedLock.cs.
	{
		Name:    "redlock-net",
		Type:    typeString,
		matches: func(key string) bool { return prefixed("redlock:")(key) && !namesPottery(key) },
		decode: stringLock{
			kind:       "a UUID, as RedLock.net and pottery write it",
			value:      isFreshUUID,
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceHigh,
		}.decode,
		release: deleteString,
	},
	// DistributedLock's mutex, and the writer of its reader/writer lock under
	// <name>.writer.
	// Source: madelson/DistributedLock Primitives/{RedisMutexPrimitive,RedisReaderWriterLockPrimitives}.cs.
	{
		Name:  "distributedlock-mutex",
		Type:  typeString,
		names: []namePattern{{suffix: ".writer"}},
		decode: func(s Sample) (Decoded, bool) {
			d, ok := distributedLockString.decode(s)
			if ok && strings.HasSuffix(s.Key, ".writer") {
				d.Mode = modeWrite
			}
			return d, ok
		},
		RenewEvery: distributedLockRenew,
		release: func(s Sample, p plan) (Command, error) {
			if strings.HasSuffix(string(s.Value), writerWaiting) {
				return Command{}, p.refuse("a writer waits for the readers here and nobody holds it for writing yet")
			}
			return deleteString(s, p)
		},
	},
	// Readers of DistributedLock's reader/writer lock: a set with an id for each.
	// Source: madelson/DistributedLock Primitives/RedisReaderWriterLockPrimitives.cs.
	{
		Name:    "distributedlock-readers",
		Type:    typeSet,
		matches: func(key string) bool { return strings.HasSuffix(key, ".readers") },
		names:   []namePattern{{suffix: ".readers"}},
		decode: func(s Sample) (Decoded, bool) {
			d, ok := distributedLockMembers(s)
			d.Mode = modeRead
			return d, ok
		},
		RenewEvery:    distributedLockRenew,
		release:       releaseDistributedLockMember,
		NoPlaceholder: noPlaceholderShared,
	},
	// DistributedLock's semaphore: a sorted set with an id for each ticket and the
	// time in ms at which it runs out.
	// Source: madelson/DistributedLock Primitives/RedisSemaphorePrimitive.cs.
	{
		Name:          "distributedlock-semaphore",
		Type:          typeZSet,
		decode:        distributedLockMembers,
		RenewEvery:    distributedLockRenew,
		release:       releaseDistributedLockMember,
		NoPlaceholder: noPlaceholderShared,
	},
}

// The locks of DistributedLock have in common an id <machine>_<process id>_<32 hex
// digits> for each acquisition, a TTL of 30 s and a renewal at 30 % of it
// (madelson/DistributedLock src/DistributedLock.Redis/RedLock/RedLockHelper.cs).
const (
	distributedLockKind  = "machine, process and UUID, as DistributedLock writes them"
	distributedLockRenew = 9 * time.Second
	writerWaiting        = "_WRITERWAITING"
)

var distributedLockString = stringLock{
	kind:       distributedLockKind,
	value:      func(s string) bool { _, ok := distributedLockID(strings.TrimSuffix(s, writerWaiting)); return ok },
	origin:     originAcquisition,
	confidence: locksteward.ConfidenceHigh,
	holder: func(s string) locksteward.Holder {
		holder, _ := distributedLockID(strings.TrimSuffix(s, writerWaiting))
		return holder
	},
}

// distributedLockID splits the id of one acquisition.
func distributedLockID(s string) (locksteward.Holder, bool) {
	rest, id, ok := cutLast(s, "_")
	machine, pid, found := cutLast(rest, "_")
	if !ok || !found || !isHex32(id) || machine == "" || !isDigits(pid) || len(pid) > 10 || !isPrintableText(machine) {
		return locksteward.Holder{}, false
	}
	n, err := strconv.ParseInt(pid, 10, 32)
	return locksteward.Holder{Host: machine, PID: int(n)}, err == nil && n > 0
}

// distributedLockMembers decodes locks that several hold together, one member
// each.
func distributedLockMembers(s Sample) (Decoded, bool) {
	if s.TooLarge || len(s.Members) == 0 {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceHigh,
		Identity:   locksteward.IdentityStrong,
		Count:      int64(len(s.Members)),
		Waiters:    -1, // they poll
		TokenKind:  distributedLockKind,
	}
	for _, m := range s.Members {
		holder, ok := distributedLockID(m.Name)
		if !ok {
			return Decoded{}, false
		}
		d.Holder = holder
	}
	if len(s.Members) > 1 {
		d.Holder = locksteward.Holder{} // several: none of them is the holder
	}
	return d, true
}

// releaseDistributedLockMember removes the one member there is.
func releaseDistributedLockMember(s Sample, p plan) (Command, error) {
	if len(s.Members) > 1 {
		return Command{}, p.refuse("%d hold it together and nobody can say which of them is dead", len(s.Members))
	}
	var score any = ""
	if s.Type == typeZSet {
		score = p.volatile(formatScore(s.Members[0].Score))
	}
	return p.command(distributedLockLua, nil, s.Type, s.Members[0].Name, score), nil
}
