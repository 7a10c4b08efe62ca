package console

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward/api"
)

// sight sorts targets by how far they are seen. A list that is short of a target
// must say so: empty is not the same as not looked at.
type sight struct {
	Targets []api.Target
	Down    []api.Target
	Blind   []api.Target // up, without a complete sweep
	Begun   []api.Target // their first sweep is under way
	Away    []api.Target // those of Down that a list is about
}

func sightOf(targets []api.Target) sight {
	out := sight{Targets: targets}
	for _, t := range targets {
		switch {
		case t.Beginning():
			out.Begun = append(out.Begun, t)
		case !t.Up:
			out.Down = append(out.Down, t)
		case !t.LastSweep.Complete:
			out.Blind = append(out.Blind, t)
		}
	}
	return out
}

// about keeps of what a list has to say those targets that it is about: one, or all.
func (s *sight) about(name string) {
	other := func(t api.Target) bool { return differs(name, t.Name) }
	s.Begun = slices.DeleteFunc(slices.Clone(s.Begun), other)
	s.Away = slices.DeleteFunc(slices.Clone(s.Down), other)
}

// Seen is how many targets are up and were read in full.
func (s sight) Seen() int { return len(s.Targets) - len(s.Down) - len(s.Blind) - len(s.Begun) }

// Unseen says that something is not known.
func (s sight) Unseen() bool { return s.Seen() < len(s.Targets) }

// progress says how far a sweep has come, as of now.
func progress(now time.Time, s *api.Sweeping) string { return s.Words(now) }

// firstSweep says how far the first sweep of a target has come, as of now.
func firstSweep(now time.Time, t api.Target) string { return t.FirstSweep(now) }
