package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// table of a scanner, as far as sweeps yield from it: what is known now of their locks.
type live struct {
	keys []string
	now  map[string]locksteward.Lock
}

func (t *live) all(yield func(*locksteward.Lock) bool) {
	for _, key := range t.keys {
		if l, ok := t.now[key]; ok && !yield(&l) {
			return
		}
	}
}

// liveSweep is a complete sweep that found locks.
func liveSweep(at time.Time, locks []locksteward.Lock) (locksteward.Sweep, *live) {
	t := &live{now: map[string]locksteward.Lock{}}
	for _, l := range locks {
		t.now[l.Key] = l
	}
	t.keys = slices.Sorted(maps.Keys(t.now))
	s := sweepAt(at)
	s.SetLocks(len(t.keys), t.all)
	return s, t
}

// crowd are locks for several steps, one in seven without TTL.
func crowd(at time.Time) (out []locksteward.Lock) {
	for i := range 2*stepLocks + 500 {
		l := lockAt(fmt.Sprintf("lock:%06d", i), at)
		if i%7 == 0 {
			noTTL(&l)
		}
		out = append(out, l)
	}
	return out
}

// TestStepsComeToTheSame as all at once, and their transitions are numbered in the order
// in which they are given.
func TestStepsComeToTheSame(t *testing.T) {
	t.Parallel()
	whole, parts := newEngine(t, nil, nil), newEngine(t, nil, nil)
	for _, at := range []time.Time{t0, after(RecheckAfter), after(time.Minute)} {
		locks := crowd(at)
		if at.Equal(after(time.Minute)) {
			locks = locks[:stepLocks+3] // the others are gone
		}
		sweep, _ := liveSweep(at, locks)
		want := brief(whole.Evaluate(sweep))
		var got []string
		steps, seq := 0, parts.seq
		for transitions := range parts.EvaluateSteps(sweep) {
			steps++
			for _, tr := range transitions.List() {
				if seq++; tr.Seq != seq {
					t.Fatalf("number %d of %s, want %d", tr.Seq, tr.Finding.Key, seq)
				}
				got = append(got, brief([]locksteward.Transition{tr})...)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("at %s: %d transitions, all at once %d", at, len(got), len(want))
		}
		if atLeast := len(locks) / stepLocks; steps < atLeast+2 {
			t.Errorf("%d locks in %d steps", len(locks), steps)
		}
	}
	if a, b := whole.Findings(), parts.Findings(); len(a) == 0 || len(a) != len(b) {
		t.Errorf("%d findings, all at once %d", len(b), len(a))
	}
}

// TestWatchBetweenSteps: what a watch finds while a sweep is judged is reported between its
// steps, stays although the sweep did not see it, and nothing is notified of what was over
// when its turn came.
func TestWatchBetweenSteps(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	start := crowd(t0)
	first, _ := liveSweep(t0, start)
	e.Evaluate(first)
	var fresh locksteward.Lock
	sweep, table := liveSweep(after(RecheckAfter), crowd(after(RecheckAfter)))
	healed, ended := table.keys[7*400], table.keys[7*500] // in the second step, both without TTL
	reported := map[string][]string{}
	take := func(list []locksteward.Transition) {
		for _, tr := range list {
			reported[tr.Finding.Key] = append(reported[tr.Finding.Key], string(tr.Finding.Status))
		}
	}
	step := 0
	for transitions := range e.EvaluateSteps(sweep) {
		take(transitions.List())
		if step++; step != 2 {
			continue
		}
		now := after(RecheckAfter + time.Second)
		old := table.now[ended]
		table.now[healed] = lockAt(healed, now)
		delete(table.now, ended)
		fresh = lockAt("lock:fresh", now, noTTL, firstSeen(now.Add(-RecheckAfter)))
		watched := sweepAt(now, table.now[healed], fresh).Update()
		watched.Endings = []locksteward.Ending{{Lock: old, How: locksteward.EndedReleased, At: now}}
		take(e.EvaluateWatched(watched))
	}
	for _, key := range []string{healed, ended} {
		if got := reported[key]; len(got) != 0 {
			t.Errorf("%s was reported as %v: it was well before it fired", key, got)
		}
		if got := e.FindingsFor("redis", 0, key); len(got) != 0 {
			t.Errorf("%s has findings: %v", key, got)
		}
	}
	if got := e.FindingsFor("redis", 0, fresh.Key); len(got) != 1 || got[0].Rule != TTLNone {
		t.Errorf("what the watch found meanwhile is forgotten: %v", got)
	}
	if got := reported[table.keys[0]]; !slices.Equal(got, []string{"firing"}) {
		t.Errorf("%s was reported as %v", table.keys[0], got)
	}
	// The next sweep knows of it.
	next, _ := liveSweep(after(time.Minute), append(crowd(after(time.Minute)), lockAt(fresh.Key, after(time.Minute), noTTL)))
	take(e.Evaluate(next))
	if got := strings.Join(reported[fresh.Key], " "); got != "firing" {
		t.Errorf("%s was reported as %q", fresh.Key, got)
	}
}

// TestStepsMayEndEarly: anyone who stops in the middle leaves the engine as it is.
func TestStepsMayEndEarly(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	sweep, _ := liveSweep(t0, crowd(t0))
	for range e.EvaluateSteps(sweep) {
		break
	}
	if got := e.Evaluate(sweep); e.Findings() == nil {
		t.Errorf("nothing is found after it: %v", got)
	}
}
