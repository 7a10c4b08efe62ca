package formats

import (
	_ "embed" // for the script
	"strconv"
	"time"

	"github.com/locksteward/locksteward"
)

// What the locks of DistributedLock (.NET) have in common: an id
// <machine>_<process id>_<32 hex digits> for each acquisition, a TTL of 30 s and
// a renewal at 30 % of it (madelson/DistributedLock
// src/DistributedLock.Redis/RedLock/RedLockHelper.cs).

const (
	distributedLockKind  = "machine, process and UUID, as DistributedLock writes them"
	distributedLockRenew = 9 * time.Second
	writerWaiting        = "_WRITERWAITING"
)

//go:embed distributedlock.lua
var distributedLockLua string

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
		RenewEvery: distributedLockRenew,
	}
	for _, m := range s.Members {
		holder, ok := distributedLockID(m.Name)
		if !ok {
			return Decoded{}, false
		}
		d.Holder = holder
	}
	if len(s.Members) > 1 {
		d.Holder = locksteward.Holder{} // several: none of them is the one
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
