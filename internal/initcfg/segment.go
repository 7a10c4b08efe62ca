package initcfg

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// structural separates the segments of a key. A dot, dash or underscore may
// stand inside of one.
const structural = ":/|#{}"

// made are the parts of names that machines make: UUIDs, dates with or without a
// time, addresses, hashes and numbers, in this order.
var made = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	moment,
	`[0-9]{4}-[0-9]{2}-[0-9]{2}`,
	`[0-9]+(?:\.[0-9]+){3}`,
	`[0-9a-f]{16,}`,
	`[0-9]+`,
}, "|"))

// moment is a date with a time, colons and zone included.
const moment = `[0-9]{4}-[0-9]{2}-[0-9]{2}[t_ ][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2}(?:\.[0-9]+)?)?)?(?:z|[+-][0-9]{2}:?[0-9]{2})?`

var moments = regexp.MustCompile(`(?i)` + moment)

// random is a whole token that no person wrote: letters and digits mixed.
var random = regexp.MustCompile(`^[A-Za-z0-9+=]{8,}$`)

// segment is one part of a name, between structural separators.
type segment struct {
	glob string
	// literal is how many bytes of the glob stand for themselves.
	literal int
	wild    bool
}

// split cuts a key into its segments and what stands between them: one
// separator more or less than segments never happens, seps has one less.
func split(key string) (parts, seps []string) {
	start := 0
	inside := moments.FindAllStringIndex(key, -1)
	for i := range len(key) {
		for len(inside) > 0 && i >= inside[0][1] {
			inside = inside[1:]
		}
		if len(inside) > 0 && i >= inside[0][0] {
			continue // a colon of a time
		}
		if strings.IndexByte(structural, key[i]) >= 0 {
			parts = append(parts, key[start:i])
			seps = append(seps, key[i:i+1])
			start = i + 1
		}
	}
	return append(parts, key[start:]), seps
}

// template replaces what a machine made of a segment by wildcards.
func template(part string) segment {
	var s segment
	star := func() {
		s.wild = true
		if !strings.HasSuffix(s.glob, "*") || strings.HasSuffix(s.glob, `\*`) {
			s.glob += "*"
		}
	}
	rest := part
	for _, at := range variables(part) {
		before := rest[:at[0]-(len(part)-len(rest))]
		// 2026-01 and 7.12 are one variable: what stands between two of them alone
		// is part of it.
		if !s.wild || !strings.HasSuffix(s.glob, "*") || strings.Trim(before, "-_.") != "" || before == "" {
			s.add(before)
		}
		star()
		rest = part[at[1]:]
	}
	s.add(rest)
	return s
}

// add appends text that stands for itself.
func (s *segment) add(text string) {
	glob := escape(text)
	s.glob += glob
	s.literal += literals(glob)
}

// literals is how many bytes of a glob stand for themselves.
func literals(glob string) int {
	n := 0
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?':
		case '\\':
			i++
			n++
		default:
			n++
		}
	}
	return n
}

// variables are the places of what a machine made, in order.
func variables(part string) [][]int {
	var out [][]int
	take := func(from, to int) {
		for _, taken := range out {
			if from < taken[1] && taken[0] < to {
				return
			}
		}
		out = append(out, []int{from, to})
	}
	for _, at := range made.FindAllStringIndex(part, -1) {
		if isVariable(part, at[0], at[1]) && !isNumber(part[at[0]:at[1]]) {
			take(at[0], at[1])
		}
	}
	// An id of letters and digits is one variable and not several numbers.
	for _, token := range tokens(part) {
		if isRandom(part[token[0]:token[1]]) {
			take(token[0], token[1])
		}
	}
	for _, at := range made.FindAllStringIndex(part, -1) {
		if isVariable(part, at[0], at[1]) {
			take(at[0], at[1])
		}
	}
	slices.SortFunc(out, func(a, b []int) int { return a[0] - b[0] })
	return out
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// isVariable says whether what stands at part[from:to] is an id rather than part
// of a word: v2, s3 and md5 are words, order42 has the number of an order.
func isVariable(part string, from, to int) bool {
	letterBefore := from > 0 && isLetter(part[from-1])
	letterAfter := to < len(part) && isLetter(part[to])
	digits := to - from
	switch {
	case letterAfter:
		return !letterBefore && digits >= 3
	case letterBefore:
		return digits >= 2
	default:
		return true
	}
}

// tokens are the places of the runs without dash, dot or underscore.
func tokens(part string) [][]int {
	var out [][]int
	start := 0
	for i := 0; i <= len(part); i++ {
		if i == len(part) || strings.IndexByte("-._", part[i]) >= 0 {
			if i > start {
				out = append(out, []int{start, i})
			}
			start = i + 1
		}
	}
	return out
}

// isRandom says whether a token looks like an id in base 32, 58 or 64: long, and
// its letters and digits change places at least three times.
func isRandom(text string) bool {
	if !random.MatchString(text) {
		return false
	}
	changes := 0
	for i := 1; i < len(text); i++ {
		if isLetter(text[i]) != isLetter(text[i-1]) {
			changes++
		}
	}
	return changes >= 3
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// escape writes text as a glob that matches it. A byte that YAML cannot hold, and
// the dollar of ${VAR}, which a configuration would replace, are any one byte.
func escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			b.WriteByte('?')
			i++
			continue
		case strings.ContainsRune(`*?[\`, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '$':
			b.WriteByte('?')
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}
