package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/locksteward/locksteward/store"
)

// Duty is a piece of work that one replica does at a time: the name of a target, or [store.SingletonDuties].
type Duty struct {
	Name string
	// With is another duty that the same replica must own; "" for none. That one has no With.
	With string
}

// Duties returns the duties of the targets of a configuration, with the singleton duties. The targets of one group, such
// as the masters of a Redlock, get one owner; groups that share a target are one group.
func Duties(targets []string, groups [][]string) []Duty {
	with := map[string]string{}
	leader := func(name string) string {
		for with[name] != "" {
			name = with[name]
		}
		return name
	}
	for _, group := range groups {
		for _, name := range group[min(1, len(group)):] {
			if one, other := leader(group[0]), leader(name); one != other {
				with[other] = one
			}
		}
	}
	out := []Duty{{Name: store.SingletonDuties}}
	for _, name := range targets {
		d := Duty{Name: name}
		if first := leader(name); first != name {
			d.With = first
		}
		out = append(out, d)
	}
	return out
}

// grouped returns the duties that share an owner with others.
func grouped(duties []Duty) map[string]bool {
	out := map[string]bool{}
	for _, d := range duties {
		if d.With != "" {
			out[d.Name], out[d.With] = true, true
		}
	}
	return out
}

// view is the input of a decision of the replica self.
type view struct {
	self    string
	members store.Membership
	duties  []Duty // those in the configuration of self
	// eligible reports whether a replica can work on a duty.
	eligible func(r store.Replica, duty string) bool
	// stable reports whether a replica has been present for long enough to be given a duty that another one works on.
	stable func(id string) bool
	// confirmed reports of a duty whose target self cannot reach that it was probed again after another replica reported
	// that it reaches it.
	confirmed func(duty string) bool
	// unreliable reports whether a replica could not reach a target a while ago.
	unreliable func(id, duty string) bool

	grouped map[string]bool // by duty
}

// decision is which duties self must acquire, hand over because it cannot reach their targets, and release to even out
// the load: at most one, with those that share its owner.
type decision struct{ acquire, handOver, release []string }

// decide places duties: a duty without an owner goes to the replica with the fewest, and a replica with two more than
// another releases one. Among replicas, those that reach a target come before those that have not probed it, and these
// before those that cannot reach it. All replicas decide the same from the same membership; where memberships differ, the
// lease decides.
func decide(v view) decision {
	v.grouped = grouped(v.duties)
	owner := map[string]string{}
	load := map[string]int{}
	for _, r := range v.members.Replicas {
		load[r.ID] = 0
	}
	with := map[string]string{}
	for _, d := range v.duties {
		if d.With != "" {
			with[d.Name] = d.With
		}
	}
	for _, l := range v.members.Leases {
		owner[l.Target] = l.Owner
		if _, follows := with[l.Target]; !follows {
			load[l.Owner]++
		}
	}
	var out decision
	for _, d := range sorted(v.duties) {
		if d.With != "" {
			// It is acquired after its leader, and by the leader's owner.
			switch leader, own := owner[d.With], owner[d.Name] == v.self; {
			case leader == v.self && owner[d.Name] == "":
				out.acquire = append(out.acquire, d.Name)
			case own && leader != v.self && leader != "":
				out.release = append(out.release, d.Name)
			}
			continue
		}
		if owner[d.Name] != "" {
			continue
		}
		best := leastLoaded(v, load, d.Name)
		if best == "" {
			continue
		}
		load[best]++
		if best == v.self {
			out.acquire = append(out.acquire, d.Name)
		}
	}
	if out.handOver = unreachableDuties(v, owner); len(out.handOver) > 0 {
		return out // the load is evened out by the next membership
	}
	if duty := surplus(v, owner, load); duty != "" {
		out.release = append(out.release, duty)
		for _, d := range v.duties {
			if d.With == duty && owner[d.Name] == v.self {
				out.release = append(out.release, d.Name)
			}
		}
	}
	return out
}

// leastLoaded returns the replica with the fewest duties among those that reach a duty's target best; "" for none.
func leastLoaded(v view, load map[string]int, duty string) string {
	best, reach := "", v.bestReach(duty)
	for _, r := range v.members.Replicas {
		if !v.eligible(r, duty) || v.reach(r, duty) < reach {
			continue
		}
		if best == "" || cmp.Or(cmp.Compare(load[r.ID], load[best]), cmp.Compare(preference(best, duty), preference(r.ID, duty))) < 0 {
			best = r.ID
		}
	}
	return best
}

// surplus returns the duty that self releases to even out the load; "" for none. The singleton duties go first: another
// replica continues them at once, but has to sweep all of a target.
func surplus(v view, owner map[string]string, load map[string]int) string {
	duty, to := "", ""
	for _, r := range v.members.Replicas {
		if r.ID == v.self || !v.stable(r.ID) || load[r.ID] > load[v.self]-2 {
			continue
		}
		for _, d := range sorted(v.duties) {
			if d.With != "" || owner[d.Name] != v.self || !v.eligible(r, d.Name) {
				continue
			}
			if at := v.reach(r, d.Name); at == unreachable || at < v.bestReach(d.Name) || v.unreliable(r.ID, d.Name) {
				continue // it would come back
			}
			better := duty == "" || cmp.Or(
				cmp.Compare(load[r.ID], load[to]), cmp.Compare(moveCost(d.Name), moveCost(duty)), cmp.Compare(preference(to, duty), preference(r.ID, d.Name)),
			) < 0
			if better {
				duty, to = d.Name, r.ID
			}
		}
	}
	return duty
}

// moveCost compares what it costs to move a duty.
func moveCost(duty string) int {
	if duty == store.SingletonDuties {
		return 0
	}
	return 1
}

// preference orders replicas for a duty: the same everywhere, and differently for each duty (rendezvous hashing, Thaler
// and Ravishankar, 1998).
func preference(replica, duty string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\x00" + duty))
	return binary.BigEndian.Uint64(sum[:8])
}

func sorted(duties []Duty) []Duty {
	out := slices.Clone(duties)
	slices.SortFunc(out, func(a, b Duty) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// reach is whether a replica reaches a target, from worst to best.
type reach int

const (
	unreachable reach = iota
	unknown           // it has not probed it
	reachable         // it reaches it, and another replica does not
)

// reach returns whether a replica reaches a duty's target. Duties of a group stay together, whichever replica reaches
// their targets.
func (v view) reach(r store.Replica, duty string) reach {
	switch {
	case len(r.Unreachable)+len(r.Reachable) == 0 || v.grouped[duty]:
		return unknown
	case slices.Contains(r.Unreachable, duty):
		return unreachable
	case slices.Contains(r.Reachable, duty):
		return reachable
	default:
		return unknown
	}
}

// bestReach returns the best reach among the replicas that can work on a duty.
func (v view) bestReach(duty string) reach {
	best := unreachable
	for _, r := range v.members.Replicas {
		if v.eligible(r, duty) {
			best = max(best, v.reach(r, duty))
		}
	}
	return best
}

// unreachableDuties returns the duties of self whose targets it cannot reach while a replica that can be given them can.
// If no replica can, the target is down and stays.
func unreachableDuties(v view, owner map[string]string) []string {
	var out []string
	i := slices.IndexFunc(v.members.Replicas, func(r store.Replica) bool { return r.ID == v.self })
	if i < 0 {
		return nil
	}
	for _, d := range sorted(v.duties) {
		if owner[d.Name] == v.self && v.reach(v.members.Replicas[i], d.Name) == unreachable && v.confirmed(d.Name) && reachableFrom(v, d.Name) != "" {
			out = append(out, d.Name)
		}
	}
	return out
}

// reachableFrom returns a replica that reaches a target and can be given it; "" for none.
func reachableFrom(v view, duty string) string {
	for _, r := range v.members.Replicas {
		if r.ID != v.self && v.stable(r.ID) && v.eligible(r, duty) && v.reach(r, duty) == reachable {
			return r.ID
		}
	}
	return ""
}
