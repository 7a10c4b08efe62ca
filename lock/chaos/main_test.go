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

// mode is a way in which workers take locks.
type mode struct {
	name string
	// fair says whether worker i waits in the queue.
	fair func(i int) bool
}

// modes are all of them. The bounded tests use the first; TestLong draws.
var modes = []mode{
	{"mixed", func(i int) bool { return i%2 == 0 }},
	{"plain", func(int) bool { return false }},
	{"fair", func(int) bool { return true }},
}

// pause waits without an event to wait for: a fault lasts for a while.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
