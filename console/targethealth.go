package console

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward/api"
)

// targetHealth groups targets by how completely they were read, so that a list can say
// which targets it lacks.
type targetHealth struct {
	Targets []api.Target
	Down    []api.Target
	Blind   []api.Target // up, without a complete sweep
	Begun   []api.Target // their first sweep is under way
	Away    []api.Target // those of Down that a list is about
}

func healthOf(targets []api.Target) targetHealth {
	out := targetHealth{Targets: targets}
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

// limitTo keeps only the named target in the groups that a list mentions; "" keeps all.
func (s *targetHealth) limitTo(name string) {
	other := func(t api.Target) bool { return differs(name, t.Name) }
	s.Begun = slices.DeleteFunc(slices.Clone(s.Begun), other)
	s.Away = slices.DeleteFunc(slices.Clone(s.Down), other)
}

// Seen is how many targets are up and were read in full.
func (s targetHealth) Seen() int { return len(s.Targets) - len(s.Down) - len(s.Blind) - len(s.Begun) }

// Unseen says that something is not known.
func (s targetHealth) Unseen() bool { return s.Seen() < len(s.Targets) }

// progress says how far a sweep has come, as of now.
func progress(now time.Time, s *api.Sweeping) string { return s.Words(now) }

// firstSweep says how far the first sweep of a target has come, as of now.
func firstSweep(now time.Time, t api.Target) string { return t.FirstSweep(now) }
