package takeover_test

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
	faults = flag.Int("takeover.faults", 20, "how often a replica is killed, frozen or cut off")
	seed   = flag.Uint64("takeover.seed", 1, "seed of the schedule")
)

// within is how long an event may take on a loaded machine.
const within = time.Minute

func TestMain(m *testing.M) {
	testredis.Hush()
	if is, code := testagent.Child(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}
