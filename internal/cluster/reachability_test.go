package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/store"
)

// says has a replica say what it reaches.
func (w *world) says(id string, unreachable, reachable []string) {
	for i := range w.replicas {
		if w.replicas[i].ID == id {
			w.replicas[i].Unreachable, w.replicas[i].Reachable = unreachable, reachable
		}
	}
}

// cutOff are three replicas and four targets, of which the owner of t00 does not reach
// it and another one does.
func cutOff(t *testing.T) (w *world, from, to string) {
	t.Helper()
	w = newWorld(3, 4)
	w.settle(t)
	from = w.owner["t00"]
	i := slices.IndexFunc(w.replicas, func(r store.Replica) bool { return r.ID != from })
	to = w.replicas[i].ID
	w.says(from, []string{"t00"}, nil)
	w.says(to, nil, []string{"t00"})
	return w, from, to
}

// A target goes from one that does not reach it to one that does, and stays there.
func TestATargetOutOfReachMoves(t *testing.T) {
	t.Parallel()
	w, from, to := cutOff(t)
	w.settle(t)
	if w.owner["t00"] != to {
		t.Errorf("t00 is with %q, want %q", w.owner["t00"], to)
	}
	// It is not spread back to one that does not reach it, nor soon after, be it idle.
	w.replicas = slices.DeleteFunc(w.replicas, func(r store.Replica) bool { return r.ID != from && r.ID != to })
	w.duties = []Duty{{Name: "t00"}, {Name: "t01"}}
	w.owner = map[string]string{"t00": to, "t01": to}
	stays := func(when string) {
		t.Helper()
		w.settle(t)
		if w.owner["t00"] != to || w.owner["t01"] != to {
			t.Errorf("%s: %v", when, w.owner)
		}
	}
	w.says(to, nil, nil)
	w.says(from, []string{"t00", "t01"}, nil)
	stays("while it is unreachable")
	w.says(from, nil, nil)
	w.unreliable = map[replicaTarget]bool{{from, "t00"}: true, {from, "t01"}: true}
	stays("soon after")
	// After a while it has what is due to it.
	w.unreliable = nil
	w.settle(t)
	if w.owner["t00"] == w.owner["t01"] {
		t.Errorf("uneven for ever: %v", w.owner)
	}
}

func TestATargetOutOfReachStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, from, to string){
		"nobody reaches it": func(w *world, from, to string) {
			for _, r := range w.replicas {
				w.says(r.ID, []string{"t00"}, nil)
			}
		},
		"nobody has asked it":                  func(w *world, from, to string) { w.says(to, nil, nil) },
		"it was not tried again":               func(w *world, from, to string) { w.unconfirmed = map[string]bool{from: true} },
		"who reaches it is new":                func(w *world, from, to string) { w.unstable = map[string]bool{to: true} },
		"the owner reaches it as well":         func(w *world, from, to string) { w.says(from, nil, nil) },
		"others go with it":                    func(w *world, from, to string) { w.duties[2].With, w.owner["t01"] = "t00", from },
		"it goes with another":                 func(w *world, from, to string) { w.duties[1].With, w.owner["t01"] = "t01", from },
		"who reaches it has it not":            func(w *world, from, to string) { w.lacks(to, "t00") },
		"who reaches it is unreachable itself": func(w *world, from, to string) { w.says(to, []string{"t00"}, []string{"t00"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, from, to := cutOff(t)
			if w.duties[1].Name != "t00" || w.duties[2].Name != "t01" {
				t.Fatal(w.duties)
			}
			change(w, from, to)
			for _, r := range w.replicas {
				if r.ID == from {
					w.turn(from)
				}
			}
			if w.owner["t00"] != from {
				t.Errorf("t00 is with %q, want %q", w.owner["t00"], from)
			}
		})
	}
}

// lacks takes a target out of a replica's configuration.
func (w *world) lacks(id, target string) {
	for i, r := range w.replicas {
		if r.ID == id {
			w.replicas[i].Targets = slices.DeleteFunc(slices.Clone(r.Targets), func(name string) bool { return name == target })
		}
	}
}

// What nobody does is taken by one that reaches it, else by one that may, else by any.
func TestWhatIsFreeGoesToOneThatReachesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unreachable, reachable []string // by id
		want                   []string
	}{
		{nil, nil, []string{"r0", "r1", "r2"}},
		{[]string{"r0"}, nil, []string{"r1", "r2"}},
		{[]string{"r0"}, []string{"r2"}, []string{"r2"}},
		{[]string{"r0", "r1"}, []string{"r2"}, []string{"r2"}},
		{[]string{"r0", "r1", "r2"}, nil, []string{"r0", "r1", "r2"}},
	} {
		for i := range 20 { // each likes another target
			w := newWorld(3, 0)
			name := fmt.Sprintf("t%02d", i)
			w.duties = append(w.duties, Duty{Name: name})
			for i, r := range w.replicas {
				w.replicas[i].Targets = []string{name}
				if slices.Contains(c.unreachable, r.ID) {
					w.replicas[i].Unreachable = []string{name}
				}
				if slices.Contains(c.reachable, r.ID) {
					w.replicas[i].Reachable = []string{name}
				}
			}
			w.settle(t)
			if !slices.Contains(c.want, w.owner[name]) {
				t.Errorf("unreachable %v, reachable %v: %s is with %q, want %v", c.unreachable, c.reachable, name, w.owner[name], c.want)
			}
		}
	}
}

// Anyone who reaches what: all is done, nothing goes round, and nobody keeps what it does
// not reach and another one does.
func TestDutiesAreSpreadAmongThoseThatReachThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 4).Draw(t, "replicas"), rapid.IntRange(0, 8).Draw(t, "targets"))
		w.settle(t)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			seen := map[string]bool{}
			for i, r := range w.replicas {
				w.replicas[i].Unreachable, w.replicas[i].Reachable = nil, nil
				for _, name := range r.Targets {
					switch rapid.IntRange(0, 2).Draw(t, r.ID+" "+name) {
					case 0:
						w.replicas[i].Unreachable = append(w.replicas[i].Unreachable, name)
					case 1:
						w.replicas[i].Reachable = append(w.replicas[i].Reachable, name)
						seen[name] = true
					}
				}
			}
			before := map[string]string{}
			maps.Copy(before, w.owner)
			w.settle(t)
			for _, d := range w.duties {
				id := w.owner[d.Name]
				i := slices.IndexFunc(w.replicas, func(r store.Replica) bool { return r.ID == id })
				switch {
				case i < 0:
					t.Fatalf("nobody does %s", d.Name)
				case slices.Contains(w.replicas[i].Unreachable, d.Name) && seen[d.Name]:
					t.Fatalf("%s is with %s, which does not reach it", d.Name, id)
				case slices.Contains(w.replicas[i].Unreachable, d.Name) && before[d.Name] != id:
					t.Fatalf("%s moved to %s, which does not reach it", d.Name, id)
				}
			}
		}
	})
}
