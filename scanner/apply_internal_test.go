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
		"the same, later":                      {lock: known, at: time.Second, now: known},
		"the next, later":                      {lock: "next", at: time.Second, now: "next", ended: known},
		"gone, later":                          {at: time.Second, ended: known},
		"gone, later, and reported by a sweep": {at: time.Second, keep: true},
		"the one before, read earlier":         {lock: "before", at: -time.Second, now: known},
		"gone, read earlier":                   {at: -time.Second, now: known},
		"gone, read earlier, kept":             {at: -time.Second, keep: true, now: known},
		"gone, read earlier, slowly":           {at: -time.Minute, took: time.Minute, now: known},
		"the one before, slowly":               {lock: "before", at: -time.Minute, took: time.Minute, now: known},
		"gone, and the clock was set back":     {at: -time.Hour, took: time.Minute, ended: known},
		"the next, by a clock set back":        {lock: "next", at: -time.Hour, took: time.Minute, now: "next", ended: known},
		"gone at the very moment":              {ended: known},
		"the known one, by a clock set back":   {lock: known, at: -time.Hour, now: known},
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

// How a hold ended is judged by the evidence of its batch, anyone who read: a lost hold of
// ours is reported even if a recheck finds it before the watch does.
func TestApplyJudgesEndingsByTheEvidence(t *testing.T) {
	t.Parallel()
	gone := func(*reading) {}
	lost := map[lossKey]locksteward.Loss{{"k", "id"}: {How: locksteward.EndedExpired}}
	for name, tc := range map[string]struct {
		batch batch
		read  func(*reading)
		flush bool // a flush was pushed before the reading
		how   locksteward.EndedHow
		by    locksteward.ServerEventKind
		loss  bool
	}{
		"gone":                             {batch{node: "a"}, gone, false, locksteward.EndedReleased, "", false},
		"gone from another server":         {batch{node: "b"}, gone, false, locksteward.EndedDeleted, "", false},
		"gone after a flush":               {batch{node: "a"}, gone, true, locksteward.EndedDeleted, locksteward.ServerFlushed, true},
		"gone, with metadata":              {batch{node: "a", losses: lost}, gone, false, locksteward.EndedExpired, "", false},
		"gone after a flush with metadata": {batch{node: "a", losses: lost}, gone, true, locksteward.EndedExpired, "", false},
		"no lock any more":                 {batch{node: "a"}, func(r *reading) { r.gone = false }, false, locksteward.EndedReplaced, "", false},
		"gone in a sweep":                  {batch{node: "a", sweep: &sweepEvidence{flush: &flushWindow{}}}, gone, false, locksteward.EndedReleased, "", false},
		"gone in a sweep from another server that kept all": {
			batch{node: "b", sweep: &sweepEvidence{flush: &flushWindow{}}}, gone, false, locksteward.EndedReleased, "", false,
		},
		"gone in a sweep of a server that lost keys": {
			batch{node: "a", sweep: &sweepEvidence{flush: &flushWindow{}, lostKeys: true}}, gone, false, locksteward.EndedDeleted, "", false,
		},
		"gone in a sweep after a flush": {
			batch{node: "a", sweep: &sweepEvidence{flush: &flushWindow{}}}, gone, true, locksteward.EndedDeleted, locksteward.ServerFlushed, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable(locksteward.Target{})
			first := micros(moment(0))
			table.update(lockState{
				key: "k", traits: table.traitSet.of(traits{node: "a", typ: "string"}), digest: "d", at: first,
				expireAt: first/1000 + 60_000, claim: &locksteward.Claim{ID: "id"},
			})
			if tc.flush {
				table.flush("a", moment(time.Second), true)
			}
			r := reading{key: "k", at: micros(moment(2 * time.Second)), gone: true}
			tc.read(&r)
			tc.batch.began, tc.batch.readings = time.Now(), slices.Values([]reading{r})
			c := table.apply(&tc.batch)
			if len(c) != 1 || c[0].ended == nil || c[0].now != nil || c[0].lock != nil || table.Len() != 0 {
				t.Fatalf("got %+v, %d locks are left", c, table.Len())
			}
			if e := c[0].ended; e.How != tc.how || e.By != tc.by || (c[0].loss != nil) != tc.loss {
				t.Errorf("ended %q by %q, lost %t; want %q by %q, lost %t", e.How, e.By, c[0].loss != nil, tc.how, tc.by, tc.loss)
			}
		})
	}
}
