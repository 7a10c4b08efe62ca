//go:build !linux

package main

import "testing"

// atTerminal needs terminals as Linux makes them.
func (p *pageRun) atTerminal(t *testing.T, b docBlock, line string, _ []string) {
	t.Helper()
	t.Logf("%s: not run, it asks at a terminal: %s", b, line)
}
