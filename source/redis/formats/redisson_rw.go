package formats

import (
	_ "embed" // for the script
	"fmt"
	"maps"
	"strings"
)

//go:embed redisson_rw.lua
var redissonRWLua string

// maxHolds bounds how many re-entrant read holds of one thread a release
// removes: each has a key of its own.
const maxHolds = 64

// redissonRW is what the hash of a read/write lock says. In mode write the
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

// Modes of locks that have both, as Decoded.Mode.
const (
	modeRead  = "read"
	modeWrite = "write"
)

func redissonRWChannel(name string) string { return redissonPrefixed("redisson_rwlock", name) }

// releaseRedissonRW removes the whole hash, of which exactly one owner has all
// holds, with the keys that keep its read holds' expiry.
func releaseRedissonRW(s Sample, p plan, message string) (Command, error) {
	rw, _ := redissonRWOf(s) // planRelease has recognised it
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

// redissonHoldKey knows {name}:<uuid>:<tid>:rwlock_timeout:<i>, one for each read
// hold.
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
