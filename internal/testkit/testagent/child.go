package testagent

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/stacks"
)

// childEnv makes a test binary an agent on a configuration.
const childEnv = "LOCKSTEWARD_TESTAGENT_CHILD"

// Child runs an agent if this process was started to be one, and says with which code
// it then has to end.
func Child() (is bool, code int) {
	file := os.Getenv(childEnv)
	if file == "" {
		return false, 0
	}
	if err := run(file); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return true, 1
	}
	return true, 0
}

// run is an agent until stdin ends, because its parent wants it or has died. SIGHUP
// reloads it, SIGUSR1 has it log what its goroutines do, SIGTERM ends it as it ends the
// program.
func run(file string) error {
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
	defer stacks.OnSignal(log)()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return a.Run(ctx)
}
