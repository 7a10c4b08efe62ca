package histories_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// lanes is how many servers share the histories; histories is how many there are
// unless -rapid.checks says how many each server plays.
const (
	lanes     = 8
	histories = 200
)

// play plays one history and returns what was wrong, "" for nothing.
func play(rt *rapid.T, l *lane, lib *library, spoil func(*observer), seen *tally) (wrong violation) {
	seed := rapid.Uint64().Draw(rt, "seed")
	skew := oneOf(rt, "the agent's clock is off by", 0, -7*time.Second, time.Hour, -400*24*time.Hour)
	defer func() {
		r := recover()
		if v, ok := r.(violation); ok {
			wrong = v
		} else if r != nil {
			panic(r)
		}
	}()
	w := l.newWorld(lib, seed, skew, spoil)
	defer w.end()
	for range 2 {
		w.take(rt, lib)
	}
	rt.Repeat(w.actions(lib))
	// All stands still: what is there is reported.
	w.sweep()
	w.advance(2100 * time.Millisecond)
	w.sweep()
	w.advance(3 * time.Minute)
	w.sweep()
	seen.add(w.truth.seen)
	return ""
}

// add takes in what one history has shown.
func (t *tally) add(o tally) {
	for f := range o.families {
		t.families[f] = true
	}
	for e, n := range o.events {
		t.events[e] += n
	}
}

// mustHappen are what the histories have to show: checks that were never put to
// the test show nothing.
var mustHappen = []string{
	"ttl/none pending", "ttl/none firing", "hold/too-long firing", "hold/lost firing", "wait/cycle pending", "wait/cycle firing",
	"dead " + string(locksteward.Proven), "dead " + string(locksteward.Presumed), "dead_when",
}

// TestHistories plays random histories of lock users in all formats: what the
// agent says of them is what is true of them.
// fault: 9
func TestHistories(t *testing.T) {
	t.Parallel()
	lib := readLibrary(t)
	all := tally{families: map[string]bool{}, events: map[string]int{}}
	var mu sync.Mutex
	t.Run("lanes", func(t *testing.T) {
		for i := range lanes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				l := newLane(t)
				seen := tally{families: map[string]bool{}, events: map[string]int{}}
				rapid.Check(t, func(rt *rapid.T) {
					if wrong := play(rt, l, lib, nil, &seen); wrong != "" {
						rt.Fatal(string(wrong))
					}
				})
				mu.Lock()
				defer mu.Unlock()
				all.add(seen)
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, family := range lib.families {
		if !all.families[family] {
			t.Errorf("no history has a user of %s", family)
		}
	}
	for _, event := range mustHappen {
		if all.events[event] == 0 {
			t.Errorf("no history shows %s", event)
		}
	}
	t.Logf("%d formats; looks that showed: %v", len(all.families), all.events)
}

// sabotages are agents that are wrong, each in one way that the histories must
// find.
var sabotages = map[string]struct {
	spoil func(*observer)
	// says is in what is found.
	says string
}{
	"a rule that is blind to hashes without TTL": {says: "ttl/none", spoil: sweeps(func(s *locksteward.Sweep) {
		s.Locks = slices.DeleteFunc(s.Locks, func(l locksteward.Lock) bool { return l.Type == "hash" && l.TTL == locksteward.NoExpiry })
	})},
	"no heartbeat is received": {says: "and lives", spoil: sweeps(func(s *locksteward.Sweep) {
		for i := range s.Locks {
			if l := &s.Locks[i]; l.Instance != nil {
				s.Silent = append(s.Silent, locksteward.MissingHeartbeat{Instance: *l.Instance, Since: s.At.Add(-time.Minute), For: time.Minute, Looks: 3})
				l.Instance, l.History.LastRenewal = nil, time.Time{}
				if l.Claim != nil {
					claim := *l.Claim
					claim.Acquired, claim.Renewed = time.Time{}, time.Time{}
					l.Claim = &claim
				}
			}
		}
		s.Instances = nil
	})},
	"one look makes a deadlock": {says: "wait/cycle", spoil: func(o *observer) {
		o.twice = true
	}},
	"ages begin anew with the agent": {says: "too-long", spoil: func(o *observer) { o.forgetful = true }},
	"losses are not reported": {says: "hold/lost", spoil: sweeps(func(s *locksteward.Sweep) {
		s.Losses = nil
	})},
	"a hold is as old as its key's first hold": {says: "hold/too-long", spoil: func(o *observer) {
		first := map[string]time.Time{}
		o.spoil = func(s *locksteward.Sweep) {
			for i := range s.Locks {
				l := &s.Locks[i]
				if at, ok := first[l.Key]; ok {
					l.History.FirstSeen = at
				}
				first[l.Key] = l.History.FirstSeen
			}
		}
	}},
	"nothing is read again": {says: "is not due", spoil: func(o *observer) { o.lazy = true }},
}

func sweeps(change func(*locksteward.Sweep)) func(*observer) {
	return func(o *observer) { o.spoil = change }
}

// TestSabotage shows that the histories see what they are there for: an agent that
// is made wrong is found out.
func TestSabotage(t *testing.T) {
	t.Parallel()
	lib := readLibrary(t)
	for name, s := range sabotages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t)
			nothing := tally{families: map[string]bool{}, events: map[string]int{}}
			for seed := range 120 {
				wrong := rapid.Custom(func(rt *rapid.T) violation { return play(rt, l, lib, s.spoil, &nothing) }).Example(seed + 1)
				if wrong == "" {
					continue
				}
				what, _, _ := strings.Cut(string(wrong), "\n\nThe history:")
				if !strings.Contains(what, s.says) {
					t.Fatalf("found something else, after %d histories: %s", seed+1, wrong)
				}
				t.Logf("found after %d histories: %s", seed+1, what)
				return
			}
			t.Error("120 histories did not find it")
		})
	}
}
