package replicas

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/store"
)

// world is replicas that decide in turns, each from the roll as it is.
type world struct {
	replicas []store.Replica
	duties   []Duty
	holder   map[string]string
	unripe   map[string]bool
	unsure   map[string]bool // did not try again, by id
	shaky    map[way]bool
}

func (w *world) roll() store.Roll {
	r := store.Roll{Replicas: w.replicas}
	for _, d := range w.duties {
		if owner := w.holder[d.Name]; owner != "" {
			r.Leases = append(r.Leases, store.Lease{Target: d.Name, Owner: owner})
		}
	}
	return r
}

func (w *world) turn(me string) bool {
	d := decide(view{
		me: me, roll: w.roll(), duties: w.duties,
		able: func(r store.Replica, duty string) bool {
			return duty == store.House || slices.Contains(r.Targets, duty)
		},
		ripe:  func(id string) bool { return !w.unripe[id] },
		sure:  func(string) bool { return !w.unsure[me] },
		shaky: func(id, duty string) bool { return w.shaky[way{id, duty}] },
	})
	for _, name := range d.take {
		if w.holder[name] != "" {
			panic(me + " takes what " + w.holder[name] + " has: " + name)
		}
		w.holder[name] = me
	}
	for _, name := range slices.Concat(d.hand, d.give) {
		if w.holder[name] != me {
			panic(me + " gives what it does not have: " + name)
		}
		delete(w.holder, name)
	}
	return len(d.take)+len(d.hand)+len(d.give) > 0
}

func newWorld(replicas, targets int) *world {
	w := &world{holder: map[string]string{}, duties: []Duty{{Name: store.House}}}
	var names []string
	for i := range targets {
		names = append(names, fmt.Sprintf("t%02d", i))
		w.duties = append(w.duties, Duty{Name: names[i]})
	}
	for i := range replicas {
		w.replicas = append(w.replicas, store.Replica{ID: fmt.Sprintf("r%d", i), Targets: names})
	}
	return w
}

// settle lets all decide until nobody moves.
func (w *world) settle(t interface{ Fatal(...any) }) {
	for range 100 * (len(w.duties) + 1) {
		moved := false
		for _, r := range w.replicas {
			moved = w.turn(r.ID) || moved
		}
		if !moved {
			return
		}
	}
	t.Fatal("duties go round and round", w.holder)
}

// Whoever comes and goes, all is done, by those that could, and nobody has two duties
// more than another.
func TestDutiesAreSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 5).Draw(t, "replicas"), rapid.IntRange(0, 12).Draw(t, "targets"))
		all := w.replicas
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			w.replicas = nil
			for _, r := range all {
				if rapid.Bool().Draw(t, r.ID) {
					w.replicas = append(w.replicas, r)
				}
			}
			if len(w.replicas) == 0 {
				w.replicas = all[:1]
			}
			for name, owner := range w.holder {
				if !slices.ContainsFunc(w.replicas, func(r store.Replica) bool { return r.ID == owner }) {
					delete(w.holder, name) // its lease ended
				}
			}
			w.settle(t)
			load := map[string]int{}
			for _, d := range w.duties {
				if w.holder[d.Name] == "" {
					t.Fatalf("nobody does %s", d.Name)
				}
				load[w.holder[d.Name]]++
			}
			least, most := len(w.duties), 0
			for _, r := range w.replicas {
				least, most = min(least, load[r.ID]), max(most, load[r.ID])
			}
			if most-least > 1 {
				t.Fatalf("uneven: %v", load)
			}
		}
	})
}

// The masters of one Redlock are with one replica.
func TestDutiesThatGoTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 7)
	for i := range w.duties {
		switch w.duties[i].Name {
		case "t01", "t02":
			w.duties[i].With = "t00"
		}
	}
	w.settle(t)
	if w.holder["t00"] != w.holder["t01"] || w.holder["t00"] != w.holder["t02"] {
		t.Errorf("apart: %v", w.holder)
	}
	// The leader moves: the others follow.
	gone := w.holder["t00"]
	w.replicas = slices.DeleteFunc(w.replicas, func(r store.Replica) bool { return r.ID == gone })
	delete(w.holder, "t00")
	for name, owner := range w.holder {
		if owner == gone {
			delete(w.holder, name)
		}
	}
	w.settle(t)
	if w.holder["t00"] == "" || w.holder["t00"] != w.holder["t01"] || w.holder["t00"] != w.holder["t02"] {
		t.Errorf("apart after a move: %v", w.holder)
	}
}

// A target is with those that have it in their configuration.
func TestDutiesOfOneConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 4)
	w.replicas[1].Targets = []string{"t03"}
	w.settle(t)
	for _, name := range []string{"t00", "t01", "t02"} {
		if w.holder[name] != "r0" {
			t.Errorf("%s is with %q", name, w.holder[name])
		}
	}
}
