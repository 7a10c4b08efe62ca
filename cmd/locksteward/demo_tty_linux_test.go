package main

import "testing"

// A Ctrl-C at the terminal reaches all processes of the demo. One that comes while
// the demo still starts them ends it as any other does.
func TestDemoInterruptedAtItsStart(t *testing.T) {
	t.Parallel()
	p := newPageRun(t)
	for range 3 {
		p.atTerminal(t, docBlock{page: "the demo"}, "locksteward demo", []string{"Ctrl-C ends it", "\x03"})
	}
}
