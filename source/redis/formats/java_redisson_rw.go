package formats

import (
	_ "embed" // for the script
	"fmt"
	"maps"
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed redisson_rw.lua
var redissonRWLua string

// redissonRWFormats are the two modes of Redisson's ReadWriteLock.
var redissonRWFormats = []*Format{
	// ReadWriteLock held for writing: `mode` and one field <uuid>:<thread>:write,
	// beside which the same thread may read.
	// Source: RedissonWriteLock.java.
	{
		Name: "redisson-rw-write",
		Type: typeHash,
		decode: func(s Sample) (Decoded, bool) {
			rw, ok := redissonRWOf(s)
			if !ok || rw.mode != modeWrite {
				return Decoded{}, false
			}
			d := redissonDecoded(s, rw.writer, rw.writes)
			d.Mode = modeWrite
			return d, true
		},
		RenewEvery:   redissonRenewEvery,
		Facts:        locksteward.LibraryFacts{RenewalsPerLease: redissonPerLease},
		release:      func(s Sample, p plan) (Command, error) { return releaseRedissonRW(s, p, redissonFreeAll) },
		placeholder:  hashPlaceholder(":write", "mode", modeWrite),
		waitersSleep: true,
		Grants:       redissonRWGrants,
	},
	// ReadWriteLock held for reading: `mode` and one field <uuid>:<thread> for each
	// reader. Each read hold has a key of its own.
	// Source: RedissonReadLock.java.
	{
		Name: "redisson-rw-read",
		Type: typeHash,
		decode: func(s Sample) (Decoded, bool) {
			rw, ok := redissonRWOf(s)
			if !ok || rw.mode != modeRead {
				return Decoded{}, false
			}
			var (
				reader redissonOwner
				holds  int64
			)
			for owner, count := range rw.readers {
				reader, holds = owner, holds+count
			}
			d := redissonDecoded(s, reader, holds)
			if len(rw.readers) > 1 {
				d.Holder = redissonOwner{}.holder() // several: none of them is the holder
			}
			d.Mode = modeRead
			return d, true
		},
		RenewEvery:    redissonRenewEvery,
		Facts:         locksteward.LibraryFacts{RenewalsPerLease: redissonPerLease},
		release:       func(s Sample, p plan) (Command, error) { return releaseRedissonRW(s, p, redissonFree) },
		NoPlaceholder: noPlaceholderShared,
		auxiliaryKey:  redissonHoldKey,
		Grants:        redissonRWGrants,
	},
}

// redissonRWGrants: each read hold has a key of its own.
func redissonRWGrants(glob string) (keys, channels []string) {
	return []string{"{" + glob + "}:*:rwlock_timeout:*", glob + ":*:rwlock_timeout:*"}, redissonGlobs("redisson_rwlock", glob)
}

// maxHolds bounds how many re-entrant read holds of one thread a release
// removes: each has a key of its own.
const maxHolds = 64

// redissonRW is the content of a read/write lock's hash. In mode write the
// writer may read as well; in mode read there are only readers.
type redissonRW struct {
	mode    string
	writer  redissonOwner // mode write
	writes  int64
	readers map[redissonOwner]int64
}

// redissonRWOf decodes `mode`, <uuid>:<tid> and <uuid>:<tid>:write.
func redissonRWOf(s Sample) (redissonRW, bool) {
	rw := redissonRW{mode: s.Fields["mode"], readers: map[redissonOwner]int64{}}
	if s.Type != typeHash || s.TooLarge || len(s.Fields) < 2 || rw.mode != modeRead && rw.mode != modeWrite {
		return redissonRW{}, false
	}
	for field, value := range s.Fields {
		if field == "mode" {
			continue
		}
		name, writes := strings.CutSuffix(field, ":write")
		owner, ok := redissonField(name)
		count, counted := redissonCount(value)
		switch {
		case !ok, !counted, writes && (rw.mode == modeRead || rw.writes > 0):
			return redissonRW{}, false
		case writes:
			rw.writer, rw.writes = owner, count
		default:
			rw.readers[owner] = count
		}
	}
	return rw, (rw.mode == modeWrite) == (rw.writes > 0)
}

func redissonRWChannel(name string) string { return redissonPrefixed("redisson_rwlock", name) }

// releaseRedissonRW removes the whole hash, of which exactly one owner has all
// holds, with the keys that keep its read holds' expiry.
func releaseRedissonRW(s Sample, p plan, message string) (Command, error) {
	rw, _ := redissonRWOf(s) // the plan has recognised it
	owners := maps.Clone(rw.readers)
	if rw.writes > 0 {
		owners[rw.writer] += 0
	}
	if len(owners) > 1 {
		return Command{}, p.refuse("%d threads hold it together and nobody can say which of them is dead; the holds of a dead reader run out by themselves when the others release", len(owners))
	}
	var keys []string
	for owner, holds := range rw.readers {
		if holds > maxHolds {
			return Command{}, p.refuse("one thread holds it %d times, which is more than the %d that are released at once", holds, maxHolds)
		}
		for i := range holds {
			keys = append(keys, redissonSuffixed(s.Key, owner.String())+fmt.Sprintf(":rwlock_timeout:%d", i+1))
		}
	}
	if !sameSlot(append([]string{s.Key}, keys...)...) {
		return Command{}, p.refuse("the keys beside it are in other slots of a Cluster, so one script cannot remove them")
	}
	args := append([]any{redissonRWChannel(s.Key), message}, fieldArgs(s)...)
	return p.command(redissonRWLua, keys, args...), nil
}

// redissonHoldKey matches {name}:<uuid>:<tid>:rwlock_timeout:<i>, one for each
// read hold.
func redissonHoldKey(key string) (string, bool) {
	rest, hold, ok := cutLast(key, ":rwlock_timeout:")
	if !ok || !isDigits(hold) {
		return "", false
	}
	rest, thread, ok := cutLast(rest, ":")
	if !ok || !isDigits(thread) || len(rest) < uuidLength+2 {
		return "", true // of no lock that has a name
	}
	return redissonBare(rest[:len(rest)-uuidLength-1]), true
}
