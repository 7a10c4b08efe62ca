package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

const (
	// prefilterFrom is from which share on of keys that are gone when they are read it
	// pays to ask for that first.
	prefilterFrom = 0.5
	// maxTogether is how many keys one EXISTS asks about at most.
	maxTogether = 16
)

// goneRates is how often a changed key is gone when it is read, by what is known
// before: a key that was no lock and of which one push came was mostly taken just now
// and stands; one that was a lock, or of which two came, is mostly over.
type goneRates [4]share

// mostlyGone is what is thought of what was a lock or was pushed twice before any was
// read: locks are short where they are many, and an EXISTS more costs little else.
const mostlyGone = 0.9

func newGoneRates() goneRates { return goneRates{0, mostlyGone, mostlyGone, mostlyGone} }

func (v *goneRates) index(e *workItem, known bool) int {
	i := 0
	if known {
		i |= 1
	}
	if e.pushes > 1 {
		i |= 2
	}
	return i
}

// together is how many keys to ask about in one EXISTS when each is gone with
// probability p: that with the fewest questions per key, since each of them is asked
// about alone if one of them is there (R. Dorfman, The detection of defective members
// of large populations, Ann. Math. Statist. 14, 1943).
func together(p share) int {
	best, fewest := 1, 1.0
	all := float64(p)
	for n := 2; n <= maxTogether; n *= 2 {
		all *= all // p to the power of n
		if each := 1/float64(n) + 1 - all; each < fewest {
			best, fewest = n, each
		}
	}
	return best
}

// group are work items whose keys one EXISTS asks about.
type group struct {
	items    []workItem
	goneRate *share // of each of them
	args     []any
	cmd      *redis.IntCmd
}

func newGroup(goneRate *share) *group { return &group{goneRate: goneRate, args: []any{"exists"}} }

func (g *group) add(e workItem, names []string) {
	g.items = append(g.items, e)
	for _, name := range names {
		g.args = append(g.args, name)
	}
}

// prefiltered are work items by what became of them, or is to be done with them.
type prefiltered struct {
	over    []workItem // as looks tell
	results []*keyReading
	left    []workItem // to be read in full
	groups  []*group   // to be asked about
}

// prefilter returns what of work items is to be read in full, and what to ask of the rest
// first, whether they are gone and their metadata with them: most locks are short, and
// of those nothing else need be asked.
func (n *nodeWatch) prefilter(items []workItem) (out prefiltered) {
	if !n.w.s.caps.has("exists") {
		return prefiltered{left: items}
	}
	cluster := n.w.s.conn.Mode() == locksteward.ModeCluster
	var filling [len(n.goneRates)]*group
	for _, e := range items {
		names, known := n.goneTogether(&e)
		kind := n.goneRates.index(&e, known)
		goneRate := &n.goneRates[kind]
		if len(names) == 0 || *goneRate < prefilterFrom {
			out.left = append(out.left, e)
			continue
		}
		g := filling[kind]
		if g == nil {
			g = newGroup(goneRate)
			filling[kind], out.groups = g, append(out.groups, g)
		}
		g.add(e, names)
		// In a Cluster the keys of one command are of one slot.
		if cluster || len(g.items) >= together(*goneRate) {
			filling[kind] = nil
		}
	}
	return out
}

// questions returns the commands that ask about groups, the server's time first.
func (s *prefiltered) questions(ctx context.Context) (now *redis.TimeCmd, cmds []redis.Cmder) {
	if len(s.groups) == 0 {
		return nil, nil
	}
	now = timeCmd(ctx)
	cmds = append(make([]redis.Cmder, 0, len(s.groups)+1), now)
	for _, g := range s.groups {
		g.cmd = redis.NewIntCmd(ctx, g.args...)
		cmds = append(cmds, g.cmd)
	}
	return now, cmds
}

// answered sorts the groups by what the server answered at that time: of those of which
// something is there, each work item is to be asked about alone, or read.
func (n *nodeWatch) answered(r *reader, s *prefiltered, at time.Time) error {
	asked := s.groups
	s.groups = nil
	for _, g := range asked {
		away := false
		switch err := g.cmd.Err(); judge(err) {
		case fine:
			away = g.cmd.Val() == 0
		case without:
			r.caps.refuse("exists", err)
		case forbidden: // reading it says so
		case moved:
			return errMoved
		default:
			return err
		}
		switch {
		case away:
			for _, e := range g.items {
				g.goneRate.note(true)
				s.over = append(s.over, e)
				s.results = append(s.results, &keyReading{subject: subject{key: e.key}, as: gone, at: at})
			}
		case len(g.items) == 1:
			s.left = append(s.left, g.items[0]) // whose reading is noted
		default:
			for _, e := range g.items {
				one := newGroup(g.goneRate)
				names, _ := n.goneTogether(&e)
				one.add(e, names)
				s.groups = append(s.groups, one)
			}
		}
	}
	return nil
}

// goneTogether returns the keys that must all be gone for the key of e to have ended
// without leaving anything to read: itself, and its metadata if it has any; and
// whether it is known as a lock. It returns none for a key that is to be read in any
// case.
func (n *nodeWatch) goneTogether(e *workItem) (names []string, known bool) {
	if !e.written || e.waiters {
		return nil, false
	}
	names = []string{e.key}
	last := n.w.s.remember(e.key)
	switch {
	case e.metaPrefix != "":
		names = append(names, record.Companion(e.metaPrefix, record.KindHold, e.key))
	case last.ours:
		for _, prefix := range n.w.s.prefixes {
			names = append(names, record.Companion(prefix, record.KindHold, e.key))
		}
	}
	return names, last.known
}
