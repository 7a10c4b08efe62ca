package cluster

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/store"
)

// world is replicas that decide in turns, each from the membership as it is.
type world struct {
	replicas    []store.Replica
	duties      []Duty
	owner       map[string]string
	unstable    map[string]bool
	unconfirmed map[string]bool // did not try again, by id
	unreliable  map[replicaTarget]bool
}

func (w *world) members() store.Membership {
	m := store.Membership{Replicas: w.replicas}
	for _, d := range w.duties {
		if owner := w.owner[d.Name]; owner != "" {
			m.Leases = append(m.Leases, store.Lease{Target: d.Name, Owner: owner})
		}
	}
	return m
}

func (w *world) turn(self string) bool {
	d := decide(view{
		self: self, members: w.members(), duties: w.duties,
		eligible: func(r store.Replica, duty string) bool {
			return duty == store.SingletonDuties || slices.Contains(r.Targets, duty)
		},
		stable:     func(id string) bool { return !w.unstable[id] },
		confirmed:  func(string) bool { return !w.unconfirmed[self] },
		unreliable: func(id, duty string) bool { return w.unreliable[replicaTarget{id, duty}] },
	})
	for _, name := range d.acquire {
		if w.owner[name] != "" {
			panic(self + " acquires what " + w.owner[name] + " owns: " + name)
		}
		w.owner[name] = self
	}
	for _, name := range slices.Concat(d.handOver, d.release) {
		if w.owner[name] != self {
			panic(self + " releases what it does not own: " + name)
		}
		delete(w.owner, name)
	}
	return len(d.acquire)+len(d.handOver)+len(d.release) > 0
}

func newWorld(replicas, targets int) *world {
	w := &world{owner: map[string]string{}, duties: []Duty{{Name: store.SingletonDuties}}}
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
	t.Fatal("duties go round and round", w.owner)
}

// Anyone who comes and goes, all is done, by those that could, and nobody has two duties
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
			for name, owner := range w.owner {
				if !slices.ContainsFunc(w.replicas, func(r store.Replica) bool { return r.ID == owner }) {
					delete(w.owner, name) // its lease ended
				}
			}
			w.settle(t)
			load := map[string]int{}
			for _, d := range w.duties {
				if w.owner[d.Name] == "" {
					t.Fatalf("nobody does %s", d.Name)
				}
				load[w.owner[d.Name]]++
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
	if w.owner["t00"] != w.owner["t01"] || w.owner["t00"] != w.owner["t02"] {
		t.Errorf("apart: %v", w.owner)
	}
	// The leader moves: the others follow.
	gone := w.owner["t00"]
	w.replicas = slices.DeleteFunc(w.replicas, func(r store.Replica) bool { return r.ID == gone })
	delete(w.owner, "t00")
	for name, owner := range w.owner {
		if owner == gone {
			delete(w.owner, name)
		}
	}
	w.settle(t)
	if w.owner["t00"] == "" || w.owner["t00"] != w.owner["t01"] || w.owner["t00"] != w.owner["t02"] {
		t.Errorf("apart after a move: %v", w.owner)
	}
}

// A target is with those that have it in their configuration.
func TestDutiesOfOneConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 4)
	w.replicas[1].Targets = []string{"t03"}
	w.settle(t)
	for _, name := range []string{"t00", "t01", "t02"} {
		if w.owner[name] != "r0" {
			t.Errorf("%s is with %q", name, w.owner[name])
		}
	}
}

// Groups that share a target are one: all of its targets go with the same one, which goes with none.
func TestDutiesOfGroups(t *testing.T) {
	t.Parallel()
	with := map[string]string{}
	for _, d := range Duties([]string{"a", "b", "c", "d", "e", "f"}, [][]string{{"a", "b"}, {"c", "d"}, {"d", "b"}, {}}) {
		with[d.Name] = d.With
	}
	leader := with["b"]
	for _, name := range []string{"a", "b", "c", "d"} {
		if name != leader && with[name] != leader {
			t.Errorf("%s goes with %q, want %q", name, with[name], leader)
		}
	}
	if len(with) != 7 || leader == "" || with[leader] != "" || with["e"]+with["f"]+with[store.SingletonDuties] != "" {
		t.Errorf("%v", with)
	}
}
