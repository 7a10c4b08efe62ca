package demo

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// holderArg makes the test binary the process that takes a lock.
const holderArg = "hold-for-the-demo"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == holderArg {
		if err := Hold(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}
