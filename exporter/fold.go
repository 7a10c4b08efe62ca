package exporter

import (
	"slices"
	"sort"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// fold decides which classes are shown under their own name, so that all series
// together stay within Config.MaxSeries, and returns the rest. A class is folded
// in all targets or in none: a panel over several targets would lie otherwise.
//
// Those with critical findings are kept first, then those with warnings, then
// the others; among equals those that stand first in the configuration. Numbers
// of locks play no part, so that the choice does not flap with them.
func (e *Exporter) fold() (kept, folded []class.Class) {
	fixed := counting{n: e.baseline}
	e.emitGlobal(&fixed)

	ranked := e.ranked()
	upTo := make([]int, len(ranked)+1) // series of the first k classes
	for k, c := range ranked {
		var own counting
		e.emitClass(&own, c)
		upTo[k+1] = upTo[k] + own.n
	}
	fits := func(k int) bool {
		var rest counting
		e.emitOther(&rest, ranked[k:])
		return fixed.n+upTo[k]+rest.n <= e.cfg.MaxSeries
	}
	if fits(len(ranked)) {
		return ranked, nil
	}
	// One more class shown never needs fewer series, so the boundary can be found
	// by halving.
	k := sort.Search(len(ranked), func(k int) bool { return !fits(k) })
	k = max(0, k-1)
	return ranked[:k], ranked[k:]
}

// ranked lists the configured classes, the most important first.
func (e *Exporter) ranked() []class.Class {
	severity := map[string]int{}
	for _, t := range e.targets {
		for id := range t.findings {
			severity[id.class] = max(severity[id.class], weight(id.severity))
		}
	}
	out := slices.Clone(e.classes)
	slices.SortStableFunc(out, func(a, b class.Class) int {
		return severity[b.Name] - severity[a.Name]
	})
	return out
}

// weight makes classes with no more than info findings equal to those without
// any: both fold first.
func weight(severity string) int {
	switch severity {
	case locksteward.SeverityCritical.String():
		return 2
	case locksteward.SeverityWarning.String():
		return 1
	default:
		return 0
	}
}
