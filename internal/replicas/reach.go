package replicas

import (
	"slices"

	"github.com/locksteward/locksteward/store"
)

// reach is how a replica stands to a target, from worst to best.
type reach int

const (
	blind   reach = iota // it cannot reach it
	unknown              // nobody has asked it
	sees                 // it reaches it, while another one does not
)

// reach is how a replica of the roll stands to a duty. Duties that go together stay
// together, wherever their targets can be reached from.
func (v view) reach(r store.Replica, duty string) reach {
	switch {
	case len(r.Blind)+len(r.Sees) == 0 || v.joint[duty]:
		return unknown
	case slices.Contains(r.Blind, duty):
		return blind
	case slices.Contains(r.Sees, duty):
		return sees
	default:
		return unknown
	}
}

// most is the best reach that one has that could do a duty.
func (v view) most(duty string) reach {
	most := blind
	for _, r := range v.roll.Replicas {
		if v.able(r, duty) {
			most = max(most, v.reach(r, duty))
		}
	}
	return most
}

// joint are the duties that go with others.
func joint(duties []Duty) map[string]bool {
	out := map[string]bool{}
	for _, d := range duties {
		if d.With != "" {
			out[d.Name], out[d.With] = true, true
		}
	}
	return out
}

// outOfReach are the duties of me whose targets it does not reach, and another one does
// that could be given them. Where nobody does the target is down, and stays.
func outOfReach(v view, holder map[string]string) []string {
	var out []string
	i := slices.IndexFunc(v.roll.Replicas, func(r store.Replica) bool { return r.ID == v.me })
	if i < 0 {
		return nil
	}
	for _, d := range sorted(v.duties) {
		if holder[d.Name] == v.me && v.reach(v.roll.Replicas[i], d.Name) == blind && v.sure(d.Name) && seer(v, d.Name) != "" {
			out = append(out, d.Name)
		}
	}
	return out
}

// seer is one that reaches a target and could be given it; "" for none.
func seer(v view, duty string) string {
	for _, r := range v.roll.Replicas {
		if r.ID != v.me && v.ripe(r.ID) && v.able(r, duty) && v.reach(r, duty) == sees {
			return r.ID
		}
	}
	return ""
}
