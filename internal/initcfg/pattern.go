package initcfg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/class"
)

const (
	// From how many different words in one place on they are taken for names of
	// things rather than of families: lock:user:alice at the end of a name, and more
	// in its middle, where families usually stand.
	lastWords  = 6
	innerWords = 20
	// leastLiteral is how many bytes of a pattern must stand for themselves: a
	// pattern of less would claim keys that are no locks.
	leastLiteral = 3
	// longPattern is when a name is cut: nobody would read the rest.
	longPattern = 200
)

// Family is a pattern with the keys that made it.
type Family struct {
	Name  string   // a class name
	Match string   // a glob as configurations take it
	Keys  []string // exact bytes, sorted
}

// group is a family while it is being made.
type group struct {
	parts []segment
	seps  string
	keys  []string
}

// Patterns finds the families of keys, which must be lock keys. Every key that is
// in a family matches its pattern and none before it, and class.NewSet accepts
// the families in their order. Keys that have nothing in common with anything, or
// too little that is constant, are in rest.
func Patterns(keys []string) (families []Family, rest []string) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	byGlob := map[string]*group{}
	for _, key := range keys {
		g := groupOf(key)
		add(byGlob, g)
	}
	groups := generalise(byGlob)
	list := make([]Family, 0, len(groups))
	literal := map[string]int{}
	for glob, g := range groups {
		if n := g.literal(); n >= leastLiteral {
			literal[glob] = n
			list = append(list, Family{Match: glob})
		}
	}
	// What a pattern covers has at least its literals, and no more wildcards: in this
	// order no family hides another.
	slices.SortFunc(list, func(a, b Family) int {
		return cmp.Or(
			cmp.Compare(literal[b.Match], literal[a.Match]),
			cmp.Compare(strings.Count(a.Match, "*"), strings.Count(b.Match, "*")),
			strings.Compare(a.Match, b.Match),
		)
	})
	return assign(list, keys)
}

// assign gives every key to the first family that matches it, and drops families
// that get none.
func assign(list []Family, keys []string) (families []Family, rest []string) {
	for {
		set, err := class.NewSet(classes(list))
		if err != nil {
			// A pattern that is no glob would be a slip of this package: its keys are
			// left to the person.
			return nil, keys
		}
		rest = nil
		for i := range list {
			list[i].Keys = nil
		}
		place := map[string]int{}
		for i, c := range set.All() {
			place[c.Name] = i
		}
		for _, key := range keys {
			if m := set.Classify(key); m.Configured {
				list[place[m.Class]].Keys = append(list[place[m.Class]].Keys, key)
			} else {
				rest = append(rest, key)
			}
		}
		kept := slices.DeleteFunc(slices.Clone(list), func(f Family) bool { return len(f.Keys) == 0 })
		if len(kept) == len(list) {
			name(list)
			return list, rest
		}
		list = kept
	}
}

// classes are families as a configuration has them, by provisional names.
func classes(list []Family) []class.Class {
	out := make([]class.Class, len(list))
	for i, f := range list {
		out[i] = class.Class{Name: fmt.Sprintf("c%d", i), Match: []string{f.Match}}
	}
	return out
}

func groupOf(key string) *group {
	parts, seps := split(key)
	if len(escape(key)) > longPattern {
		cut := key[:longPattern/2]
		return &group{parts: []segment{{glob: escape(cut) + "*", literal: literals(escape(cut)), wild: true}}, keys: []string{key}}
	}
	g := &group{seps: strings.Join(seps, ""), keys: []string{key}}
	for _, part := range parts {
		g.parts = append(g.parts, template(part))
	}
	return g
}

func (g *group) glob() string {
	var b strings.Builder
	for i, p := range g.parts {
		if i > 0 {
			b.WriteByte(g.seps[i-1])
		}
		b.WriteString(p.glob)
	}
	return b.String()
}

// literal is how many bytes of the pattern stand for themselves, separators left
// out: they alone tell nothing.
func (g *group) literal() int {
	n := 0
	for _, p := range g.parts {
		n += p.literal
	}
	return n
}

// add puts a group among others, or its keys to the one with the same pattern.
func add(to map[string]*group, g *group) {
	glob := g.glob()
	if old, ok := to[glob]; ok {
		old.keys = append(old.keys, g.keys...)
		return
	}
	to[glob] = g
}

// generalise replaces words by wildcards where many different ones stand in the
// same place: at the end of names first, then further to the front.
func generalise(groups map[string]*group) map[string]*group {
	longest := 0
	for _, g := range groups {
		longest = max(longest, len(g.parts))
	}
	for back := 1; back <= longest; back++ {
		least := innerWords
		if back == 1 {
			least = lastWords
		}
		groups = generaliseAt(groups, back, least)
	}
	return groups
}

// generaliseAt does so for the segment that is the back-th from the end.
func generaliseAt(groups map[string]*group, back, least int) map[string]*group {
	alike := map[string][]*group{} // by the pattern with a hole in it
	out := map[string]*group{}
	for _, glob := range sortedKeys(groups) {
		g := groups[glob]
		i := len(g.parts) - back
		if i < 0 || g.parts[i].wild || g.parts[i].glob == "" {
			add(out, g)
			continue
		}
		hole := *g
		hole.parts = slices.Clone(g.parts)
		hole.parts[i] = segment{glob: "\x00", wild: true}
		alike[hole.glob()] = append(alike[hole.glob()], g)
	}
	for _, glob := range sortedKeys(alike) {
		list := alike[glob]
		merged := &group{parts: slices.Clone(list[0].parts), seps: list[0].seps}
		i := len(merged.parts) - back
		var words []string
		for _, g := range list {
			words = append(words, g.parts[i].glob)
			merged.keys = append(merged.keys, g.keys...)
		}
		merged.parts[i] = common(words)
		if len(list) < least || merged.literal() < leastLiteral {
			for _, g := range list {
				add(out, g)
			}
			continue
		}
		add(out, merged)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// common is the pattern of several words: what all begin and end with, at the
// dashes, dots and underscores in them, and a wildcard between.
func common(words []string) segment {
	prefix, suffix := words[0], words[0]
	for _, w := range words[1:] {
		n := 0
		for n < len(prefix) && n < len(w) && prefix[n] == w[n] {
			n++
		}
		prefix = prefix[:n]
		n = 0
		for n < len(suffix) && n < len(w) && suffix[len(suffix)-1-n] == w[len(w)-1-n] {
			n++
		}
		suffix = suffix[len(suffix)-n:]
	}
	prefix = prefix[:strings.LastIndexAny(prefix, "-._")+1]
	if i := strings.IndexAny(suffix, "-._"); i >= 0 {
		suffix = suffix[i:]
	} else {
		suffix = ""
	}
	// A word must not be both: a_b of a_b and a_c_b.
	for _, w := range words {
		if len(prefix)+len(suffix) > len(w) {
			suffix = ""
		}
	}
	return segment{glob: prefix + "*" + suffix, literal: literals(prefix) + literals(suffix), wild: true}
}
