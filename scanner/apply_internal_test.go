package scanner

import (
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// One place decides what a look at a key does to the table, by the time of the look.
func TestApplyGoesByTheTimeOfTheLook(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) int64 { return micros(moment(d)) }
	const known, none = "known", ""
	for name, tc := range map[string]struct {
		lock       string        // that the look found, none for no lock
		at         time.Duration // of the look; the known one is of 0
		took       time.Duration // since the look began
		keep       bool
		now, ended string // digests
	}{
		"the same, later":                    {lock: known, at: time.Second, now: known},
		"the next, later":                    {lock: "next", at: time.Second, now: "next", ended: known},
		"gone, later":                        {at: time.Second, ended: known},
		"gone, later, and told by a sweep":   {at: time.Second, keep: true},
		"the one before, read earlier":       {lock: "before", at: -time.Second, now: known},
		"gone, read earlier":                 {at: -time.Second, now: known},
		"gone, read earlier, kept":           {at: -time.Second, keep: true, now: known},
		"gone, read earlier, slowly":         {at: -time.Minute, took: time.Minute, now: known},
		"the one before, slowly":             {lock: "before", at: -time.Minute, took: time.Minute, now: known},
		"gone, and the clock was set back":   {at: -time.Hour, took: time.Minute, ended: known},
		"the next, by a clock set back":      {lock: "next", at: -time.Hour, took: time.Minute, now: "next", ended: known},
		"gone at the very moment":            {ended: known},
		"the known one, by a clock set back": {lock: known, at: -time.Hour, now: known},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(locksteward.Target{})
			kind := table.traitSet.of(traits{node: "a", typ: "string"})
			see := func(digest string, when int64) *lockState {
				return &lockState{key: "k", traits: kind, digest: digest, at: when, expireAt: locksteward.NoExpireAt}
			}
			table.update(*see(known, at(0)))
			b := batch{began: time.Now().Add(-tc.took), keepGone: tc.keep}
			r := reading{key: "k", at: at(tc.at), gone: tc.lock == none}
			if tc.lock != none {
				r.lock = see(tc.lock, r.at)
			}
			now, ended := table.decide(&b, &r)
			if got := digestOf(now); got != tc.now {
				t.Errorf("now %q, want %q", got, tc.now)
			}
			if got := digestOf(ended); got != tc.ended {
				t.Errorf("ended %q, want %q", got, tc.ended)
			}
			stays := tc.now
			if tc.keep {
				stays = known
			}
			if got := digestOf(table.entries["k"]); got != stays {
				t.Errorf("the table has %q, want %q", got, stays)
			}
		})
	}
}

func digestOf(e *entry) string {
	if e == nil {
		return ""
	}
	return e.digest
}

// A key that moves during a sweep is found by two masters. Where its lock was taken
// anew meanwhile the sweep has the successor, however often the hold before was seen.
func TestSweepHasTheSuccessorOfAHoldThatItFoundToo(t *testing.T) {
	t.Parallel()
	table := newTable(locksteward.Target{})
	see := func(digest, node string, when time.Duration) *entry {
		kind := table.traitSet.of(traits{node: node, typ: "string"})
		now, _ := table.merged(lockState{key: "k", traits: kind, digest: digest, at: micros(moment(when)), expireAt: locksteward.NoExpireAt})
		return now
	}
	see("first", "a", 0)
	first := see("first", "a", time.Second)
	next := see("next", "b", 2*time.Second)
	for _, order := range [][]*entry{{first, next}, {next, first}} {
		var got []string
		for l := range table.visit(table.sortEntries(slices.Clone(order))) {
			got = append(got, l.TokenDigest)
		}
		if !slices.Equal(got, []string{"next"}) {
			t.Errorf("the sweep has %q", got)
		}
	}
}
