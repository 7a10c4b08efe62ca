package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward/store"
)

// life is replicas that send heartbeats, as one of them reads of it.
type life struct {
	a    presence
	now  time.Time
	last map[string]time.Time // the last heartbeats, by id
}

const (
	heartbeatEvery = 400 * time.Millisecond
	leaseFor       = 2 * time.Second
)

func newLife() *life {
	return &life{a: newPresence(stableAfter * heartbeatEvery), now: time.Unix(1_800_000_000, 0), last: map[string]time.Time{}}
}

// pass lets time go by while the replicas given as id, name, ... send heartbeats, and returns after
// how long one of them was stable; 0 if it was not.
func (l *life) pass(d time.Duration, watched string, there ...string) (stable time.Duration) {
	for began := l.now; l.now.Sub(began) < d; l.now = l.now.Add(heartbeatEvery) {
		var replicas []store.Replica
		for i := 0; i < len(there); i += 2 {
			l.last[there[i]] = l.now
		}
		for id, at := range l.last {
			if left := leaseFor - l.now.Sub(at); left > 0 {
				r := store.Replica{ID: id, Name: id[:1], Left: left}
				if i := slices.Index(there, id); i >= 0 {
					r.Name = there[i+1]
				}
				replicas = append(replicas, r)
			}
		}
		l.a.update(replicas, l.now.Add(-10*time.Millisecond), l.now)
		if stable == 0 && l.a.stable(watched, l.now) {
			stable = max(1, l.now.Sub(began))
		}
	}
	return stable
}

// A new replica is given work after four heartbeats; one that was frozen, or that was killed
// and started again, after a minute without a gap; one that ended as it should and comes
// back is new.
func TestWhoWasLostWaits(t *testing.T) {
	t.Parallel()
	l := newLife()
	if got := l.pass(time.Minute, "b1", "a1", "a", "b1", "b"); got != stableAfter*heartbeatEvery {
		t.Errorf("new: stable after %s", got)
	}
	l.pass(10*time.Second, "", "a1", "a") // b1 is frozen
	if l.a.stable("b1", l.now) {
		t.Error("stable while it is away")
	}
	if got := l.pass(40*time.Second, "b1", "a1", "a", "b1", "b"); got != 0 {
		t.Errorf("back: stable after %s", got)
	}
	l.pass(5*time.Second, "", "a1", "a") // and again
	if got := l.pass(2*time.Minute, "b1", "a1", "a", "b1", "b"); got < unreliableFor || got > unreliableFor+heartbeatEvery {
		t.Errorf("back again: stable after %s", got)
	}
	l.pass(5*time.Second, "", "a1", "a") // it dies
	if got := l.pass(2*time.Minute, "b2", "a1", "a", "b2", "b"); got < unreliableFor || got > unreliableFor+heartbeatEvery {
		t.Errorf("started again: stable after %s", got)
	}
	delete(l.last, "b2") // it says that it ends
	l.pass(lossKept+time.Minute, "", "a1", "a")
	delete(l.last, "a1")
	if got := l.pass(time.Minute, "b3", "b3", "b"); got != stableAfter*heartbeatEvery {
		t.Errorf("ended and started again: stable after %s", got)
	}
	if got := l.pass(time.Minute, "a2", "b3", "b", "a2", "a"); got != stableAfter*heartbeatEvery {
		t.Errorf("the other ended and started again: stable after %s", got)
	}
}

// A replica that ends as it should is no loss, however soon it is there again: a new
// version goes over all of them.
func TestWhoEndsIsNotLost(t *testing.T) {
	t.Parallel()
	l := newLife()
	l.pass(time.Minute, "", "a1", "a", "b1", "b")
	delete(l.last, "b1")
	l.pass(heartbeatEvery, "", "a1", "a")
	if got := l.pass(time.Minute, "b2", "a1", "a", "b2", "b"); got != stableAfter*heartbeatEvery {
		t.Errorf("stable after %s", got)
	}
}

// TestATargetStaysAfterAFreeze: the target of an agent that was frozen goes to the other
// one, and stays there when it thaws: the singleton duties go back, after a minute.
func TestATargetStaysAfterAFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	w.settle(t)
	frozen := w.owner["t00"]
	if w.owner[store.SingletonDuties] == frozen {
		t.Fatalf("one has all: %v", w.owner)
	}
	all := w.replicas
	w.replicas = slices.DeleteFunc(slices.Clone(all), func(r store.Replica) bool { return r.ID == frozen })
	other := w.replicas[0].ID
	delete(w.owner, "t00") // its lease ended
	w.settle(t)
	if w.owner["t00"] != other {
		t.Fatalf("nobody took it: %v", w.owner)
	}
	w.replicas, w.unstable = all, map[string]bool{frozen: true}
	w.settle(t)
	if w.owner["t00"] != other || w.owner[store.SingletonDuties] != other {
		t.Errorf("given back at once: %v", w.owner)
	}
	w.unstable = nil
	w.settle(t)
	if w.owner["t00"] != other || w.owner[store.SingletonDuties] != frozen {
		t.Errorf("after a minute: %v, want the singleton duties alone to move", w.owner)
	}
}

// TestWhatNobodyDoesIsTakenAtOnce, by anyone who has least, also by one that came back.
func TestWhatNobodyDoesIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 3)
	w.unstable = map[string]bool{"r0": true, "r1": true}
	w.settle(t)
	load := map[string]int{}
	for _, d := range w.duties {
		load[w.owner[d.Name]]++
	}
	if load["r0"] != 2 || load["r1"] != 2 {
		t.Errorf("uneven: %v", w.owner)
	}
}
