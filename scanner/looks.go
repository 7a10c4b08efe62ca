package scanner

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// looksPerPart is how many looks lie together.
const looksPerPart = 1024

// looks is a list that gives back what is behind the reader: at its end the
// largest target has all its locks in the table as well.
type looks struct {
	parts [][]brief
}

// brief is a look as a pass keeps it: most locks of a large target are as they
// were at the last look, but for the time.
type brief struct {
	// rest is the look, or the last one of the table where as says that it is the
	// same but for what stands here. An entry of the table is not changed before the
	// pass is merged.
	rest     *look
	at       int64
	expireAt int64
	ttl      time.Duration
	waiters  int32
	as       bool
}

// briefly keeps l; last is what the table has of the key, nil for nothing.
func briefly(l, last *look) brief {
	if last != nil && l.isAs(last) {
		return brief{rest: last, at: l.at, expireAt: l.expireAt, ttl: l.ttl, waiters: l.waiters, as: true}
	}
	return brief{rest: new(*l)}
}

// isAs says that a look tells the same as the last one, but for what a brief has
// of its own, what is not asked again (how long the key was idle) and what other
// keys tell (the heartbeat), which it has not yet.
func (l *look) isAs(last *look) bool {
	if l.idle != unknownIdle || l.instance != nil || *l.kind != *last.kind || !equalClaims(l.claim, last.claim) {
		return false
	}
	if l.holder != last.holder && (l.holder == nil || last.holder == nil || *l.holder != *last.holder) {
		return false
	}
	with := *last
	with.at, with.expireAt, with.ttl, with.waiters = l.at, l.expireAt, l.ttl, l.waiters
	with.idle, with.instance = l.idle, nil
	with.kind, with.claim, with.holder = l.kind, l.claim, l.holder
	return with == *l
}

// unknownIdle is the idle time of a key of which it was not asked.
const unknownIdle = -1

func (g *brief) look() look {
	l := *g.rest
	if g.as {
		l.at, l.expireAt, l.ttl, l.waiters = g.at, g.expireAt, g.ttl, g.waiters
		l.idle, l.instance = unknownIdle, nil
	}
	return l
}

func equalClaims(a, b *locksteward.Claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.ID == b.ID && a.Class == b.Class && a.Purpose == b.Purpose &&
		a.Acquired.Equal(b.Acquired) && a.Renewed.Equal(b.Renewed) && a.Progress.Equal(b.Progress) &&
		a.TTL == b.TTL && a.RenewEvery == b.RenewEvery && a.Expect == b.Expect && a.MaxHold == b.MaxHold &&
		a.Renewals == b.Renewals && a.RenewFailures == b.RenewFailures && a.Fence == b.Fence &&
		a.Holds == b.Holds && a.Contended == b.Contended && a.Trace == b.Trace && a.Session == b.Session &&
		slices.Equal(a.Holding, b.Holding) && a.EndsWithHeartbeat == b.EndsWithHeartbeat
}

func (s *looks) len() int {
	if len(s.parts) == 0 {
		return 0
	}
	return (len(s.parts)-1)*looksPerPart + len(s.parts[len(s.parts)-1])
}

func (s *looks) add(g brief) {
	if s.len()%looksPerPart == 0 {
		s.parts = append(s.parts, make([]brief, 0, looksPerPart))
	}
	last := &s.parts[len(s.parts)-1]
	*last = append(*last, g)
}

// set replaces one; its part was not read yet.
func (s *looks) set(i int, g brief) { s.parts[i/looksPerPart][i%looksPerPart] = g }

// all goes through them; each part is given back once it was read if drop says
// so.
func (s *looks) all(drop bool) func(yield func(look) bool) {
	return func(yield func(look) bool) {
		for i := range s.parts {
			for k := range s.parts[i] {
				if !yield(s.parts[i][k].look()) {
					return
				}
			}
			if drop {
				s.parts[i] = nil
			}
		}
	}
}
