package lock

import "time"

// instant is a moment on both clocks of this machine. The monotonic one does not jump, but on Linux it stands still
// while the machine is suspended; the wall clock goes on then, but may be set. A lease is over when either says so.
type instant struct {
	mono time.Duration // since the process's base
	wall int64         // ns since 1970
}

func (i instant) add(d time.Duration) instant { return instant{i.mono + d, i.wall + int64(d)} }

// reached says whether at least one clock has come to u.
func (i instant) reached(u instant) bool { return i.mono >= u.mono || i.wall >= u.wall }

// until returns how long it is to u by the clock that gets there first.
func (i instant) until(u instant) time.Duration {
	return min(u.mono-i.mono, time.Duration(u.wall-i.wall))
}

// later and earlier return the later and the earlier one of two deadlines, each clock on its own.
func (i instant) later(u instant) instant { return instant{max(i.mono, u.mono), max(i.wall, u.wall)} }

func (i instant) earlier(u instant) instant { return instant{min(i.mono, u.mono), min(i.wall, u.wall)} }

// clock reads both clocks. Its one field is replaced in tests.
type clock struct {
	now func() instant
}

func newClock() clock {
	base := time.Now()
	return clock{now: func() instant {
		now := time.Now()
		return instant{mono: now.Sub(base), wall: now.UnixNano()}
	}}
}

// drift is what a lease loses at the local end: clocks may run apart by 1 %, and the server expires with a
// resolution of milliseconds.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// least is what must be left of a lease for an acquire to be worth having.
func least(ttl time.Duration) time.Duration { return ttl / 10 }
