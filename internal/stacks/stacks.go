// Package stacks tells what the goroutines of a process are doing, for an agent that has
// more of them than it should, or hangs: counts and names of functions, never a value.
package stacks

import (
	"bytes"
	"cmp"
	"runtime"
	"slices"
	"strings"
)

// Group is goroutines that do the same.
type Group struct {
	Count int `json:"count"`
	// Stack names functions from where they are to where they began, " < " between, and
	// behind [Began] the function that started them. One that did not run yet has only that.
	Stack string `json:"stack"`
}

// Message is what [OnSignal] logs; its fields are "total", goroutines, and "groups".
const Message = "goroutines"

// Began stands before the name of the function that started a goroutine.
const Began = "began in "

// Now groups the goroutines of this process, most of them first. It stops the process for
// the moment it takes to write their stacks, of which it has up to a hundred calls each.
func Now() []Group {
	text := make([]byte, 256<<10)
	for {
		if n := runtime.Stack(text, true); n < len(text) {
			text = text[:n]
			break
		}
		text = make([]byte, 2*len(text))
	}
	counts := map[string]int{}
	for one := range bytes.SplitSeq(bytes.TrimSpace(text), []byte("\n\n")) {
		counts[name(string(one))]++
	}
	out := make([]Group, 0, len(counts))
	for stack, n := range counts {
		out = append(out, Group{n, stack})
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Stack, b.Stack))
	})
	return out
}

// name reads what [runtime.Stack] writes of one goroutine: a head, then for each call a
// line of the function with its arguments in hexadecimal and an indented one of its place,
// at the end who started it. The runtime's own functions are left out: they say that it
// waits, which all do.
func name(one string) string {
	var names []string
	_, calls, _ := strings.Cut(one, "\n")
	for line := range strings.SplitSeq(calls, "\n") {
		if by, ok := strings.CutPrefix(line, "created by "); ok {
			by, _, _ = strings.Cut(by, " in goroutine ")
			names = append(names, Began+by)
			continue
		}
		arguments := strings.LastIndexByte(line, '(')
		if arguments < 0 || line[0] == '\t' || strings.HasPrefix(line, "runtime.") {
			continue
		}
		names = append(names, line[:arguments])
	}
	if len(names) == 0 {
		return "runtime"
	}
	return strings.Join(names, " < ")
}
