package replicas

import (
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward/store"
)

// life is replicas that beat, as one of them reads of it.
type life struct {
	a    attendance
	now  time.Time
	last map[string]time.Time // the last beats, by id
}

const (
	beatEvery = 400 * time.Millisecond
	leaseFor  = 2 * time.Second
)

func newLife() *life {
	return &life{a: newAttendance(ripeAfter * beatEvery), now: time.Unix(1_800_000_000, 0), last: map[string]time.Time{}}
}

// pass lets time go by while the replicas given as id, name, ... beat, and says after
// how long one of them was ripe; 0 if it was not.
func (l *life) pass(d time.Duration, watched string, there ...string) (ripe time.Duration) {
	for began := l.now; l.now.Sub(began) < d; l.now = l.now.Add(beatEvery) {
		var roll []store.Replica
		for i := 0; i < len(there); i += 2 {
			l.last[there[i]] = l.now
		}
		for id, at := range l.last {
			if left := leaseFor - l.now.Sub(at); left > 0 {
				r := store.Replica{ID: id, Name: id[:1], Left: left}
				if i := slices.Index(there, id); i >= 0 {
					r.Name = there[i+1]
				}
				roll = append(roll, r)
			}
		}
		l.a.note(roll, l.now.Add(-10*time.Millisecond), l.now)
		if ripe == 0 && l.a.ripe(watched, l.now) {
			ripe = max(1, l.now.Sub(began))
		}
	}
	return ripe
}

// A new replica is given work after four beats; one that was frozen, or that was killed
// and started again, after a minute without a gap; one that ended as it should and comes
// back is new.
func TestWhoWasLostWaits(t *testing.T) {
	t.Parallel()
	l := newLife()
	if got := l.pass(time.Minute, "b1", "a1", "a", "b1", "b"); got != ripeAfter*beatEvery {
		t.Errorf("new: ripe after %s", got)
	}
	l.pass(10*time.Second, "", "a1", "a") // b1 is frozen
	if l.a.ripe("b1", l.now) {
		t.Error("ripe while it is away")
	}
	if got := l.pass(40*time.Second, "b1", "a1", "a", "b1", "b"); got != 0 {
		t.Errorf("back: ripe after %s", got)
	}
	l.pass(5*time.Second, "", "a1", "a") // and again
	if got := l.pass(2*time.Minute, "b1", "a1", "a", "b1", "b"); got < steadyFor || got > steadyFor+beatEvery {
		t.Errorf("back again: ripe after %s", got)
	}
	l.pass(5*time.Second, "", "a1", "a") // it dies
	if got := l.pass(2*time.Minute, "b2", "a1", "a", "b2", "b"); got < steadyFor || got > steadyFor+beatEvery {
		t.Errorf("started again: ripe after %s", got)
	}
	delete(l.last, "b2") // it says that it ends
	l.pass(lossKept+time.Minute, "", "a1", "a")
	delete(l.last, "a1")
	if got := l.pass(time.Minute, "b3", "b3", "b"); got != ripeAfter*beatEvery {
		t.Errorf("ended and started again: ripe after %s", got)
	}
	if got := l.pass(time.Minute, "a2", "b3", "b", "a2", "a"); got != ripeAfter*beatEvery {
		t.Errorf("the other ended and started again: ripe after %s", got)
	}
}

// A replica that ends as it should is no loss, however soon it is there again: a new
// version goes over all of them.
func TestWhoEndsIsNotLost(t *testing.T) {
	t.Parallel()
	l := newLife()
	l.pass(time.Minute, "", "a1", "a", "b1", "b")
	delete(l.last, "b1")
	l.pass(beatEvery, "", "a1", "a")
	if got := l.pass(time.Minute, "b2", "a1", "a", "b2", "b"); got != ripeAfter*beatEvery {
		t.Errorf("ripe after %s", got)
	}
}

// TestATargetStaysAfterAFreeze: the target of an agent that was frozen goes to the other
// one, and stays there when it thaws: what goes back is the house, after a minute.
func TestATargetStaysAfterAFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	w.settle(t)
	frozen := w.holder["t00"]
	if w.holder[store.House] == frozen {
		t.Fatalf("one has all: %v", w.holder)
	}
	all := w.replicas
	w.replicas = slices.DeleteFunc(slices.Clone(all), func(r store.Replica) bool { return r.ID == frozen })
	other := w.replicas[0].ID
	delete(w.holder, "t00") // its lease ended
	w.settle(t)
	if w.holder["t00"] != other {
		t.Fatalf("nobody took it: %v", w.holder)
	}
	w.replicas, w.unripe = all, map[string]bool{frozen: true}
	w.settle(t)
	if w.holder["t00"] != other || w.holder[store.House] != other {
		t.Errorf("given back at once: %v", w.holder)
	}
	w.unripe = nil
	w.settle(t)
	if w.holder["t00"] != other || w.holder[store.House] != frozen {
		t.Errorf("after a minute: %v, want the house alone to move", w.holder)
	}
}

// TestWhatNobodyDoesIsTakenAtOnce, by whoever has least, also by one that came back.
func TestWhatNobodyDoesIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 3)
	w.unripe = map[string]bool{"r0": true, "r1": true}
	w.settle(t)
	load := map[string]int{}
	for _, d := range w.duties {
		load[w.holder[d.Name]]++
	}
	if load["r0"] != 2 || load["r1"] != 2 {
		t.Errorf("uneven: %v", w.holder)
	}
}
