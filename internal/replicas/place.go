package replicas

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/locksteward/locksteward/store"
)

// Duty is a piece of work that one replica does at a time.
type Duty struct {
	Name string
	// With is another duty that is to be done by the same replica; "" for none. That
	// one is with none.
	With string
}

// view is what a decision is made of.
type view struct {
	me     string
	roll   store.Roll
	duties []Duty // those that me could do
	// able says whether a replica could do a duty.
	able func(r store.Replica, duty string) bool
	// ripe says whether a replica has been there for long enough to be given what
	// another one does.
	ripe func(id string) bool
	// sure says of a duty whose target me cannot reach that it was tried once more
	// since another one was heard to reach it; shaky of a replica that it could not
	// reach one a while ago.
	sure  func(duty string) bool
	shaky func(id, duty string) bool

	joint map[string]bool // of duties
}

// decision is what to take, what to hand over since its target is out of reach, and what
// to give away, at most one duty at a time. Duties that go with another are taken and
// given with it.
type decision struct{ take, hand, give []string }

// decide spreads duties: what is free goes to whoever has least, and whoever has two
// more than another gives one away. Of those who reach a target, who do not know, and who
// do not reach it, the first count. All replicas come to the same, from the same
// roll; where rolls differ the lease decides.
func decide(v view) decision {
	v.joint = joint(v.duties)
	holder := map[string]string{}
	load := map[string]int{}
	for _, r := range v.roll.Replicas {
		load[r.ID] = 0
	}
	with := map[string]string{}
	for _, d := range v.duties {
		if d.With != "" {
			with[d.Name] = d.With
		}
	}
	for _, l := range v.roll.Leases {
		holder[l.Target] = l.Owner
		if _, follows := with[l.Target]; !follows {
			load[l.Owner]++
		}
	}
	var out decision
	for _, d := range sorted(v.duties) {
		if d.With != "" {
			// Not before its leader has a holder, nor with another than that.
			switch lead, mine := holder[d.With], holder[d.Name] == v.me; {
			case lead == v.me && holder[d.Name] == "":
				out.take = append(out.take, d.Name)
			case mine && lead != v.me && lead != "":
				out.give = append(out.give, d.Name)
			}
			continue
		}
		if holder[d.Name] != "" {
			continue
		}
		best := least(v, load, d.Name)
		if best == "" {
			continue
		}
		load[best]++
		if best == v.me {
			out.take = append(out.take, d.Name)
		}
	}
	if out.hand = outOfReach(v, holder); len(out.hand) > 0 {
		return out // what is to be spread then, the next roll says
	}
	if give := surplus(v, holder, load); give != "" {
		out.give = append(out.give, give)
		for _, d := range v.duties {
			if d.With == give && holder[d.Name] == v.me {
				out.give = append(out.give, d.Name)
			}
		}
	}
	return out
}

// least is who of those that could do a duty best has least to do.
func least(v view, load map[string]int, duty string) string {
	best, most := "", v.most(duty)
	for _, r := range v.roll.Replicas {
		if !v.able(r, duty) || v.reach(r, duty) < most {
			continue
		}
		if best == "" || cmp.Or(cmp.Compare(load[r.ID], load[best]), cmp.Compare(weight(best, duty), weight(r.ID, duty))) < 0 {
			best = r.ID
		}
	}
	return best
}

// surplus is the duty that me gives away; "" for none. The house goes first: another
// replica goes on with it at once, and of a target it has to read all locks.
func surplus(v view, holder map[string]string, load map[string]int) string {
	give, to := "", ""
	for _, r := range v.roll.Replicas {
		if r.ID == v.me || !v.ripe(r.ID) || load[r.ID] > load[v.me]-2 {
			continue
		}
		for _, d := range sorted(v.duties) {
			if d.With != "" || holder[d.Name] != v.me || !v.able(r, d.Name) {
				continue
			}
			if at := v.reach(r, d.Name); at == blind || at < v.most(d.Name) || v.shaky(r.ID, d.Name) {
				continue // it would come back
			}
			better := give == "" || cmp.Or(
				cmp.Compare(load[r.ID], load[to]), cmp.Compare(cost(d.Name), cost(give)), cmp.Compare(weight(to, give), weight(r.ID, d.Name)),
			) < 0
			if better {
				give, to = d.Name, r.ID
			}
		}
	}
	return give
}

// cost is what it costs to move a duty, in any unit.
func cost(duty string) int {
	if duty == store.House {
		return 0
	}
	return 1
}

// weight is how much a replica likes a duty: any order will do that is the same
// everywhere and another for each duty (rendezvous hashing, Thaler and Ravishankar,
// 1998).
func weight(replica, duty string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\x00" + duty))
	return binary.BigEndian.Uint64(sum[:8])
}

func sorted(duties []Duty) []Duty {
	out := slices.Clone(duties)
	slices.SortFunc(out, func(a, b Duty) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
