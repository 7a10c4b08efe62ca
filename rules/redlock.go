package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Redlock is one element of `redlock:` in the configuration: targets that are
// the masters of one Redlock, where the same lock is taken on a majority.
type Redlock struct {
	Name string `yaml:"name"`
	// Targets are the names of the masters' targets, all of them.
	Targets []string `yaml:"targets"`
	// Classes are those of the locks that are taken on all masters; none: all
	// locks of these targets.
	Classes []string `yaml:"classes"`
}

// minRedlock is the smallest number of masters of which one may fail.
const minRedlock = 3

// ValidateRedlocks reports all problems, each beginning with its path. targets
// and classes are the names that exist.
func ValidateRedlocks(list []Redlock, targets, classes []string) []error {
	var errs []error
	names, member := map[string]int{}, map[string]int{}
	for i, r := range list {
		bad := func(field, format string, args ...any) {
			errs = append(errs, fmt.Errorf("redlock[%d]%s: %w", i, field, fmt.Errorf(format, args...)))
		}
		if strings.TrimSpace(r.Name) == "" {
			bad(".name", "missing, write a name that people know the masters by")
		} else if first, twice := names[r.Name]; twice {
			bad(".name", "got %q, which redlock[%d] has already, write another", r.Name, first)
		} else {
			names[r.Name] = i
		}
		if len(r.Targets) < minRedlock {
			bad(".targets", "got %d, write the names of at least %d targets: all masters of the Redlock", len(r.Targets), minRedlock)
		}
		for j, t := range r.Targets {
			at := fmt.Sprintf(".targets[%d]", j)
			switch first, twice := member[t]; {
			case !slices.Contains(targets, t):
				bad(at, "got %q, which is no target; write one of %s", t, strings.Join(targets, ", "))
			case slices.Contains(r.Targets[:j], t):
				bad(at, "got %q twice, name each master once", t)
			case twice:
				bad(at, "got %q, which is a master of redlock[%d] already; a target has one place", t, first)
			default:
				member[t] = i
			}
		}
		for j, c := range r.Classes {
			if !slices.Contains(classes, c) {
				bad(fmt.Sprintf(".classes[%d]", j), "got %q, which is no class; write one of %s", c, strings.Join(classes, ", "))
			}
		}
	}
	return errs
}

// majority is how many masters a Redlock of n needs.
func majority(n int) int { return n/2 + 1 }

// redlocks is what was seen of the locks of Redlocks, over all their masters. All
// times in it are the agent's: the masters' clocks are not compared.
type redlocks struct {
	sets    map[string]*Redlock // by target
	masters map[string]*redlockMaster
}

// redlockMaster is one master as its sweeps saw it.
type redlockMaster struct {
	// began and ended are of the last sweep, complete of it.
	began, ended time.Time
	complete     bool
	held         map[LockKey]sighting
}

// sighting is one hold on one master: seen first in the sweep that ended at
// first, and last in the one that began at last.
type sighting struct {
	digest      string
	first, last time.Time
}

// Quorum is on how many masters of its Redlock a lock is held.
type Quorum struct {
	Name string // of the Redlock
	Need int    // votes that a holder needs
	// On are the masters that have this hold, Without those that certainly do not,
	// and Unknown the rest: they were not read since the lock was first seen, or
	// it was not seen again after they were. In the order of the configuration.
	On, Without, Unknown []string
}

// configure takes another configuration; what was seen of masters that remain
// stays.
func (r *redlocks) configure(list []Redlock) {
	sets := map[string]*Redlock{}
	for i := range list {
		for _, t := range list[i].Targets {
			sets[t] = &list[i]
		}
	}
	r.sets = sets
	if r.masters == nil {
		r.masters = map[string]*redlockMaster{}
	}
	maps.DeleteFunc(r.masters, func(t string, _ *redlockMaster) bool { return sets[t] == nil })
}

// look takes in one sweep of a master.
func (r *redlocks) look(s locksteward.Sweep) {
	set := r.sets[s.Target]
	if set == nil {
		return
	}
	old := r.masters[s.Target]
	if old == nil {
		old = &redlockMaster{}
	}
	now := &redlockMaster{
		began: s.Started, ended: s.Started.Add(s.Duration), complete: s.Complete(), held: make(map[LockKey]sighting, len(old.held)),
	}
	r.masters[s.Target] = now
	for l := range s.AllLocks() {
		if !set.covers(l) {
			continue
		}
		name := LockKey{l.DB, l.Key}
		seen := sighting{digest: l.TokenDigest, first: now.ended, last: now.began}
		if before, ok := old.held[name]; ok && before.digest == seen.digest {
			seen.first = before.first
		}
		now.held[name] = seen
	}
	if now.complete {
		return
	}
	for name, seen := range old.held {
		if _, met := now.held[name]; !met {
			now.held[name] = seen // not met by a sweep that was cut
		}
	}
}

// covers says whether a lock is one of the Redlock's. A token that others have
// too does not tell which hold it is.
func (set *Redlock) covers(l *locksteward.Lock) bool {
	if l.Kind == locksteward.KindCandidate || l.TokenDigest == "" || l.SharedToken {
		return false
	}
	return len(set.Classes) == 0 || slices.Contains(set.Classes, l.Class)
}

// quorum says where a lock is held; nil if it is not of a Redlock, or the same
// hold is judged on another target: the first in the order of the configuration
// that has it.
func (r *redlocks) quorum(target string, l *locksteward.Lock) *Quorum {
	set := r.sets[target]
	if set == nil || !set.covers(l) {
		return nil
	}
	name := LockKey{l.DB, l.Key}
	q := &Quorum{Name: set.Name, Need: majority(len(set.Targets))}
	var seen []sighting
	for _, t := range set.Targets {
		if m := r.masters[t]; m != nil {
			if s, ok := m.held[name]; ok && s.digest == l.TokenDigest {
				q.On, seen = append(q.On, t), append(seen, s)
			}
		}
	}
	if len(q.On) == 0 || q.On[0] != target {
		return nil
	}
	for _, t := range set.Targets {
		switch {
		case slices.Contains(q.On, t):
		case r.masters[t].without(seen):
			q.Without = append(q.Without, t)
		default:
			q.Unknown = append(q.Unknown, t)
		}
	}
	return q
}

// without says that a master that does not have the hold certainly did not have
// it during its last sweep: that was complete, and another master had the hold
// before it began and still after it ended. A vote that is not there is never
// given later.
func (m *redlockMaster) without(seen []sighting) bool {
	return m != nil && m.complete && slices.ContainsFunc(seen, func(s sighting) bool {
		return s.first.Before(m.began) && m.ended.Before(s.last)
	})
}
