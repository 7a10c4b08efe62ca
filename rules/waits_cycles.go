package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// cycle is a round of sessions each of which waits for a lock of the next one.
type cycle struct {
	id      string
	members []member // in the order of the round, from the smallest session on
	victim  int      // index of the member to end
}

// member is one session of a cycle: what it waits for, and who has that.
type member struct {
	wait   *wait
	waiter string // ids as they were when the cycle was found
	claim  string
}

// holds is the lock that member i has and the one before it waits for.
func (c *cycle) holds(i int) *awaited {
	return c.members[(i+len(c.members)-1)%len(c.members)].wait.on
}

// home is where the finding is: the victim's lock, whose end breaks the cycle.
func (c *cycle) home() subject {
	a := c.holds(c.victim)
	return subject{target: a.target, db: a.id.DB, key: a.id.Key}
}

// span is when all of the cycle was there.
func (c *cycle) span() span {
	s := c.members[0].wait.seen
	for _, m := range c.members {
		s = s.both(m.wait.seen).both(m.wait.on.holder.seen)
	}
	return s
}

// stands says that each wait and each hold of the cycle is as it was.
func (g *waits) stands(c *cycle) bool {
	for i, m := range c.members {
		a := m.wait.on
		next := c.members[(i+1)%len(c.members)].wait.session()
		if g.targets[a.target].locks[a.id] != a || a.holder.claim != m.claim || a.holder.session != next || !slices.Contains(a.waits, m.wait) {
			return false
		}
	}
	return true
}

// drop forgets the cycles that are broken.
func (g *waits) drop() {
	for id, c := range g.cycles {
		if !g.stands(c) {
			delete(g.cycles, id)
		}
	}
}

// find looks for cycles that can be reached from the given sessions and adds
// those that are not known yet. Of sessions that are tied into several cycles
// one is taken: when that is broken, the next look finds another. It takes time
// linear in the waits that it reaches.
func (g *waits) find(sessions []string) {
	tied := map[string]bool{}
	for _, c := range g.cycles {
		for _, m := range c.members {
			tied[m.wait.session()] = true
		}
	}
	slices.Sort(sessions)
	for _, knot := range g.knots(slices.Compact(sessions)) {
		if slices.ContainsFunc(knot, func(s string) bool { return tied[s] }) {
			continue
		}
		c := newCycle(g.round(knot))
		g.cycles[c.id] = c
	}
}

// knots returns the strongly connected components with a cycle that can be
// reached from the given sessions (Tarjan 1972, with a stack of its own: a chain
// of waits may be long).
func (g *waits) knots(from []string) [][]string {
	type state struct {
		index, low int
		on         bool
	}
	type frame struct {
		session string
		next    int // the wait to follow next
	}
	var (
		out    [][]string
		states = map[string]*state{}
		stack  []string
		frames []frame
	)
	enter := func(s string) {
		states[s] = &state{index: len(states), low: len(states), on: true}
		stack = append(stack, s)
		frames = append(frames, frame{session: s})
	}
	for _, start := range from {
		if states[start] != nil {
			continue
		}
		enter(start)
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			here := states[f.session]
			if ws := g.waiting[f.session]; f.next < len(ws) {
				w := ws[f.next]
				f.next++
				if !w.edge() {
					continue
				}
				to := w.on.holder.session
				if there := states[to]; there == nil {
					enter(to)
				} else if there.on {
					here.low = min(here.low, there.index)
				}
				continue
			}
			session := f.session
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				above := states[frames[len(frames)-1].session]
				above.low = min(above.low, here.low)
			}
			if here.low != here.index {
				continue
			}
			i := len(stack) - 1
			for stack[i] != session {
				i--
			}
			knot := slices.Clone(stack[i:])
			stack = stack[:i]
			for _, s := range knot {
				states[s].on = false
			}
			if len(knot) > 1 || g.waitsForItself(session) {
				out = append(out, knot)
			}
		}
	}
	return out
}

func (g *waits) waitsForItself(session string) bool {
	return slices.ContainsFunc(g.waiting[session], func(w *wait) bool { return w.edge() && w.on.holder.session == session })
}

// round returns a shortest cycle through the smallest session of a knot: every
// session of a knot is on one.
func (g *waits) round(knot []string) []*wait {
	in := make(map[string]bool, len(knot))
	for _, s := range knot {
		in[s] = true
	}
	start := slices.Min(knot)
	came := map[string]*wait{} // the wait by which a session was reached
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		ws := slices.Clone(g.waiting[queue[0]])
		slices.SortFunc(ws, func(a, b *wait) int { return cmp.Compare(a.ID, b.ID) })
		for _, w := range ws {
			to := w.on.holder.session
			if !w.edge() || !in[to] || came[to] != nil {
				continue
			}
			came[to] = w
			if to == start {
				var round []*wait
				for at := start; len(round) == 0 || at != start; at = came[at].session() {
					round = append(round, came[at])
				}
				slices.Reverse(round)
				return round
			}
			queue = append(queue, to)
		}
	}
	return nil // no knot is without a cycle
}

func newCycle(round []*wait) *cycle {
	c := &cycle{}
	for _, w := range round {
		c.members = append(c.members, member{wait: w, waiter: w.ID, claim: w.on.holder.claim})
	}
	c.victim = c.suggest()
	c.id = c.identity()
	return c
}

// suggest picks the member whose end costs the least: the one that has its lock
// for the shortest time has the least work to lose. Of those that do not say
// since when they have it, or since the same moment, the one that came last to
// wait, which closed the cycle.
func (c *cycle) suggest() int {
	best := 0
	for i := 1; i < len(c.members); i++ {
		a, b := c.holds(i).holder, c.holds(best).holder
		if cmp.Or(a.acquired.Compare(b.acquired),
			c.members[i].wait.Since.Compare(c.members[best].wait.Since),
			cmp.Compare(c.members[best].wait.session(), c.members[i].wait.session())) > 0 {
			best = i
		}
	}
	return best
}

// identity is the same for the same holds and waits, in whatever order they are
// found: a digest of its sorted members, and the targets other than that of its
// finding, since it is only over when all of them were read.
func (c *cycle) identity() string {
	var parts, targets []string
	home := c.home().target
	for _, m := range c.members {
		a := m.wait.on
		var b []byte
		for _, part := range []string{a.target, strconv.Itoa(a.id.DB), a.id.Key, m.claim, m.waiter} {
			b = strconv.AppendInt(b, int64(len(part)), 10)
			b = append(b, ':')
			b = append(b, part...)
		}
		parts = append(parts, string(b))
		if a.target != home {
			targets = append(targets, a.target)
		}
	}
	slices.Sort(parts)
	slices.Sort(targets)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return strings.Join(append([]string{hex.EncodeToString(sum[:8])}, slices.Compact(targets)...), " ")
}

// targetsOf returns the targets of a cycle from its id and home.
func targetsOf(id, home string) []string {
	parts := strings.Split(id, " ")
	return append(parts[1:], home)
}

// describe gives a cycle as a rule judges it.
func (g *waits) describe(c *cycle) *Cycle {
	out := &Cycle{Victim: c.victim, Proven: c.span().proven(), Members: make([]CycleMember, 0, len(c.members))}
	for i, m := range c.members {
		a := c.holds(i)
		h := a.holder
		out.Members = append(out.Members, CycleMember{
			Session: m.wait.session(), Waits: m.wait.Waiter, Target: a.target, DB: a.id.DB, Holds: a.id.Key, HeldClass: a.class,
			Claim: h.claim, Acquired: h.acquired, Purpose: h.purpose, Holder: h.who, Inferred: h.inferred,
			Calls: len(g.waiting[m.wait.session()]),
		})
	}
	return out
}

// due returns the locks of a target that belong to cycles seen once.
func (g *waits) due(target string) []LockKey {
	var out []LockKey
	for _, c := range g.cycles {
		if c.span().proven() {
			continue
		}
		for _, m := range c.members {
			if a := m.wait.on; a.target == target {
				out = append(out, a.id)
			}
		}
	}
	return out
}
