package rules

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// Changes are what nobody is notified of: findings that begin to wait, wait anew, or end
// before they fired. With what transitions tell they are all that changes.
func TestChangesAndTransitionsAreAll(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	kept := map[string]locksteward.Status{}
	note := func(f locksteward.Finding) {
		if f.Status == locksteward.StatusResolved {
			delete(kept, f.Key)
		} else {
			kept[f.Key] = f.Status
		}
	}
	look := func(at time.Time, keys ...string) (reported, changed int) {
		s := locksteward.Sweep{Target: "redis", At: at, Masters: []locksteward.MasterPass{{Node: "a", Complete: true}}}
		for _, key := range keys {
			s.Locks = append(s.Locks, locksteward.Lock{
				Observation: locksteward.Observation{Target: "redis", Key: key, Kind: locksteward.KindLock, At: at, TTL: locksteward.NoExpiry, TokenDigest: "d" + key},
				History:     locksteward.History{FirstSeen: t0, LastSeen: at, Looks: 1},
			})
		}
		transitions := e.EvaluateSweep(s)
		for part := range transitions.Parts(1) {
			for _, tr := range part {
				note(tr.Finding)
			}
		}
		changes := e.Changes("redis")
		for f := range changes.All() {
			note(f)
		}
		var now []string
		for f := range e.FindingsOn("redis").Outlines() {
			if kept[f.Key] != f.Status {
				t.Errorf("%s is %s, kept is %q", f.Key, f.Status, kept[f.Key])
			}
			now = append(now, f.Key)
		}
		if len(now) != len(kept) {
			t.Errorf("findings on %v, kept %v", now, kept)
		}
		return transitions.Len(), changes.Len()
	}
	if changes := e.Changes("redis"); changes.Len() != 0 {
		t.Errorf("%d changes before the first look", changes.Len())
	}
	for i, step := range []struct {
		after             time.Duration
		keys              string
		reported, changed int
	}{
		{0, "a b c", 0, 3},           // they wait
		{time.Second, "a b", 0, 1},   // c is over
		{3 * time.Second, "a", 1, 1}, // a fires, b is over
		{4 * time.Second, "a", 0, 0}, // nothing
		{5 * time.Second, "a d", 0, 1},
		{9 * time.Second, "d", 2, 0}, // a ends, d fires
		{10 * time.Second, "", 1, 0},
	} {
		if reported, changed := look(t0.Add(step.after), strings.Fields(step.keys)...); reported != step.reported || changed != step.changed {
			t.Errorf("step %d: %d reported, %d changed; want %d and %d", i, reported, changed, step.reported, step.changed)
		}
	}
}

// Findings stay as they were when they were asked for, in the order of Findings.
func TestFindingsOnIsOneMoment(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	lock := func(key string, at time.Time) locksteward.Lock {
		return locksteward.Lock{
			Observation: locksteward.Observation{Target: "redis", Key: key, Kind: locksteward.KindLock, At: at, TTL: locksteward.NoExpiry, TokenDigest: "d"},
			History:     locksteward.History{FirstSeen: t0, LastSeen: at, Looks: 1},
		}
	}
	evaluateLocks(e, "redis", t0, []locksteward.Lock{lock("b", t0), lock("a", t0)}, nil)
	want := e.Findings()
	before := e.FindingsOn("redis")
	at := t0.Add(time.Minute)
	evaluateLocks(e, "redis", at, []locksteward.Lock{lock("a", at)}, []locksteward.Ending{{Lock: lock("b", t0), How: locksteward.EndedReleased, At: at}})
	got := slices.Collect(before.All())
	if len(got) != 2 || got[0].Key != "a" || !slices.EqualFunc(got, want, func(a, b locksteward.Finding) bool {
		return a.Key == b.Key && a.Status == b.Status && reflect.DeepEqual(a.Summary, b.Summary) && reflect.DeepEqual(a.Evidence, b.Evidence)
	}) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if n := e.FindingsOn("other").Len(); n != 0 {
		t.Errorf("%d findings of another target", n)
	}
	var none Transitions
	if none.Len() != 0 || none.List() != nil {
		t.Error("there are transitions without an evaluation")
	}
}
