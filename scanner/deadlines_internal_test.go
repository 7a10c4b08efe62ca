package scanner

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// TestDeadlines puts, moves and removes entries and compares with a plain list.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		table := newTable(locksteward.Target{Name: "t"})
		table.startDeadlines(true)
		kind := &traits{node: "n"}
		model := map[string]int64{}
		rt.Repeat(map[string]func(*rapid.T){
			"see": func(rt *rapid.T) {
				key := rapid.StringMatching(`[a-f]`).Draw(rt, "key")
				at := rapid.Int64Range(-1, 50).Draw(rt, "expires")
				table.mu.Lock()
				table.update(lockState{key: key, traits: kind, digest: "d", expireAt: at, at: 1})
				table.mu.Unlock()
				delete(model, key)
				if at > 0 {
					model[key] = at
				}
			},
			"drop": func(rt *rapid.T) {
				key := rapid.StringMatching(`[a-f]`).Draw(rt, "key")
				table.mu.Lock()
				table.drop(key)
				table.mu.Unlock()
				delete(model, key)
			},
			"take": func(rt *rapid.T) {
				now := rapid.Int64Range(0, 60).Draw(rt, "now")
				keys, next := table.takeDue(time.UnixMilli(now))
				for _, key := range keys {
					if at, ok := model[key]; !ok || at+3 > now {
						rt.Fatalf("%s is due at %d, taken at %d", key, at, now)
					}
					delete(model, key)
				}
				soonest := int64(0)
				for key, at := range model {
					if at+3 <= now {
						rt.Fatalf("%s was due at %d and is not taken at %d", key, at, now)
					}
					if soonest == 0 || at+3 < soonest {
						soonest = at + 3
					}
				}
				if soonest == 0 != next.IsZero() || soonest != 0 && next.UnixMilli() != soonest {
					rt.Fatalf("next is %v, want %d", next, soonest)
				}
			},
		})
	})
}
