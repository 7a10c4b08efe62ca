package expr

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// TestNext: what time alone turns is found, whatever stands around it, and nothing
// else is.
func TestNext(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lock := locksteward.Lock{
		Observation: locksteward.Observation{
			Key: "lock:a", Class: "batch", At: now, TTL: 20 * time.Minute, Idle: -1,
			Claim:    &locksteward.Claim{ID: "c", Expect: 90 * time.Minute, Acquired: now.Add(-time.Hour), Holding: []string{"lock:b"}},
			Instance: &locksteward.Instance{ID: "i", Beat: now.Add(-2 * time.Second)},
		},
		History: locksteward.History{FirstSeen: now.Add(-time.Hour)},
	}
	f := Facts{Now: now, Lock: &lock, Class: class.Class{Name: "batch", Expect: 75 * time.Minute}, Age: Age{Value: time.Hour, Basis: locksteward.AgeClaimed}}
	const none = -1
	for source, want := range map[string]time.Duration{
		"lock.age > duration('2h')":                                              time.Hour,
		"duration('2h') <= lock.age":                                             time.Hour,
		"lock.age > class.expect + duration('1m')":                               16 * time.Minute,
		"lock.age > lock.claim.expect":                                           30 * time.Minute,
		"lock.ttl < duration('5m')":                                              15 * time.Minute,
		"now - lock.first_seen > duration('61m')":                                time.Minute,
		"now > timestamp('2026-03-01T12:30:00Z')":                                30 * time.Minute,
		"lock.claim.acquired + duration('2h') < now":                             time.Hour,
		"lock.instance.beat_age > duration('10s')":                               8 * time.Second,
		"lock.key == 'lock:a' && lock.age > duration('2h')":                      time.Hour,
		"lock.age > duration('3h') || lock.ttl < duration('15m')":                5 * time.Minute,
		"!(lock.age < duration('2h'))":                                           time.Hour,
		"lock.age > duration('30m') && lock.ttl > duration('10m')":               10 * time.Minute, // it ends
		"lock.ttl < duration('10m') && lock.age > duration('70m')":               10 * time.Minute,
		"lock.age + lock.ttl > duration('81m')":                                  none, // one grows as the other falls
		"lock.key == 'lock:b' && lock.age > duration('2h')":                      none, // another lock
		"lock.age > duration('30m')":                                             none, // it is so already
		"lock.idle > duration('1h')":                                             none, // not known
		"lock.age.getMinutes() > 90 || now.getHours() == 13":                     none, // not looked at
		"lock.waiters > 3 && lock.shared_token":                                  none,
		"lock.claim.holding.exists(k, k == 'lock:b' && k == lock.key)":           none,
		"lock.claim.holding.exists(k, lock.age > duration('2h'))":                time.Hour,
		"has(lock.claim.progress) && now - lock.claim.progress > duration('1m')": none,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		after, ok := p.Next(&f)
		if want == none {
			if ok {
				t.Errorf("%s: after %s, want never", source, after)
			}
			continue
		}
		// The arithmetic is that of floats: to the microsecond.
		if off := after - want - justAfter; !ok || off < 0 || off > time.Microsecond {
			t.Errorf("%s: after %s (%v), want %s", source, after, ok, want)
		}
	}
}
