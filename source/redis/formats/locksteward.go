package formats

import (
	"cmp"
	_ "embed" // for the script
	"math"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// Locksteward is the name of the format of lock/, our own library.
const Locksteward = "locksteward"

//go:embed locksteward.lua
var lockstewardLua string

// lockstewardFormat is a string "ls2:<id>:<secret>" with metadata in a key beside
// it. The metadata counts only if it is of the same hold; without it the lock is
// judged by its own value.
// Source: lock/record.
var lockstewardFormat = Format{
	Name: Locksteward,
	Type: typeString,
	decode: func(s Sample) (Decoded, bool) {
		if !whole(s) {
			return Decoded{}, false
		}
		id, ok := record.ParseValue(s.Value)
		if !ok {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   locksteward.IdentityStrong,
			Count:      1,
			Waiters:    -1, // in keys of their own
			TokenKind:  "an acquisition id and a random secret",
		}
		if m := s.Meta; m != nil && m.ID == id {
			d.Claim = claimOf(m)
			d.Holder = holderOf(m)
			d.Count = max(1, m.Holds)
			d.Fence = m.Fence
			d.RenewEvery = d.Claim.RenewEvery
		}
		return d, true
	},
	Facts: locksteward.LibraryFacts{NoTTLCause: locksteward.NewMessage("library.locksteward-removed-ttl")},
	// Removes lock and metadata, and notifies the first waiters and the process that
	// held the lock. The fence and the queue stay.
	release: func(s Sample, p plan) (Command, error) {
		id, _ := record.ParseValue(s.Value)
		names := record.NamesOf(p.prefix, s.Key)
		return p.command(lockstewardLua, []string{names.Hold, names.Queue, names.Waiter},
			s.Value, id, record.InstanceKey(p.prefix, ""), names.Wake+":", record.Message{Kind: record.MessageLost, ID: id}.String(), record.Grace.Milliseconds(),
		), nil
	},
	NoUndo: "the release notifies its holder at once that the lock is lost, so putting the key back would keep others out for nothing",
}

func holderOf(m *record.Meta) locksteward.Holder {
	return locksteward.Holder{App: m.App, Host: m.Host, PID: m.PID, Session: m.Session, Instance: m.Instance}
}

// claimOf converts the milliseconds of the metadata to Go's times. Any client may
// have written them, so a time that no clock can show counts as not given.
func claimOf(m *record.Meta) *locksteward.Claim {
	c := &locksteward.Claim{
		Version:       m.V,
		ID:            m.ID,
		Class:         m.Class,
		Purpose:       m.Purpose,
		Acquired:      timeOf(m.Acquired),
		Renewed:       timeOf(max(m.Renewed, m.Acquired)),
		Progress:      timeOf(m.Progress),
		TTL:           durationOf(m.TTL),
		RenewEvery:    durationOf(m.RenewEvery),
		Expect:        durationOf(m.Expect),
		MaxHold:       durationOf(m.MaxHold),
		Renewals:      max(0, m.Renewals),
		RenewFailures: max(0, m.RenewFailures),
		Fence:         max(0, m.Fence),
		Holds:         max(0, m.Holds),
		Trace:         m.Trace,
		Session:       cmp.Or(m.Session, m.ID),
		Holding:       m.Holding,

		EndsWithHeartbeat: m.EndsWithHeartbeat == 1,
	}
	return c
}

// lastMilli is the end of the year 9999, the last that JSON can express.
var lastMilli = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC).UnixMilli()

func timeOf(ms int64) time.Time {
	if ms <= 0 || ms > lastMilli {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func durationOf(ms int64) time.Duration {
	if ms <= 0 {
		return 0
	}
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
