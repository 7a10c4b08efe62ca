package signin

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// remembered bounds each table of counters.
	remembered = 10_000
	// Attempts to sign in, of one address and of one name from wherever.
	attemptEvery = 2 * time.Second
	attemptBurst = 20
	nameEvery    = time.Second
	nameBurst    = 60
	// everywhere is how many times more failures lock a name out from all addresses
	// than from one.
	everywhere = 10
)

// place is where a request comes from, as limits count it: an IPv6 network of 64
// bits is one place, since whoever has one address of it has all.
func place(addr netip.Addr) string {
	if addr.Is6() && !addr.Is4In6() {
		if p, err := addr.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.Unmap().String()
}

// rates are token buckets by name.
type rates struct {
	every rate.Limit
	burst int
	by    *table[*rate.Limiter]
}

func newRates(every rate.Limit, burst int) *rates {
	return &rates{every: every, burst: burst, by: newTable[*rate.Limiter](remembered)}
}

// take takes one token; where there is none it says when there will be.
func (r *rates) take(key string, now time.Time) (time.Duration, bool) {
	l := r.by.having(key, func() *rate.Limiter { return rate.NewLimiter(r.every, r.burst) })
	res := l.ReserveN(now, 1)
	wait := res.DelayFrom(now)
	if wait <= 0 {
		return 0, true
	}
	res.CancelAt(now)
	return wait, false
}

// misses counts failures of one name, at one place or everywhere.
type misses struct {
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
	known, strange *table[*misses] // by name
	pairs          *table[*misses] // by name and place
	trusted        *table[struct{}]
}

func newLockouts(cfg LockoutConfig) *lockouts {
	return &lockouts{
		cfg: cfg, known: newTable[*misses](remembered), strange: newTable[*misses](remembered),
		pairs: newTable[*misses](remembered), trusted: newTable[struct{}](remembered),
	}
}

// try is one attempt under way; it counts as a failure until [try.passed].
type try struct {
	pair, name *misses // name is nil where it is not counted
	trust      func()
	// locks says that this attempt, if it fails, locks the name out.
	locks bool
}

// attempt counts an attempt before it is made, so that many at once are no way
// around. Where the name is locked out it says for how long yet.
func (l *lockouts) attempt(name, place string, isKnown bool, now time.Time) (*try, time.Duration) {
	fresh := func() *misses { return &misses{} }
	name = strings.ToLower(name)
	by := l.strange
	if isKnown {
		by = l.known
	}
	key := pairKey(name, place)
	t := &try{pair: l.pairs.having(key, fresh), name: by.having(name, fresh)}
	t.trust = func() { l.trusted.put(key, struct{}{}) }
	trusted := l.trusts(name, place)
	if wait := t.pair.left(now); wait > 0 {
		return nil, wait
	}
	if wait := t.name.left(now); wait > 0 && !trusted {
		return nil, wait
	}
	wait, locks := t.pair.add(l.cfg, l.cfg.Failures, now)
	if wait > 0 {
		return nil, wait
	}
	if trusted {
		t.name = nil
	} else {
		wait, all := t.name.add(l.cfg, everywhere*l.cfg.Failures, now)
		if wait > 0 {
			return nil, wait
		}
		locks = locks || all
	}
	t.locks = locks
	return t, 0
}

// trusts says that this person signed in from there before.
func (l *lockouts) trusts(name, place string) bool {
	_, ok := l.trusted.get(pairKey(name, place))
	return ok
}

func pairKey(name, place string) string { return strings.ToLower(name) + "\x00" + place }

// undone takes the attempt back: it was not made.
func (t *try) undone() {
	t.pair.back()
	if t.name != nil {
		t.name.back()
	}
}

// passed takes the attempt back: it was right.
func (t *try) passed() {
	t.pair.clear()
	if t.name != nil {
		t.name.back()
	}
	t.trust()
}

// left is how long it is locked yet.
func (m *misses) left(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locked.Sub(now)
}

// count1 counts one more; the last that is allowed locks.
func (m *misses) add(cfg LockoutConfig, most int, now time.Time) (wait time.Duration, locks bool) {
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
		m.locked = now.Add(cfg.Time)
		return 0, true
	}
	return 0, false
}

// clear forgets all failures.
func (m *misses) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count, m.locked = 0, time.Time{}
}

// back takes one failure back, and the lock that it may have closed.
func (m *misses) back() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count > 0 {
		m.count--
	}
	m.locked = time.Time{}
}
