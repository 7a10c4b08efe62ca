package alertchaos_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
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
	kills = flag.Int("alertchaos.kills", 30, "how often agents are killed, over all runs")
	seed  = flag.Uint64("alertchaos.seed", 0, "seed of the schedule; 0: of the clock")
)

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

// childEnv makes this test binary an agent on a configuration, to be killed.
const childEnv = "LOCKSTEWARD_ALERTCHAOS_CHILD"

// child is an agent until stdin ends, because its parent wants it or has died.
// SIGHUP reloads it, SIGTERM ends it as it ends the program.
func child(file string) error {
	load := func() (config.Config, error) { return config.Load(file) }
	cfg, err := load()
	if err != nil {
		return err
	}
	zcfg := zap.NewProductionConfig()
	zcfg.Sampling = nil
	log, err := zcfg.Build()
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	a, err := agent.New(ctx, log, cfg, agent.Options{Load: load})
	if err != nil {
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for range hangup {
			if err := a.Reload(ctx); err != nil {
				log.Error("not reloaded", zap.Error(err))
			}
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return a.Run(ctx)
}

// pause waits without an event to wait for: a fault lasts for a while, and a kill
// comes at any moment.
func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
