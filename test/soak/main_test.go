package soak_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

var (
	length  = flag.Duration("soak.time", 12*time.Second, "how long the load runs")
	locks   = flag.Int("soak.locks", 2000, "how many locks stand all the time")
	rate    = flag.Int("soak.rate", 200, "lock operations a second to aim at")
	between = flag.Duration("soak.between", time.Second, "quiet time between two faults")
	every   = flag.Duration("soak.every", time.Second, "time between two samples of each agent")
	program = flag.String("soak.program", "", "the agent's binary; empty: this one, without the program's memory limit")
	page    = flag.String("soak.report", "", "the file to write the report to")
	logs    = flag.String("soak.logs", "", "a directory for the agents' logs; empty: not kept")
	seed    = flag.Uint64("soak.seed", 1, "seed of the load")
)

// within is how long an event may take on a loaded machine.
const within = 5 * time.Minute

func TestMain(m *testing.M) {
	testredis.Hush()
	if is, code := testagent.Child(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}
