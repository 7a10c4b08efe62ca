package alertchaos_test

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
	kills = flag.Int("alertchaos.kills", 30, "how often agents are killed, over all runs")
	seed  = flag.Uint64("alertchaos.seed", 0, "seed of the schedule; 0: of the clock")
)

func TestMain(m *testing.M) {
	testredis.Hush()
	if is, code := testagent.Child(); is {
		os.Exit(code)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		// These tests wait most of the time.
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}

// pause waits without an event to wait for: a fault lasts for a while, and a kill
// comes at any moment.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
