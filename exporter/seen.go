package exporter

import (
	"time"

	"github.com/locksteward/locksteward"
)

// lockID names a lock key of a target.
type lockID struct {
	db  int
	key string
}

// seenLock is what is kept of one known lock between sweeps, to tell what is
// new about it and what the gauges are. There is one for each lock, so it stays
// small: names are numbers of the target's names.
type seenLock struct {
	firstSeen int64 // UnixNano; tells one hold from the next
	age       time.Duration
	marks     marks
	class     uint32
	node      uint32
	dialect   uint32
	waiters   int32
	pass      uint32 // the sweep that saw it last
	facts     facts
}

// facts are the yes-or-no part of a seenLock.
type facts uint8

const (
	hasClaim facts = 1 << iota
	hasAge
	hasWaiters
	hasExpect
	isOverdue
	isWithoutTTL
)

func (f facts) has(want facts) bool { return f&want != 0 }

// marks are the readings of a hold's own counters.
type marks struct {
	renewals  int64
	failures  int64
	contended int64
}

// since returns by how much m grew from before; a reading that went back is
// another counter and adds nothing.
func (m marks) since(before marks) marks {
	return marks{
		renewals:  max(0, m.renewals-before.renewals),
		failures:  max(0, m.failures-before.failures),
		contended: max(0, m.contended-before.contended),
	}
}

// names gives small numbers to the few distinct names of a target's classes,
// nodes and dialects.
type names struct {
	index map[string]uint32
	text  []string
}

func newNames() names { return names{index: map[string]uint32{}} }

func (n *names) of(text string) uint32 {
	i, ok := n.index[text]
	if !ok {
		i = uint32(len(n.text))
		n.index[text] = i
		n.text = append(n.text, text)
	}
	return i
}

// look condenses a lock. expect is the class's expectation, 0 for none.
func (t *target) look(l locksteward.Lock, expect time.Duration) seenLock {
	s := seenLock{
		firstSeen: l.History.FirstSeen.UnixNano(),
		marks:     marks{renewals: int64(l.History.Renewals)},
		class:     t.names.of(l.Class),
		node:      t.names.of(l.Node),
		dialect:   t.names.of(l.Dialect),
		pass:      t.pass,
	}
	if c := l.Claim; c != nil {
		s.facts |= hasClaim
		s.marks = marks{renewals: c.Renewals, failures: c.RenewFailures, contended: c.Contended}
		if c.Expect > 0 {
			expect = c.Expect
		}
	}
	age, basis, _ := l.Age()
	if basis != locksteward.AgeNone {
		s.facts |= hasAge
		s.age = age
	}
	if expect > 0 {
		s.facts |= hasExpect
		// An age is never more than the truth, but for a holder's clock that is
		// behind: this is not too early by more than that.
		if s.facts.has(hasAge) && age > expect {
			s.facts |= isOverdue
		}
	}
	if l.Waiters >= 0 {
		s.facts |= hasWaiters
		s.waiters = int32(min(l.Waiters, 1<<30))
	}
	if l.TTL == locksteward.NoExpiry {
		s.facts |= isWithoutTTL
	}
	return s
}
