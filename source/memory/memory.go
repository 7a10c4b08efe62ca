// Package memory is a lock store in the memory of the process: the smallest
// implementation of package source, for tests of what uses one.
package memory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// Hold is one hold of a lock.
type Hold struct {
	Library string
	Token   string // what its holder proves with that it is the holder
	// Identity is how surely the token tells this hold from the next one; SharedToken
	// says that the next holder writes the same token.
	Identity    locksteward.Identity
	SharedToken bool
	Holder      locksteward.Holder
	Expires     time.Time // zero: never
}

// Store has at most one hold for each key. It is safe for concurrent use.
type Store struct {
	digest locksteward.DigestKey

	mu      sync.Mutex
	holds   map[string]held
	kept    map[string]keptHold // by the id of the request that released it
	records map[string]record   // by the id of the request
	// watchers are called with the name of each lock that changed, by their number.
	watchers map[int]func(name string)
	nextNo   int
}

// held is a hold that stands.
type held struct {
	Hold
	since    time.Time
	placedBy string // the request whose placeholder it is; "" for a lock
}

// New returns an empty store, whose tokens are shown as digests made with digest.
func New(digest locksteward.DigestKey) *Store {
	return &Store{digest: digest, holds: map[string]held{}, kept: map[string]keptHold{}, records: map[string]record{}, watchers: map[int]func(string){}}
}

// Put gives the lock at key to a new hold, even if another one has it.
func (s *Store) Put(key string, h Hold) {
	s.mu.Lock()
	s.holds[key] = held{Hold: h, since: time.Now()}
	s.mu.Unlock()
	s.changed(key)
}

// Renew moves the expiry of the hold at key, if there is one.
func (s *Store) Renew(key string, expires time.Time) {
	s.mu.Lock()
	if h, ok := s.current(key); ok {
		h.Expires = expires
		s.holds[key] = h
	}
	s.mu.Unlock()
	s.changed(key)
}

// Delete frees the lock at key.
func (s *Store) Delete(key string) {
	s.mu.Lock()
	delete(s.holds, key)
	s.mu.Unlock()
	s.changed(key)
}

// changed calls the watchers, without the mutex.
func (s *Store) changed(key string) {
	s.mu.Lock()
	watchers := slices.Collect(maps.Values(s.watchers))
	s.mu.Unlock()
	for _, w := range watchers {
		w(key)
	}
}

// notify has fn called with the name of each lock that changes, until stop.
func (s *Store) notify(fn func(name string)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	no := s.nextNo
	s.nextNo++
	s.watchers[no] = fn
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, no)
	}
}

// names returns the names of all locks.
func (s *Store) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.holds))
}

// Read returns the lock at key as it is now; false if nobody holds it. A placeholder
// is no lock.
func (s *Store) Read(target, key string) (locksteward.Lock, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.current(key)
	if !ok || h.placedBy != "" {
		return locksteward.Lock{}, false
	}
	e := s.evidence(key, h)
	now := time.Now()
	o := locksteward.Observation{
		Target: target, Key: key, Type: e.Type, At: now, Lifetime: locksteward.LifetimePersistent, TTL: locksteward.NoExpiry, ExpireAt: e.ExpireAt,
		Kind: locksteward.KindLock, Library: e.Library, Identity: e.Identity, TokenDigest: e.TokenDigest,
		SharedToken: h.SharedToken, Holder: h.Holder, Count: e.Count,
	}
	if !h.Expires.IsZero() {
		o.Lifetime, o.TTL = locksteward.LifetimeLease, h.Expires.Sub(now)
	}
	return locksteward.Lock{Observation: o, History: locksteward.History{FirstSeen: h.since, LastSeen: now}}, true
}

// current returns what stands at key and has not expired. The caller holds s.mu.
func (s *Store) current(key string) (held, bool) {
	h, ok := s.holds[key]
	if ok && !h.Expires.IsZero() && !time.Now().Before(h.Expires) {
		delete(s.holds, key)
		return held{}, false
	}
	return h, ok
}

// evidence is what a request freezes of a hold, as far as it is compared.
func (s *Store) evidence(key string, h held) locksteward.Evidence {
	e := locksteward.Evidence{
		Key: key, Type: "hold", Library: h.Library, Identity: h.Identity, TokenDigest: s.digest.Value([]byte(h.Token)),
		ExpireAt: locksteward.NoExpireAt, Count: 1,
	}
	if !h.Expires.IsZero() {
		e.ExpireAt = h.Expires.UnixMilli()
	}
	return e
}
