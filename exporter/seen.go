package exporter

import (
	"hash/maphash"
	"math"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// seenLock is what is kept of one known lock between sweeps, to tell what is
// new about it and what the gauges are. There is one for each lock, so it stays
// small: 32 bytes, with no pointer in it.
type seenLock struct {
	hold    uint32  // condenses when the hold was first seen: tells one from the next
	age     float32 // seconds
	marks   marks
	kind    uint32 // place in target.kinds
	waiters uint16 // at most; more count as that
	pass    uint16 // the sweep that saw it last
	check   uint16 // more of the key's hash
	facts   facts
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

// count is 1 for each of the facts that f has.
func (f facts) count(want facts) int {
	if f.has(want) {
		return 1
	}
	return 0
}

// marks are the readings of a hold's own counters, as far as they fit.
type marks struct {
	renewals uint32
	failures uint32
}

func mark(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// since returns by how much m grew from before; a reading that went back is
// another counter and adds nothing.
func (m marks) since(before marks) marks {
	return marks{
		renewals: m.renewals - min(m.renewals, before.renewals),
		failures: m.failures - min(m.failures, before.failures),
	}
}

// memory is what is known of the locks of a target. Keys are remembered by their
// hash: 64 bits find the lock and 16 more tell another key with the same 64, which
// is left alone. Nobody outside can make two keys meet: the seed is secret.
type memory struct {
	seeds [2]maphash.Seed
	locks map[uint64]seenLock
	kinds []kind
	index map[kindID]uint32
	last  uint32 // the kind that was asked for last: neighbours are alike
	loose bool   // some kind is
}

func newMemory() memory {
	return memory{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		locks: map[uint64]seenLock{}, index: map[kindID]uint32{},
	}
}

// lockHash identifies a lock of a target in 10 bytes.
type lockHash struct {
	hash  uint64
	check uint16
}

func (m *memory) id(db int, key string) lockHash {
	const spread = 0x9E3779B97F4A7C15 // 2^64 / golden ratio: neighbours lie far apart
	return lockHash{
		hash:  maphash.String(m.seeds[0], key) ^ uint64(db)*spread,
		check: uint16(maphash.String(m.seeds[1], key)),
	}
}

// get returns what is known of a lock. clash says that another key has its place:
// then nothing can be said of this one.
func (m *memory) get(id lockHash) (l seenLock, known, clash bool) {
	l, known = m.locks[id.hash]
	if known && l.check != id.check {
		return seenLock{}, false, true
	}
	return l, known, false
}

// put replaces what is known of a lock.
func (m *memory) put(id lockHash, before seenLock, known bool, now seenLock) {
	m.locks[id.hash] = now
	if known && before.kind != now.kind {
		m.drop(before)
		known = false
	}
	k := &m.kinds[now.kind]
	if known {
		k.count(before, -1)
		// The oldest of its kind that grew older is still that; one that is younger
		// now may have been.
		if before.facts.has(hasAge) && before.age == k.longest && (!now.facts.has(hasAge) || now.age < before.age) {
			k.loose, m.loose = true, true
		}
	}
	k.count(now, 1)
	if now.facts.has(hasAge) {
		k.longest = max(k.longest, now.age)
	}
}

// remove forgets a lock.
func (m *memory) remove(hash uint64, l seenLock) {
	delete(m.locks, hash)
	m.drop(l)
}

func (m *memory) drop(l seenLock) {
	k := &m.kinds[l.kind]
	k.count(l, -1)
	if l.facts.has(hasAge) && l.age == k.longest {
		k.loose, m.loose = true, true
	}
}

// settle finds the oldest locks anew of kinds that lost theirs. It looks at every
// lock, so no scrape waits for it.
func (m *memory) settle() {
	if !m.loose {
		return
	}
	for i := range m.kinds {
		if k := &m.kinds[i]; k.loose {
			k.longest = 0
		}
	}
	for _, l := range m.locks {
		if k := &m.kinds[l.kind]; k.loose && l.facts.has(hasAge) {
			k.longest = max(k.longest, l.age)
		}
	}
	for i := range m.kinds {
		m.kinds[i].loose = false
	}
	m.loose = false
}

// kindID is what many locks have in common.
type kindID struct{ class, node, library string }

// kind counts the locks of one kind.
type kind struct {
	id                                             kindID
	locks, withoutTTL, expecting, overdue, waiting int
	aged                                           int
	waiters                                        int64
	longest                                        float32 // at least: the oldest may be gone if loose
	loose                                          bool
}

func (k *kind) count(l seenLock, n int) {
	k.locks += n
	k.withoutTTL += n * l.facts.count(isWithoutTTL)
	k.expecting += n * l.facts.count(hasExpect)
	k.overdue += n * l.facts.count(isOverdue)
	k.waiting += n * l.facts.count(hasWaiters)
	k.aged += n * l.facts.count(hasAge)
	k.waiters += int64(n) * int64(l.waiters)
}

// kindOf gives a kind its number.
func (m *memory) kindOf(class, node, library string) uint32 {
	id := kindID{class, node, library}
	if int(m.last) < len(m.kinds) && m.kinds[m.last].id == id {
		return m.last
	}
	n, ok := m.index[id]
	if !ok {
		id = kindID{strings.Clone(class), strings.Clone(node), strings.Clone(library)}
		n = uint32(len(m.kinds))
		m.index[id] = n
		m.kinds = append(m.kinds, kind{id: id})
	}
	m.last = n
	return n
}

// condensed is a time in 32 bits: two that differ are almost never the same, and
// if they are a hold is not counted.
func condensed(t time.Time) uint32 {
	const spread = 0x9E3779B97F4A7C15
	return uint32(uint64(t.UnixNano()) * spread >> 32)
}

// look condenses a lock. expect is the class's expectation, 0 for none.
func (t *target) look(l *locksteward.Lock, id lockHash, expect time.Duration) seenLock {
	s := seenLock{
		hold:  condensed(l.History.FirstSeen),
		marks: marks{renewals: mark(int64(l.History.Renewals))},
		kind:  t.known.kindOf(l.Class, l.Node, l.Library),
		pass:  uint16(t.pass),
		check: id.check,
	}
	if c := l.Claim; c != nil {
		s.facts |= hasClaim
		s.marks = marks{renewals: mark(c.Renewals), failures: mark(c.RenewFailures)}
		if c.Expect > 0 {
			expect = c.Expect
		}
	}
	age, basis, _ := l.Age()
	if basis != locksteward.AgeNone {
		s.facts |= hasAge
		s.age = float32(age.Seconds())
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
		s.waiters = uint16(min(l.Waiters, math.MaxUint16))
	}
	if l.NeverExpires() {
		s.facts |= isWithoutTTL
	}
	return s
}
