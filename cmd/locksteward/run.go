package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/stacks"
)

func runCommand(p *program) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the agent: watch the configured targets",
		Long: `Run watches the targets of a configuration until SIGTERM or Ctrl-C: it sweeps them on
schedule, evaluates their locks, serves metrics and the console, sends notifications,
and releases locks after approval. SIGHUP reloads the configuration, SIGUSR1 logs the
goroutines.

An unreachable Redis is reported down and retried. With an invalid configuration the
program exits with code 2 before anything starts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := checkConfig(file)
			if err != nil {
				return err
			}
			return runAgent(cmd.Context(), p, cfg, func() (config.Config, error) { return config.Load(file) })
		},
	}
	c.Flags().StringVar(&file, "config", defaultConfigFile, "configuration file")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
	return c
}

func runAgent(ctx context.Context, p *program, cfg config.Config, load func() (config.Config, error)) error {
	log, err := newLogger(p, cfg.Log)
	if err != nil {
		return err
	}
	warn := func(c config.Config) {
		for _, text := range c.Warnings() {
			log.Warn("configuration", zap.String("warning", text))
		}
	}
	warn(cfg)
	b := thisBuild()
	a, err := agent.New(ctx, log, cfg, agent.Options{
		Build:  exporter.BuildInfo{Version: b.Version, Revision: b.Commit, GoVersion: b.Go},
		Stdout: p.stdout,
		Load: func() (config.Config, error) {
			next, err := load()
			if err == nil {
				warn(next)
			}
			return next, err
		},
	})
	if err != nil {
		return err
	}
	stop := reloadOnHangup(ctx, log, a)
	defer stop()
	defer stacks.OnSignal(log)()
	defer limitMemory(ctx)()
	// Who reads the trail on stdout may go away: that must not end the agent.
	signal.Ignore(syscall.SIGPIPE)
	return a.Run(ctx)
}

// reloadOnHangup reloads the agent at each SIGHUP until the returned function
// is called.
func reloadOnHangup(ctx context.Context, log *zap.Logger, a *agent.Agent) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				// The agent logs what came of it.
				if err := a.Reload(ctx); err != nil {
					log.Debug("reload by signal failed", zap.Error(err))
				}
			}
		}
	}()
	return func() {
		signal.Stop(hangup)
		cancel()
		<-done
	}
}

// newLogger writes to the program's stderr.
func newLogger(p *program, cfg config.Log) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(cfg.Level)
	if err != nil {
		return nil, usagef("log.level: %w", err)
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(enc)
	if cfg.Format == "console" {
		encoder = zapcore.NewConsoleEncoder(enc)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(p.stderr)), level)), nil
}
