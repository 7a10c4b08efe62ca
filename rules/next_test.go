package rules

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// TestNextLook: at the moment it names, and not before, an evaluation says
// something else of a lock that nobody wrote to.
func TestNextLook(t *testing.T) {
	t.Parallel()
	classes := []class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Expect: 10 * time.Second, WarnTTLBelow: 20 * time.Second}}
	own := Config{
		{Rule: "custom/old", When: "lock.key == 'lock:batch' && lock.age > duration('1h') + duration('60m')"},
		{Rule: "custom/short", When: "lock.key.startsWith('lock:short:') && !(lock.ttl >= duration('10s'))"},
		{Rule: "custom/other", When: "lock.key == 'lock:other' && lock.age > duration('1s')", Classes: []string{"orders"}, Off: true},
		{Rule: "custom/hour", When: "lock.key == 'lock:x' && now.getHours() == 13 || lock.key == 'lock:x' && lock.age.getMinutes() > 5"},
	}
	renewing := func(l *locksteward.Lock) {
		l.Claim = &locksteward.Claim{ID: "c1", Acquired: t0, Renewed: l.At.Add(-time.Second), RenewEvery: 10 * time.Second, TTL: 30 * time.Second}
	}
	for name, c := range map[string]struct {
		lock   func(at time.Time) locksteward.Lock
		offset time.Duration // of the next look from t0
		then   string        // what is reported then; "" for nothing
	}{
		"nothing but time": {func(at time.Time) locksteward.Lock { return lockAt("lock:x", at) }, 0, ""},
		"pending for:": {
			func(at time.Time) locksteward.Lock { return lockAt("lock:x", at, noTTL) }, RecheckAfter,
			"ttl/none firing critical lock:x",
		},
		"expectation": {
			func(at time.Time) locksteward.Lock { return lockAt("lock:order:1", at, ofClass("orders"), longTTL) },
			10*time.Second + time.Millisecond, "",
		},
		"ttl runs out": {
			func(at time.Time) locksteward.Lock {
				return lockAt("lock:order:1", at, ofClass("orders"), func(l *locksteward.Lock) { l.TTL = 25 * time.Second })
			}, 5*time.Second + time.Millisecond, "",
		},
		"own rule over the age": {
			func(at time.Time) locksteward.Lock { return lockAt("lock:batch", at, longTTL) },
			2*time.Hour + time.Millisecond, "custom/old firing warning lock:batch",
		},
		"own rule over the TTL, of several parts": {
			func(at time.Time) locksteward.Lock {
				return lockAt("lock:short:1", at, func(l *locksteward.Lock) { l.TTL = time.Minute - at.Sub(t0) })
			}, 50*time.Second + time.Millisecond, "custom/short firing warning lock:short:1",
		},
		"own rule that is switched off, for another class, or not about time": {
			func(at time.Time) locksteward.Lock { return lockAt("lock:x", at) }, 0, "",
		},
		"late renewal": {
			func(at time.Time) locksteward.Lock { return lockAt("lock:x", at, renewing) },
			-time.Second + lateAfter(10*time.Second, 30*time.Second) + renewSlack + time.Millisecond, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, own, classes)
			e.EvaluateWatched(locksteward.Update{Target: "redis", At: t0, Locks: []locksteward.Lock{c.lock(t0)}})
			next := e.NextLook(new(c.lock(t0)))
			if c.offset == 0 {
				if !next.IsZero() {
					t.Fatalf("next look at %s, want none", next.Sub(t0))
				}
				return
			}
			if got := next.Sub(t0); got != c.offset {
				t.Fatalf("next look after %s, want %s", got, c.offset)
			}
			if c.then != "" {
				got := e.EvaluateWatched(locksteward.Update{Target: "redis", At: next, Locks: []locksteward.Lock{c.lock(next)}})
				wantBrief(t, got, c.then)
			}
			if again := e.NextLook(new(c.lock(next))); again.Equal(next) {
				t.Errorf("the next look after %s is %s again", next.Sub(t0), again.Sub(t0))
			}
		})
	}
}

// TestWatchedLossIsReported at once, and once.
func TestWatchedLossIsReported(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{}, nil)
	beat := after(40 * time.Second)
	s := lossAt(after(40*time.Second), &beat).Update()
	if got := e.EvaluateWatched(s); len(got) != 1 || got[0].Finding.Rule != "hold/lost" {
		t.Fatalf("reported %v", brief(got))
	}
	if got := e.EvaluateWatched(s); len(got) != 0 {
		t.Errorf("reported again: %v", brief(got))
	}
}
