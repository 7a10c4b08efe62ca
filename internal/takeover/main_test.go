package takeover_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/testredis"
)

var (
	faults = flag.Int("takeover.faults", 20, "how often a replica is killed, frozen or cut off")
	seed   = flag.Uint64("takeover.seed", 1, "seed of the schedule")
)

// within is how long an event may take on a loaded machine.
const within = time.Minute

// hush takes the log of go-redis.
type hush struct{}

func (hush) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(hush{})
	if file := os.Getenv(childEnv); file != "" {
		if err := child(file); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}

// childEnv makes this test binary an agent on a configuration.
const childEnv = "LOCKSTEWARD_TAKEOVER_CHILD"

// child is an agent until stdin ends, because its parent wants it or has died.
func child(file string) error {
	cfg, err := config.Load(file)
	if err != nil {
		return err
	}
	zcfg := zap.NewProductionConfig()
	zcfg.Sampling = nil
	log, err := zcfg.Build()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, err := agent.New(ctx, log, cfg, agent.Options{})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return a.Run(ctx)
}
