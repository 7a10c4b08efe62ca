package chaos_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/lock"
)

var (
	longFor = flag.Duration("chaos.duration", 0, "how long TestLong runs; 0: not at all")
	seed    = flag.Uint64("chaos.seed", 1, "seed of TestLong's schedule")
)

func TestMain(m *testing.M) {
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
	goleak.VerifyTestMain(m)
}

// mode is a way to take locks under which all nemeses strike.
type mode struct {
	name  string
	apply func(*lock.Lease)
}

// modes are all of them. Another one (fair, say) is another line here.
var modes = []mode{
	{"plain", func(*lock.Lease) {}},
}

func modeNamed(name string) mode {
	for _, m := range modes {
		if m.name == name {
			return m
		}
	}
	panic("no mode " + name)
}

// pause waits without an event to wait for: a fault lasts for a while.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
