package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/rules/expr"
)

// place is where a value came from: a node of a file, or no more than a name
// (an environment variable).
type place struct {
	file string
	node *yaml.Node // nil: file says all
	raw  []byte     // the file
}

// places are the values that were read, by path.
type places map[string]place

// of returns the place of a path, or of the nearest one above it.
func (p places) of(path string) (place, bool) {
	for path != "" {
		if at, ok := p[path]; ok {
			return at, true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{}, false
}

// shift takes over the places of a file whose list stands behind first elements
// of another file's.
func (p places) shift(other places, list string, first int) {
	for path, at := range other {
		var i int
		rest, ok := strings.CutPrefix(path, list+"[")
		if !ok {
			continue
		}
		index, rest, _ := strings.Cut(rest, "]")
		if _, err := fmt.Sscanf(index, "%d", &i); err == nil {
			p[fmt.Sprintf("%s[%d]%s", list, first+i, rest)] = at
		}
	}
}

// locate puts file, line and, inside an expression, column before a problem that
// begins with its path.
func (p places) locate(file string, err error) error {
	path, _, _ := strings.Cut(err.Error(), ": ")
	at, ok := p.of(path)
	switch {
	case !ok:
		return fmt.Errorf("%s: %w", file, err)
	case at.node == nil:
		return fmt.Errorf("%s: %w", at.file, err)
	}
	if e, ok := errors.AsType[*expr.Error](err); ok {
		line, column := at.inside(e.Line, e.Column)
		return fmt.Errorf("%s:%d:%d: %w", at.file, line, column, err)
	}
	return fmt.Errorf("%s:%d: %w", at.file, at.node.Line, err)
}

// inside returns the line and column in the file of a line and column of the
// scalar's text, both from 1 and in characters. Where the two cannot be brought
// together (a ${VAR} in between) it is where the scalar begins.
func (at place) inside(line, column int) (fileLine, fileColumn int) {
	n := at.node
	if n.Kind != yaml.ScalarNode {
		return n.Line, n.Column
	}
	value := []rune(n.Value)
	target := 0
	for range line - 1 {
		i := slices.Index(value[target:], '\n')
		if i < 0 {
			break
		}
		target += i + 1
	}
	target = min(target+column-1, len(value))
	lines := strings.Split(string(at.raw), "\n")
	if n.Line < 1 || n.Line > len(lines) {
		return n.Line, n.Column
	}
	w := walker{src: []rune(strings.Join(lines[n.Line-1:], "\n")), style: n.Style}
	w.at = min(n.Column-1, len(w.src))
	w.open()
	if !w.walk(value, target) {
		return n.Line, n.Column
	}
	before := w.src[:min(w.at, len(w.src))]
	fileLine = n.Line
	begin := 0
	for i, r := range before {
		if r == '\n' {
			fileLine++
			begin = i + 1
		}
	}
	return fileLine, len(before) - begin + 1
}

// walker goes through the text of a scalar as it stands in the file, beside its
// value. The two differ in quotes, escapes and white space.
type walker struct {
	src   []rune
	at    int
	style yaml.Style
}

// open skips what stands before the first character of the value.
func (w *walker) open() {
	switch {
	case w.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		for w.at < len(w.src) && w.src[w.at] != '\n' {
			w.at++
		}
	case w.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		w.at++
	}
}

// walk goes on until target characters of value are behind it; white space is
// skipped on both sides. False means that the two do not agree.
func (w *walker) walk(value []rune, target int) bool {
	for i, r := range value {
		if i == target && unicode.IsSpace(r) {
			return true
		}
		if unicode.IsSpace(r) {
			continue
		}
		w.skipSpace()
		if i == target {
			return true
		}
		if !w.take(r) {
			return false
		}
	}
	return true
}

// skipSpace skips white space, written or escaped.
func (w *walker) skipSpace() {
	for w.at < len(w.src) {
		switch {
		case unicode.IsSpace(w.src[w.at]):
			w.at++
		case w.style&yaml.DoubleQuotedStyle != 0 && w.src[w.at] == '\\' && w.at+1 < len(w.src) && slices.Contains([]rune("ntr \n\t"), w.src[w.at+1]):
			w.at += 2
		default:
			return
		}
	}
}

// take consumes one character of the value.
func (w *walker) take(r rune) bool {
	if w.at >= len(w.src) {
		return false
	}
	switch got := w.src[w.at]; {
	case w.style&yaml.SingleQuotedStyle != 0 && r == '\'':
		w.at += 2
		return got == '\''
	case w.style&yaml.DoubleQuotedStyle != 0 && got == '\\':
		if w.at+1 >= len(w.src) {
			return false
		}
		switch w.src[w.at+1] {
		case 'x':
			w.at += 4
		case 'u':
			w.at += 6
		case 'U':
			w.at += 10
		default:
			w.at += 2
		}
		return true
	default:
		w.at++
		return got == r
	}
}
