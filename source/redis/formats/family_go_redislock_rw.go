package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed family_go_redislock_rw.lua
var goRedisLockRWLua string

// familyGoRedisLockRW is go-redislock's read/write lock: a hash with the mode,
// the writer and its count, and a count for each reader. The writer may read too.
// Source: jefferyjob/go-redislock lua/{readLock,readUnLock,writeLock,writeUnLock}.lua.
var familyGoRedisLockRW = &family{
	name: "go-redislock-rw",
	stand: func(owner string) stand {
		return stand{Type: typeHash, Name: "writer", Parts: []string{"writer", owner, "mode", modeWrite, "wcount", "1"}}
	},
	recognise: func(s Sample) (Decoded, bool) {
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
			return Command{}, p.refuseSome(n, "read locks")
		}
		return p.command(goRedisLockRWLua, nil, fieldArgs(s)...), nil
	},
}

// goRedisLockRWState is what such a hash says.
type goRedisLockRWState struct {
	mode    string
	count   int64 // of the writer, or of all readers
	holders map[string]bool
}

// goRedisLockRWOf reads a hash whose counts agree with each other.
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
