package chaos_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

var (
	longFor = flag.Duration("chaos.duration", 0, "how long TestLong runs; 0: not at all")
	only    = flag.String("chaos.topology", "", "the one topology that TestLong takes; empty: all")
	seed    = flag.Uint64("chaos.seed", 1, "seed of TestLong's schedule")
)

func TestMain(m *testing.M) {
	testredis.Hush()
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2]))
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

// pause waits without an event to wait for: a fault lasts for a while.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
