package class

import (
	"errors"
	"fmt"
	"strings"
)

// maxGlob bounds a pattern's length, and with it the cost of one match: at most
// maxGlob comparisons for each byte of the key.
const maxGlob = 512

// glob is one compiled match pattern. `*` matches any bytes, `?` for one
// byte, `\` takes the next byte as it is; all else is literal and byte-exact.
//
// What stands between the stars is found from left to right, each part at its
// first place. That is enough for a whole match, so nothing is ever tried
// twice, whatever the number of stars.
type glob struct {
	// prefix is what every matching key begins with; parts do not repeat it.
	prefix string
	// parts stand between the stars: one part is "no star", the first is bound to
	// the end of prefix, the last to the end of the key.
	parts []part
	// least is how many bytes a key needs behind prefix.
	least int
}

// part is a run of literal bytes and `?`.
type part struct {
	text string
	wild []bool // true where text has a `?`; nil if it has none
}

// parseGlob compiles pattern; its errors say what to write instead.
func parseGlob(pattern string) (glob, error) {
	if pattern == "" {
		return glob{}, errors.New(`must not be empty, write a pattern such as "lock:order:*"`)
	}
	if len(pattern) > maxGlob {
		return glob{}, fmt.Errorf("must be at most %d bytes, got %d, write a shorter one with *", maxGlob, len(pattern))
	}
	var (
		g    glob
		text []byte
		wild []bool
		some bool // text has a wild byte
	)
	endPart := func() {
		p := part{text: string(text)}
		if some {
			p.wild = wild
		}
		g.parts = append(g.parts, p)
		g.least += len(p.text)
		text, wild, some = nil, nil, false
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			if i > 0 && pattern[i-1] == '*' && len(text) == 0 && len(g.parts) > 0 {
				continue // ** is *
			}
			endPart()
		case '?':
			text, wild, some = append(text, c), append(wild, true), true
		case '[':
			return glob{}, fmt.Errorf(`has no character sets, got %q, write \[ for the bracket itself or one pattern for each alternative`, pattern)
		case '\\':
			i++
			if i == len(pattern) {
				return glob{}, fmt.Errorf(`ends with a lone backslash, got %q, write \\ for the backslash itself`, pattern)
			}
			text, wild = append(text, pattern[i]), append(wild, false)
		default:
			text, wild = append(text, c), append(wild, false)
		}
	}
	endPart()
	g.cutPrefix()
	return g, nil
}

// cutPrefix moves the literal start of the first part into prefix.
func (g *glob) cutPrefix() {
	first := g.parts[0]
	n := len(first.text)
	for i, w := range first.wild {
		if w {
			n = i
			break
		}
	}
	g.prefix = first.text[:n]
	g.least -= n
	g.parts[0].text = first.text[n:]
	if first.wild != nil {
		g.parts[0].wild = first.wild[n:]
	}
}

// matchRest reports whether prefix+rest matches.
func (g *glob) matchRest(rest string) bool { return g.matchBy(rest, (*part).index) }

// matchBy is matchRest with the search that finds what stands between two stars:
// a test counts what it asks.
func (g *glob) matchBy(rest string, index func(p *part, s string) int) bool {
	if len(rest) < g.least {
		return false
	}
	first, last := g.parts[0], g.parts[len(g.parts)-1]
	if len(g.parts) == 1 {
		return len(rest) == len(first.text) && first.at(rest)
	}
	// least makes sure that first and last do not overlap.
	if !first.at(rest) || !last.at(rest[len(rest)-len(last.text):]) {
		return false
	}
	rest = rest[len(first.text) : len(rest)-len(last.text)]
	for i := range g.parts[1 : len(g.parts)-1] {
		p := &g.parts[i+1]
		at := index(p, rest)
		if at < 0 {
			return false
		}
		rest = rest[at+len(p.text):]
	}
	return true
}

// at reports whether s begins with the part; s is long enough.
func (p *part) at(s string) bool {
	if p.wild == nil {
		return s[:len(p.text)] == p.text
	}
	for i := range len(p.text) {
		if s[i] != p.text[i] && !p.wild[i] {
			return false
		}
	}
	return true
}

// index returns the first place of the part in s, or -1.
func (p *part) index(s string) int {
	if p.wild == nil {
		return strings.Index(s, p.text)
	}
	for i := 0; i+len(p.text) <= len(s); i++ {
		if p.at(s[i:]) {
			return i
		}
	}
	return -1
}
