package testredis

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// Settled is m for goleak.VerifyTestMain where servers go away during tests:
// go-redis then dials in the background, and looks only once a second whether
// its client was closed meanwhile. Its Run waits for that after the tests.
type Settled struct{ M *testing.M }

// Run runs the tests and waits for the dialling to end, three seconds at most.
func (s Settled) Run() int {
	code := s.M.Run()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-tick.C {
		if !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*ConnPool).tryDial") {
			break
		}
	}
	return code
}
