package scanner

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// TestConstantTokenWithAnotherExpiry: under a token that never changes, another
// expiry may be that of the next hold, whichever way it moved.
func TestConstantTokenWithAnotherExpiry(t *testing.T) {
	t.Parallel()
	const first, later = 1_000_000_000, 1_040_000_000 // µs
	for _, c := range []struct {
		name     string
		was, now int64 // ms
		shared   bool
		want     bool
	}{
		{"the same", 300_000, 300_000, true, false},
		{"computed, so about the same", 300_000, 299_970, true, false},
		{"earlier", 300_000, 60_000, true, true},
		{"later", 60_000, 300_000, true, true},
		{"where there was none", locksteward.NoExpireAt, 300_000, true, true},
		{"taken away", 300_000, locksteward.NoExpireAt, true, true},
		{"not known before", 0, 300_000, true, false},
		{"earlier, of a token that tells", 300_000, 60_000, false, false},
	} {
		kind := &traits{typ: "string", sharedToken: c.shared}
		state := func(at, expireAt int64) lockState {
			return lockState{key: "k", traits: kind, digest: "d", at: at, expireAt: expireAt, idle: -1}
		}
		e := begin(state(first, c.was))
		e.seen(state(later, c.now), 50)
		if got := e.lastRenewal == later; got != c.want {
			t.Errorf("%s: noted %v, want %v", c.name, got, c.want)
		}

		// The same over a restart of the agent.
		table := newTable(locksteward.Target{})
		table.tolerance = 50
		table.restored["k"] = HistoryRow{Key: "k", TokenDigest: "d", FirstSeen: fromMicros(first), LastSeen: fromMicros(first), ExpireAt: c.was}
		e = table.resume(begin(state(later, c.now)))
		if got := e.lastRenewal == later; got != c.want || e.firstSeen != first {
			t.Errorf("%s, after a restart: noted %v, want %v; first seen %s", c.name, got, c.want, fromMicros(e.firstSeen).Sub(time.UnixMicro(0)))
		}
	}
}

// TestExpiryInWholeSeconds: where the store tells the time left in whole seconds, the expiry
// of a lease that nobody renewed differs by as much between two readings.
func TestExpiryInWholeSeconds(t *testing.T) {
	t.Parallel()
	kind := &traits{typ: "mutex"}
	e := begin(lockState{key: "k", traits: kind, digest: "d", at: 1_000_000, expireAt: 10_000, idle: -1})
	for i, expireAt := range []int64{10_250, 9_500, 10_400, 9_700} {
		e.seen(lockState{key: "k", traits: kind, digest: "d", at: 1_250_000 + int64(i)*250_000, expireAt: expireAt, idle: -1}, 1500)
	}
	if e.renewals != 0 {
		t.Errorf("%d renewals of a lease that nobody renewed", e.renewals)
	}
	e.seen(lockState{key: "k", traits: kind, digest: "d", at: 3_000_000, expireAt: 13_000, idle: -1}, 1500)
	if e.renewals != 1 {
		t.Errorf("%d renewals, want 1", e.renewals)
	}
}
