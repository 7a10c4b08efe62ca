package signin

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxTracked bounds each table of counters.
	maxTracked = 10_000
	// Attempts to sign in, of one address and of one name from wherever.
	attemptEvery = 2 * time.Second
	attemptBurst = 20
	nameEvery    = time.Second
	nameBurst    = 60
	// globalFailureFactor is how many times more failures lock a name out from all addresses
	// than from one.
	globalFailureFactor = 10
)

// networkOf is where a request comes from, as limits count it: an IPv6 network of 64
// bits is one place, since a client with one address of it has all.
func networkOf(addr netip.Addr) string {
	if addr.Is6() && !addr.Is4In6() {
		if p, err := addr.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.Unmap().String()
}

// rateLimits are token buckets by name.
type rateLimits struct {
	every rate.Limit
	burst int
	by    *lru[*rate.Limiter]
}

func newRateLimits(every rate.Limit, burst int) *rateLimits {
	return &rateLimits{every: every, burst: burst, by: newLRU[*rate.Limiter](maxTracked)}
}

// allow takes one token; where there is none it says when there will be.
func (r *rateLimits) allow(key string, now time.Time) (time.Duration, bool) {
	l := r.by.getOrAdd(key, func() *rate.Limiter { return rate.NewLimiter(r.every, r.burst) })
	res := l.ReserveN(now, 1)
	wait := res.DelayFrom(now)
	if wait <= 0 {
		return 0, true
	}
	res.CancelAt(now)
	return wait, false
}

// failureCount counts failures of one name, at one place or everywhere.
type failureCount struct {
	mu     sync.Mutex
	count  int
	since  time.Time
	locked time.Time // until
}

// lockouts counts failed sign-ins.
type lockouts struct {
	cfg LockoutConfig
	// Names of the users file are counted apart, so that a flood of others cannot
	// make them be forgotten.
	knownNames, unknownNames *lru[*failureCount] // by name
	pairs                    *lru[*failureCount] // by name and place
	trusted                  *lru[struct{}]
}

func newLockouts(cfg LockoutConfig) *lockouts {
	return &lockouts{
		cfg: cfg, knownNames: newLRU[*failureCount](maxTracked), unknownNames: newLRU[*failureCount](maxTracked),
		pairs: newLRU[*failureCount](maxTracked), trusted: newLRU[struct{}](maxTracked),
	}
}

// signInAttempt is one attempt under way; it counts as a failure until [signInAttempt.succeed].
type signInAttempt struct {
	pair, name *failureCount // name is nil where it is not counted
	trust      func()
	// locks says that this attempt, if it fails, locks the name out.
	locks bool
}

// attempt counts an attempt before it is made, so that many at once are no way
// around. Where the name is locked out it says for how long yet.
func (l *lockouts) attempt(name, place string, isKnown bool, now time.Time) (*signInAttempt, time.Duration) {
	fresh := func() *failureCount { return &failureCount{} }
	name = strings.ToLower(name)
	by := l.unknownNames
	if isKnown {
		by = l.knownNames
	}
	key := pairKey(name, place)
	t := &signInAttempt{pair: l.pairs.getOrAdd(key, fresh), name: by.getOrAdd(name, fresh)}
	t.trust = func() { l.trusted.put(key, struct{}{}) }
	trusted := l.isTrusted(name, place)
	if wait := t.pair.remaining(now); wait > 0 {
		return nil, wait
	}
	if wait := t.name.remaining(now); wait > 0 && !trusted {
		return nil, wait
	}
	wait, locks := t.pair.record(l.cfg, l.cfg.Failures, now)
	if wait > 0 {
		return nil, wait
	}
	if trusted {
		t.name = nil
	} else {
		wait, all := t.name.record(l.cfg, globalFailureFactor*l.cfg.Failures, now)
		if wait > 0 {
			return nil, wait
		}
		locks = locks || all
	}
	t.locks = locks
	return t, 0
}

// isTrusted says that this person signed in from there before.
func (l *lockouts) isTrusted(name, place string) bool {
	_, ok := l.trusted.get(pairKey(name, place))
	return ok
}

func pairKey(name, place string) string { return strings.ToLower(name) + "\x00" + place }

// withdraw takes the attempt back: it was not made.
func (t *signInAttempt) withdraw() {
	t.pair.undo()
	if t.name != nil {
		t.name.undo()
	}
}

// succeed takes the attempt back: it was right.
func (t *signInAttempt) succeed() {
	t.pair.clear()
	if t.name != nil {
		t.name.undo()
	}
	t.trust()
}

// remaining is how long it is locked yet.
func (m *failureCount) remaining(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locked.Sub(now)
}

// count1 counts one more; the last that is allowed locks.
func (m *failureCount) record(cfg LockoutConfig, most int, now time.Time) (wait time.Duration, locks bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait := m.locked.Sub(now); wait > 0 {
		return wait, false
	}
	if now.Sub(m.since) >= cfg.Window || m.count >= most {
		m.count, m.since = 0, now
	}
	m.count++
	if m.count >= most {
		m.locked = now.Add(cfg.Window)
		return 0, true
	}
	return 0, false
}

// clear forgets all failures.
func (m *failureCount) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count, m.locked = 0, time.Time{}
}

// undo takes one failure back, and the lock that it may have closed.
func (m *failureCount) undo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count > 0 {
		m.count--
	}
	m.locked = time.Time{}
}
