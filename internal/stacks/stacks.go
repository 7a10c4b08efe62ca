// Package stacks tells what the goroutines of a process are doing, for an agent that has
// more of them than it should, or hangs: counts and names of functions, never a value.
package stacks

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
)

// Group is goroutines that do the same.
type Group struct {
	Count int `json:"count"`
	// Stack names functions from where they are to where they began, " < " between.
	Stack string `json:"stack"`
}

// Message is what [OnSignal] logs; its fields are "total", goroutines, and "groups".
const Message = "goroutines"

// Now groups the goroutines of this process, most of them first. It stops the process for
// the moment it takes to read their stacks, of which it knows the 32 innermost calls.
func Now() []Group {
	records := make([]runtime.StackRecord, runtime.NumGoroutine()+16)
	for {
		n, ok := runtime.GoroutineProfile(records)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.StackRecord, n+n/4+16)
	}
	counts := map[string]int{}
	for _, r := range records {
		counts[name(r.Stack())]++
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

// name leaves out the runtime's own functions: they say that it waits, which all do.
func name(stack []uintptr) string {
	var names []string
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			names = append(names, f.Function)
		}
		if !more {
			break
		}
	}
	if len(names) == 0 {
		return "runtime"
	}
	return strings.Join(names, " < ")
}
