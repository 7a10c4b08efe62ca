package model

import (
	"fmt"
	"strings"
)

// Result is what an exploration found.
type Result struct {
	States  int
	Reached map[Status]bool
	// Fault is why a state must not be, and Path how it is reached, in the fewest
	// steps; "" and nil if there is none.
	Fault string
	Path  []string
}

// String is the fault with its path, one step a line.
func (r Result) String() string {
	if r.Fault == "" {
		return fmt.Sprintf("%d states, no fault", r.States)
	}
	return fmt.Sprintf("%s, after:\n  %s", r.Fault, strings.Join(r.Path, "\n  "))
}

// Explore goes through all states of the protocol with locks of that identity,
// the nearest first, until one must not be or there are no more.
func Explore(id Identity, v Variant) Result {
	first := start(id)
	numbers := map[State]int32{first: 0}
	queue := []State{first}
	from := []int32{0}
	out := Result{Reached: map[Status]bool{}}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		out.Reached[s.status] = true
		if out.Fault = fault(s); out.Fault != "" {
			out.Path = path(id, v, queue, from, int32(i))
			break
		}
		for _, step := range next(id, v, s) {
			if _, known := numbers[step.To]; known {
				continue
			}
			numbers[step.To] = int32(len(queue))
			queue = append(queue, step.To)
			from = append(from, int32(i))
		}
	}
	out.States = len(queue)
	return out
}

// fault says why a state must not be.
func fault(s State) string {
	switch {
	case s.wrong:
		return "a hold was deleted that nobody approved, or that was renewed since"
	case s.deletions > 1:
		return "one request deleted twice"
	case s.was != Pending && s.was != s.status:
		return fmt.Sprintf("a final state changed from %s to %s", s.was, s.status)
	case s.status == Released && s.deletions == 0:
		return "released is said of a lock that nobody deleted"
	case (s.status == Failed || s.status == Changed || s.status == Gone) && s.deletions > 0:
		return fmt.Sprintf("%s is said of a lock that was deleted", s.status)
	}
	return ""
}

// path names the steps that lead to a state.
func path(id Identity, v Variant, queue []State, from []int32, to int32) []string {
	var out []string
	for to != 0 {
		before := from[to]
		for _, step := range next(id, v, queue[before]) {
			if step.To == queue[to] {
				out = append([]string{step.Name}, out...)
				break
			}
		}
		to = before
	}
	return out
}
