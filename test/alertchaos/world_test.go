package alertchaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// world are locks that break and heal.
type world struct {
	t   *testing.T
	rdb *redis.Client

	mu     sync.Mutex
	broken map[lockRule]bool // those that ever were: whether they are now
}

// lockRule is a lock with the rule that it breaks.
type lockRule struct{ key, rule string }

// locksEach is how many locks break each rule.
const locksEach = 60

// rulesBroken are the rules with the names of locks that break them: one that takes
// a second look after two seconds, and one that fires at first sight.
var rulesBroken = []lockRule{{"lock:order:%d", "ttl/none"}, {"lock:long:%d", "custom/long"}}

// turn breaks a lock, or heals one, in one of the ways in which that happens.
func (w *world) turn(rng *rand.Rand) {
	which := rulesBroken[rng.IntN(len(rulesBroken))]
	l := lockRule{fmt.Sprintf(which.key, rng.IntN(locksEach)), which.rule}
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx := context.Background()
	var err error
	switch is := w.broken[l]; {
	case !is && l.rule == "ttl/none":
		err = w.rdb.SetNX(ctx, l.key, fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()), 0).Err()
		if err == nil {
			err = w.rdb.Persist(ctx, l.key).Err()
		}
	case !is:
		err = w.rdb.Set(ctx, l.key, fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()), 3*time.Hour).Err()
	case rng.IntN(2) == 0:
		err = w.rdb.Del(ctx, l.key).Err()
	default:
		err = w.rdb.Expire(ctx, l.key, time.Hour).Err()
	}
	if err != nil {
		w.t.Errorf("change lock %s: %v", l.key, err)
		return
	}
	w.broken[l] = !w.broken[l]
}

// run turns locks until stop, at a pace that leaves some broken long enough to
// fire, and some not.
func (w *world) run(rng *rand.Rand, stop <-chan struct{}) {
	for {
		w.turn(rng)
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(10+rng.IntN(40)) * time.Millisecond):
		}
	}
}

// truth is which locks are broken.
func (w *world) truth() map[lockRule]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[lockRule]bool{}
	maps.Copy(out, w.broken)
	return out
}
