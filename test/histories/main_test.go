package histories_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", fmt.Sprint(histories/lanes)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}
