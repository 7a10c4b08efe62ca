package redis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Bounds of what is watched.
const (
	// minPrefix is how many literal bytes a pattern must begin with: a shorter
	// prefix would have the server report much that is no lock.
	minPrefix = 3
	// maxPrefixes bounds what each write to the server, of whatever key, costs it:
	// it compares the key with every prefix.
	maxPrefixes = 64
)

// optionalPrefixes are watched though nobody asked for them: the companions of our
// library, so that its locks are seen under any name, and how lock names begin
// most often. There are few of them because each costs the server something with
// every key that is written (30 to 100 ns on Redis 7.0): once there are classes,
// only those count that a sweep found a use for.
var optionalPrefixes = []string{record.DefaultPrefix, "lock:", "locks:", "mutex:", "redlock:"}

// watchPlan is what to ask the server to report.
type watchPlan struct {
	prefixes []string // folded: none begins with another; sorted
	classes  []source.ClassWatch
}

// newWatchPlan takes the prefixes of companions, those of the classes' patterns
// and the optional ones that are wanted, in this order of importance.
func newWatchPlan(classes *class.Set, companions, optional []string) watchPlan {
	var wanted []string
	for _, c := range companions {
		if c != record.DefaultPrefix || slices.Contains(optional, c) {
			wanted = append(wanted, heardCompanions(c)...)
		}
	}
	for _, c := range classes.All() {
		for _, pattern := range c.Match {
			if p := class.LiteralPrefix(pattern); len(p) >= minPrefix {
				wanted = append(wanted, p)
			}
		}
	}
	for _, o := range optional {
		if o != record.DefaultPrefix { // it is among the companions
			wanted = append(wanted, o)
		}
	}
	plan := watchPlan{prefixes: foldPrefixes(wanted)}
	for len(plan.prefixes) > maxPrefixes {
		// The least important first; what remains may fold no better.
		wanted = wanted[:len(wanted)-1]
		plan.prefixes = foldPrefixes(wanted)
	}
	for _, c := range classes.All() {
		plan.classes = append(plan.classes, plan.coverage(c))
	}
	if !slices.ContainsFunc(plan.classes, func(c source.ClassWatch) bool { return c.Class == class.Default }) {
		plan.classes = append(plan.classes, plan.defaultCoverage())
	}
	return plan
}

// heardCompanions are the beginnings of those companions that tell something of a lock,
// see [nodeWatch.itemFor]. A push of each fence, queue and heartbeat would cost the
// server more than one prefix more does.
func heardCompanions(prefix string) []string {
	return []string{prefix + string(record.KindHold) + ":", prefix + string(record.KindWaiter) + ":"}
}

func (p watchPlan) coverage(c class.Class) source.ClassWatch {
	w := source.ClassWatch{Class: c.Name, Coverage: source.CoverageFull}
	covered := 0
	for _, pattern := range c.Match {
		prefix := class.LiteralPrefix(pattern)
		switch {
		case p.covers(prefix):
			covered++
		case w.Reason != "":
		case len(prefix) < minPrefix:
			w.Reason = fmt.Sprintf("pattern %q begins with fewer than %d literal bytes; write one that begins as the keys do", pattern, minPrefix)
		default:
			w.Reason = fmt.Sprintf("pattern %q is beyond the %d prefixes that are watched, since each costs the server something with every write; give the classes a common beginning", pattern, maxPrefixes)
		}
	}
	switch covered {
	case len(c.Match):
	case 0:
		w.Coverage = source.CoverageNone
	default:
		w.Coverage = source.CoveragePart
	}
	return w
}

func (p watchPlan) defaultCoverage() source.ClassWatch {
	var have []string
	for _, o := range optionalPrefixes {
		switch {
		case o == record.DefaultPrefix:
			if p.covers(heardCompanions(o)[0]) {
				have = append(have, "belong to our library")
			}
		case p.covers(o):
			have = append(have, "begin with "+o)
		}
	}
	if len(have) == 0 {
		return source.ClassWatch{Class: class.Default, Coverage: source.CoverageNone, Reason: "no class claims these locks; configure one with a pattern that begins as their names do"}
	}
	return source.ClassWatch{
		Class: class.Default, Coverage: source.CoveragePart,
		Reason: "of the locks that no class claims only those are watched that " + strings.Join(have, " or ") + "; configure a class for the others",
	}
}

// covers says whether the server reports every change of key.
func (p watchPlan) covers(key string) bool {
	// Of a folded set only the last prefix that is not behind key can begin it.
	i, found := slices.BinarySearch(p.prefixes, key)
	return found || i > 0 && strings.HasPrefix(key, p.prefixes[i-1])
}

// foldPrefixes drops what another prefix covers and returns the rest, sorted.
// The server refuses prefixes that overlap.
func foldPrefixes(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	var out []string
	for _, p := range list {
		if p == "" || len(out) > 0 && strings.HasPrefix(p, out[len(out)-1]) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// widely is what most names of locks begin with, and all that our library writes.
const widely = "lock"

// tracked returns what to have a server track so that it reports these prefixes. It
// compares the key of each write, whatever that is, with each of them. Where it reports
// all that begins with "lock:" anyway, one prefix in place of several spares every
// writer more than the pushes of our library's fences, queues and heartbeats cost those
// who take locks: see docs/scanner.md. What else begins so is not read.
func tracked(prefixes []string) []string {
	if !slices.Contains(prefixes, widely+":") {
		return prefixes
	}
	rest := slices.DeleteFunc(slices.Clone(prefixes), func(p string) bool { return strings.HasPrefix(p, widely) })
	if len(prefixes)-len(rest) < 3 {
		return prefixes
	}
	return foldPrefixes(append(rest, widely))
}

// patterned says whether any class has a pattern.
func patterned(classes *class.Set) bool {
	return slices.ContainsFunc(classes.All(), func(c class.Class) bool { return len(c.Match) > 0 })
}

// usedPrefixes returns the optional prefixes that have a use: there are locks of
// our library, or ones that begin so and that no class claims.
func (s *Source) usedPrefixes(classes *class.Set) []string {
	used := map[string]bool{}
	s.host.Each(func(k source.Known) {
		for _, p := range optionalPrefixes {
			if !used[p] && (p == record.DefaultPrefix && k.Library == formats.Locksteward ||
				strings.HasPrefix(k.Name, p) && !classes.Classify(k.Name).Configured) {
				used[p] = true
			}
		}
	})
	return slices.DeleteFunc(slices.Clone(optionalPrefixes), func(p string) bool { return !used[p] })
}
