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
		e.seen(state(later, c.now))
		if got := e.lastRenewal == later; got != c.want {
			t.Errorf("%s: noted %v, want %v", c.name, got, c.want)
		}

		// The same over a restart of the agent.
		table := newTable(locksteward.Target{})
		table.restored["k"] = HistoryRow{Key: "k", TokenDigest: "d", FirstSeen: fromMicros(first), LastSeen: fromMicros(first), ExpireAt: c.was}
		e = table.resume(begin(state(later, c.now)))
		if got := e.lastRenewal == later; got != c.want || e.firstSeen != first {
			t.Errorf("%s, after a restart: noted %v, want %v; first seen %s", c.name, got, c.want, fromMicros(e.firstSeen).Sub(time.UnixMicro(0)))
		}
	}
}
