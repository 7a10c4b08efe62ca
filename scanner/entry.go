package scanner

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/locksteward/locksteward"
)

// lockState is what was read of one lock, as the table keeps it: what many locks have in
// common is kept once. [lockState.observation] is all of it.
type lockState struct {
	key      string
	traits   *traits // shared by all locks alike
	digest   string
	holder   *locksteward.Holder // nil: nothing known
	claim    *locksteward.Claim
	instance *locksteward.Instance
	session  *locksteward.Session
	absence  *locksteward.Absence

	at       int64 // server time, µs since 1970
	acquired int64 // as the value says, µs; 0: it does not
	expireAt int64
	ttl      time.Duration
	idle     time.Duration
	size     int64
	count    int64
	fence    int64
	waiters  int32
}

// traits is the part of an observation that many locks have in common.
type traits struct {
	node        string
	typ         string
	tooLarge    bool
	kind        locksteward.Kind
	class       string
	configured  bool
	library     string
	confidence  locksteward.Confidence
	identity    locksteward.Identity
	sharedToken bool
	tokenKind   string
	asked       bool
	mode        string
	renewEvery  time.Duration // known of the library
	lifetime    locksteward.Lifetime
	// waitersApart is [source.Reading.WaitersApart].
	waitersApart bool
}

// traitSet keeps one of each.
type traitSet map[traits]*traits

func (s traitSet) of(v traits) *traits {
	p, ok := s[v]
	if !ok {
		p = new(v)
		s[v] = p
	}
	return p
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// lockStateOf is the inverse of [lockState.observation]; waitersApart is that of the reading.
func lockStateOf(o locksteward.Observation, waitersApart bool) lockState {
	l := lockState{
		key:      o.Key,
		digest:   o.TokenDigest,
		claim:    o.Claim,
		instance: o.Instance,
		session:  o.Session,
		absence:  o.Absence,
		at:       micros(o.At),
		acquired: micros(o.Acquired),
		expireAt: o.ExpireAt,
		ttl:      o.TTL,
		idle:     o.Idle,
		size:     o.Size,
		count:    o.Count,
		fence:    o.Fence,
		waiters:  int32(min(max(o.Waiters, -1), 1<<30)),
	}
	if o.Holder != (locksteward.Holder{}) {
		l.holder = new(o.Holder)
	}
	l.traits = &traits{
		node: o.Node, typ: o.Type, tooLarge: o.TooLarge, kind: o.Kind, class: o.Class, configured: o.Configured,
		library: o.Library, confidence: o.Confidence, identity: o.Identity, sharedToken: o.SharedToken, tokenKind: o.TokenKind,
		asked: o.Asked, mode: o.Mode, renewEvery: o.RenewEvery, lifetime: o.Lifetime, waitersApart: waitersApart,
	}
	return l
}

func (l *lockState) observation(target locksteward.Target) locksteward.Observation {
	o := locksteward.Observation{
		Target:      target.Name,
		DB:          target.DB,
		Node:        l.traits.node,
		Key:         l.key,
		Type:        l.traits.typ,
		At:          fromMicros(l.at),
		Lifetime:    l.traits.lifetime,
		TTL:         l.ttl,
		ExpireAt:    l.expireAt,
		Idle:        l.idle,
		Size:        l.size,
		TooLarge:    l.traits.tooLarge,
		Kind:        l.traits.kind,
		Class:       l.traits.class,
		Configured:  l.traits.configured,
		Library:     l.traits.library,
		Confidence:  l.traits.confidence,
		Identity:    l.traits.identity,
		TokenDigest: l.digest,
		SharedToken: l.traits.sharedToken,
		TokenKind:   l.traits.tokenKind,
		Acquired:    fromMicros(l.acquired),
		Asked:       l.traits.asked,
		Mode:        l.traits.mode,
		RenewEvery:  l.traits.renewEvery,
		Count:       l.count,
		Fence:       l.fence,
		Waiters:     int(l.waiters),
		Claim:       l.claim,
		Instance:    l.instance,
		Session:     l.session,
		Absence:     l.absence,
	}
	if l.holder != nil {
		o.Holder = *l.holder
	}
	return o
}

// share makes l use the strings and pointers of o where they are equal, so that they are
// kept once. It writes nothing behind l's pointers: an unchanged state shares its claim
// with locks that were handed out.
func (l *lockState) share(o *lockState) {
	if l.key == o.key {
		l.key = o.key
	}
	if l.digest == o.digest {
		l.digest = o.digest
	}
	if l.holder != nil && o.holder != nil && *l.holder == *o.holder {
		l.holder = o.holder
	}
	if l.claim != o.claim && equalClaims(l.claim, o.claim) {
		l.claim = o.claim
	}
}

// shareFresh is share for a state that nobody else has yet, so that a claim that differs
// may at least use the strings of o's.
func (l *lockState) shareFresh(o *lockState) {
	l.share(o)
	if l.claim == nil || o.claim == nil || l.claim == o.claim || l.claim.ID != o.claim.ID {
		return
	}
	l.claim.ID = o.claim.ID
	if l.claim.Session == o.claim.Session {
		l.claim.Session = o.claim.Session
	}
}

func equalClaims(a, b *locksteward.Claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.ID == b.ID && a.Class == b.Class && a.Purpose == b.Purpose &&
		a.Acquired.Equal(b.Acquired) && a.Renewed.Equal(b.Renewed) && a.Progress.Equal(b.Progress) &&
		a.TTL == b.TTL && a.RenewEvery == b.RenewEvery && a.Expect == b.Expect && a.MaxHold == b.MaxHold &&
		a.Renewals == b.Renewals && a.RenewFailures == b.RenewFailures && a.Fence == b.Fence &&
		a.Holds == b.Holds && a.Trace == b.Trace && a.Session == b.Session &&
		slices.Equal(a.Holding, b.Holding) && a.EndsWithHeartbeat == b.EndsWithHeartbeat
}

// holderInstance returns the id of the process that holds the lock, "" if it
// names none.
func (l *lockState) holderInstance() string {
	if l.holder == nil {
		return ""
	}
	return l.holder.Instance
}

// entry is one lock in the table: its last state and its history, which only the merge of
// a sweep changes in place (all others replace the entry), and bookkeeping that the
// table's mutex guards. So entries that a sweep hands on are valid until its sink returns,
// which the next merge waits for.
type entry struct {
	lockState
	past
	due

	// turn is the last sweep that reported this entry. over, which is accessed atomically,
	// is 1 once the table dropped or replaced it.
	turn, over uint32

	// What the store has of the hold.
	savedAt       int64
	savedRenewals int32

	// hadTTL belongs to past; here it costs no room of its own.
	hadTTL bool
}

func (e *entry) isOver() bool { return atomic.LoadUint32(&e.over) != 0 }

// end marks the entry as dropped or replaced.
func (e *entry) end() { atomic.StoreUint32(&e.over, 1) }

// past is a packed locksteward.History.
type past struct {
	firstSeen   int64 // µs
	lastSeen    int64
	lastRenewal int64
	renewEvery  time.Duration
	looks       int32
	renewals    int32
}

func (e *entry) lock(target locksteward.Target) locksteward.Lock {
	every := e.renewEvery
	if e.renewals < 2 {
		every = 0
	}
	return locksteward.Lock{
		Observation: e.observation(target),
		History: locksteward.History{
			FirstSeen:   fromMicros(e.firstSeen),
			LastSeen:    fromMicros(e.lastSeen),
			Looks:       int(e.looks),
			Renewals:    int(e.renewals),
			LastRenewal: fromMicros(e.lastRenewal),
			RenewEvery:  every,
			HadTTL:      e.hadTTL,
		},
	}
}

// sameHold is locksteward.SameHold for lock states, except that two values too large to
// be read count as the same.
func sameHold(a, b *lockState) bool {
	if a.traits.typ != b.traits.typ || a.digest != b.digest {
		return false
	}
	if a.digest == "" {
		// Neither was read in full, so they cannot be distinguished: a history that began
		// anew with each reading would be useless.
		return true
	}
	return a.claim == nil || b.claim == nil || a.claim.ID == b.claim.ID
}

// seen continues the history of the same hold with a later reading. Tolerance is by how
// many ms the expiry of an unmoved lease may differ.
func (e *entry) seen(l lockState, tolerance int64) {
	if l.expireAt > 0 && e.expireAt > 0 && l.expireAt > e.expireAt+tolerance {
		e.renewed(l.at, time.Duration(l.expireAt-e.expireAt)*time.Millisecond)
	} else if l.setAnew(e.expireAt, tolerance) {
		e.lastRenewal = l.at
	}
	if e.idle >= 0 {
		// The hold was idle at its first reading and has been since. A later OBJECT
		// IDLETIME would only measure our own reads.
		l.idle = e.idle + max(0, time.Duration(l.at-e.at)*time.Microsecond)
	}
	l.share(&e.lockState)
	e.lockState = l
	e.lastSeen = l.at
	e.looks++
	e.hadTTL = e.hadTTL || l.ttl != locksteward.NoExpiry
}

// setAnew reports whether the expiry changed under a constant token: the same bytes may
// belong to the next hold, whose expiry may be earlier as well.
func (l *lockState) setAnew(was, tolerance int64) bool {
	if !l.traits.sharedToken || was == 0 || l.expireAt == 0 {
		return false
	}
	return was < 0 != (l.expireAt < 0) || max(was-l.expireAt, l.expireAt-was) > tolerance
}

// renewed learns from an expiry that moved later by step. Readings are far apart,
// so step may cover several renewals: the estimate falls at once to the smallest
// step seen and rises slowly, and stays on the long side of the truth, where
// "late" is not said too early.
func (e *entry) renewed(at int64, step time.Duration) {
	e.renewals++
	e.lastRenewal = at
	switch {
	case e.renewEvery == 0:
		e.renewEvery = step
	case step < e.renewEvery:
		e.renewEvery = (e.renewEvery + step) / 2
	default:
		e.renewEvery += (step - e.renewEvery) / 8
	}
}

// begin returns the entry of a new hold.
func begin(l lockState) *entry {
	return &entry{lockState: l, past: past{firstSeen: l.at, lastSeen: l.at, looks: 1}, hadTTL: l.ttl != locksteward.NoExpiry}
}
