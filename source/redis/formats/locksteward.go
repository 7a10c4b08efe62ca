package formats

import (
	"cmp"
	_ "embed" // for the script
	"math"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// Locksteward is the name of the dialect of lock/, our own library.
const Locksteward = "locksteward"

//go:embed locksteward.lua
var lockstewardLua string

// lockstewardDialect is a string "ls1:<id>:<secret>" with metadata beside it.
type lockstewardDialect struct{}

// Name returns "locksteward".
func (lockstewardDialect) Name() string { return Locksteward }

// Recognise decodes a value of our format. The metadata counts only if it is
// of the same acquisition; without it the lock is judged by its own shape.
func (lockstewardDialect) Recognise(s Sample) (Decoded, bool) {
	if !whole(s) {
		return Decoded{}, false
	}
	id, ok := record.ParseValue(s.Value)
	if !ok {
		return Decoded{}, false
	}
	d := Decoded{
		Dialect:    Locksteward,
		Confidence: locksteward.ConfidenceHigh,
		Identity:   locksteward.IdentityStrong,
		Count:      1,
		Waiters:    -1, // they stand in keys of their own
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
}

// Release removes lock and metadata, wakes the next waiter and tells the
// process that held it. The fence stays.
func (lockstewardDialect) Release(s Sample, r Release) (Command, error) {
	p, err := planRelease(Locksteward, s, r)
	if err != nil {
		return Command{}, err
	}
	return lockstewardDialect{}.command(s, p), nil
}

// command is the script for a sample that was recognised, or for none when what
// stands in a lock's place is lifted.
func (lockstewardDialect) command(s Sample, p plan) Command {
	id, _ := record.ParseValue(s.Value)
	return p.command(lockstewardLua,
		[]string{record.Companion(p.prefix, record.KindMeta, s.Key)},
		s.Value, id,
		record.Companion(p.prefix, record.KindWake, s.Key), record.WakeMessage,
		record.InstanceKey(p.prefix, ""), record.LostMessage(id),
	)
}

func holderOf(m *record.Meta) locksteward.Holder {
	return locksteward.Holder{App: m.App, Host: m.Host, PID: m.PID, Session: m.Session, Instance: m.Instance}
}

// claimOf turns the wire's milliseconds into Go's times. Anybody may have
// written them, so what no clock can show is "not said".
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
		Contended:     max(0, m.Contended),
		Trace:         m.Trace,
		Session:       cmp.Or(m.Session, m.ID),
		Holding:       m.Holding,

		EndsWithHeartbeat: m.EndsWithHeartbeat == 1,
	}
	return c
}

// lastMilli is the end of the year 9999, the last that JSON can show.
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

var _ Dialect = lockstewardDialect{}
