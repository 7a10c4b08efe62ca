package class

import (
	"fmt"
	"slices"
	"strings"
)

// unit is one step of a pattern: a literal byte, one byte of any kind, or any
// number of them.
type unit struct {
	kind unitKind
	c    byte // of a literal
}

type unitKind byte

const (
	literal unitKind = iota
	anyByte
	anyBytes
)

// units takes a pattern apart that parseGlob accepts. Among wildcards that stand
// together the single ones come first and several stars are one, so that equal
// patterns have equal units.
func units(pattern string) []unit {
	var out []unit
	single, star := 0, false
	flush := func() {
		for range single {
			out = append(out, unit{kind: anyByte})
		}
		if star {
			out = append(out, unit{kind: anyBytes})
		}
		single, star = 0, false
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			star = true
			continue
		case '?':
			single++
			continue
		case '\\':
			i++
			c = pattern[i]
			fallthrough
		default:
			flush()
			out = append(out, unit{kind: literal, c: c})
		}
	}
	flush()
	return out
}

// covers says whether every key that narrow matches is matched by wide. A yes is
// sure. A no may be wrong for patterns that only cover by counting bytes across
// literals, and always is for what several patterns cover together.
func covers(wide, narrow []unit) bool {
	// reach[j] says that the first j units of wide can match what was read of
	// narrow. The star of narrow stands for anything, so only a star of wide takes
	// it.
	reach := make([]bool, len(wide)+1)
	next := make([]bool, len(wide)+1)
	reach[0] = true
	skipStars(wide, reach)
	for _, u := range narrow {
		clear(next)
		for j, w := range wide {
			if !reach[j] {
				continue
			}
			switch {
			case w.kind == anyBytes:
				next[j] = true
			case u.kind == anyBytes:
			case w.kind == anyByte, u.kind == literal && u.c == w.c:
				next[j+1] = true
			}
		}
		reach, next = next, reach
		skipStars(wide, reach)
	}
	return reach[len(wide)]
}

// skipStars lets a star match nothing.
func skipStars(wide []unit, reach []bool) {
	for j, w := range wide {
		if reach[j] && w.kind == anyBytes {
			reach[j+1] = true
		}
	}
}

// takesAll says whether a pattern has no literal byte: it would make every key,
// or every key of a length, a lock.
func takesAll(pattern string) bool {
	for _, u := range units(pattern) {
		if u.kind == literal {
			return false
		}
	}
	return true
}

// parseClassGlob is parseGlob for a pattern that people write: it has to say
// something of the name.
func parseClassGlob(pattern string) (glob, error) {
	g, err := parseGlob(pattern)
	if err == nil && takesAll(pattern) {
		return glob{}, fmt.Errorf("must have a literal part, got %q, which makes every key a lock; write how the keys begin, such as \"lock:*\"", pattern)
	}
	return g, err
}

// taken is a pattern of an earlier class and where it stands.
type taken struct {
	class  int
	path   string
	text   string
	prefix string // what every key of the pattern begins with
	units  []unit
}

// takes says whether the pattern takes every key of another one.
func (t taken) takes(g glob, mine []unit) bool {
	return strings.HasPrefix(g.prefix, t.prefix) && covers(t.units, mine)
}

// hidden reports the patterns of class i that can never match since an earlier
// class's pattern takes all their keys; one problem for the class if that is all
// of them.
func (c Class) hidden(i int, earlier []taken) []error {
	var problems []error
	var takers []string
	first := -1
	for j, text := range c.Match {
		g, err := parseClassGlob(text)
		if err != nil {
			continue
		}
		mine := units(text)
		at := slices.IndexFunc(earlier, func(t taken) bool {
			return t.text != text && t.takes(g, mine) // a repeated pattern is reported elsewhere
		})
		if at < 0 {
			continue
		}
		t := earlier[at]
		if first < 0 || t.class < first {
			first = t.class
		}
		if taker := fmt.Sprintf("%q of %s", t.text, t.path); !slices.Contains(takers, taker) {
			takers = append(takers, taker)
		}
		problems = append(problems, fmt.Errorf("classes[%d].match[%d]: can never match, %q of %s takes all keys of %q first; move class %q before classes[%d], or make that pattern narrower",
			i, j, t.text, t.path, text, c.Name, t.class))
	}
	if len(problems) < len(c.Match) || len(problems) == 0 {
		return problems
	}
	return []error{fmt.Errorf("classes[%d].match: class %q can never match, %s takes all its keys first; move it before classes[%d], or make the earlier pattern narrower",
		i, c.Name, strings.Join(takers, " and "), first)}
}
