package testredis

import (
	"flag"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Settled is m for goleak.VerifyTestMain where servers go away during tests:
// go-redis then dials in the background, and looks only once a second whether
// its client was closed meanwhile. Its Run waits for that after the tests.
type Settled struct {
	M *testing.M
	// SideBySide is how many tests run at a time unless the command line says it: more
	// than there are cores where tests mostly wait for leases, sweeps and clocks. 0 leaves
	// it as it is.
	SideBySide int
}

// Run runs the tests and waits for the dialling to end, three seconds at most.
func (s Settled) Run() int {
	flag.Parse()
	given := s.SideBySide == 0
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(s.SideBySide)); err != nil {
			panic(err)
		}
	}
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
