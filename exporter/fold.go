package exporter

import (
	"slices"

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
//
// It takes as long as there are classes with something to show: the series of
// those that cannot fit are not counted.
func (e *Exporter) fold() (kept []class.Class, rest *others) {
	fixed := counting{n: e.baseline}
	e.emitGlobal(&fixed)
	room := e.cfg.MaxSeries - fixed.n

	ranked := e.ranked()
	upTo := []int{0} // series of the first k classes
	for _, c := range ranked {
		var own counting
		e.emitClass(&own, c)
		if upTo[len(upTo)-1]+own.n > room {
			break
		}
		upTo = append(upTo, upTo[len(upTo)-1]+own.n)
	}
	k := len(upTo) - 1
	rest = e.others(ranked[k:])
	for ; ; k-- {
		var others counting
		rest.emit(&others)
		if upTo[k]+others.n <= room {
			break
		}
		if k == 0 {
			rest.brief = true
			break
		}
		rest.add(ranked[k-1].Name)
	}
	return ranked[:k], rest
}

// ranked lists the configured classes, the most important first.
func (e *Exporter) ranked() []class.Class {
	severity := map[string]int{}
	for _, t := range e.targets {
		for class, firing := range t.findings {
			for id := range firing {
				severity[class] = max(severity[class], weight(id.severity))
			}
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

// others is the sum of the classes that are not shown under their own name: the
// folded ones, and those that this configuration does not know.
type others struct {
	exporter *Exporter
	folded   map[string]bool
	sums     map[string]*otherSum // by target
	brief    bool                 // rules share a series as well
}

type otherSum struct {
	gauges lockGauges
	firing map[findingID]int
}

// others sums up what the given classes and the unknown ones have.
func (e *Exporter) others(folded []class.Class) *others {
	o := &others{exporter: e, folded: make(map[string]bool, len(folded)), sums: map[string]*otherSum{}}
	for _, c := range folded {
		o.folded[c.Name] = true
	}
	in := func(class string) bool { return class != "" && (o.folded[class] || !e.known(class)) }
	for name, t := range e.targets {
		sum := &otherSum{gauges: lockGauges{dialects: map[string]int{}}, firing: map[findingID]int{}}
		o.sums[name] = sum
		for class := range t.gauges {
			if in(class) {
				sum.gauges.merge(t.gauges[class])
			}
		}
		for class := range t.findings {
			if in(class) {
				sum.addFirings(t.findings[class])
			}
		}
	}
	return o
}

// add folds one more class.
func (o *others) add(class string) {
	o.folded[class] = true
	for name, t := range o.exporter.targets {
		if g := t.gauges[class]; g != nil {
			o.sums[name].gauges.merge(g)
		}
		o.sums[name].addFirings(t.findings[class])
	}
}

func (s *otherSum) addFirings(firing map[findingID]int) {
	for id, n := range firing {
		s.firing[id] += n
	}
}

// emit gives the sums under the name of Other.
func (o *others) emit(s sink) {
	for _, name := range o.exporter.targetNames() {
		t, sum := o.exporter.targets[name], o.sums[name]
		if len(sum.gauges.dialects) > 0 {
			t.emitGauges(s, Other, &sum.gauges)
		}
		firing := sum.firing
		if o.brief {
			firing = map[findingID]int{}
			for id, n := range sum.firing {
				id.rule = Other
				firing[id] += n
			}
		}
		emitFirings(s, t.name, Other, firing)
		if t.tallies[Other] != nil || len(o.folded) > 0 {
			t.emitTally(s, Other)
		}
	}
}
