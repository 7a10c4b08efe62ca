package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// agentRun is the agent in this process.
type agentRun struct {
	agent *agent.Agent
	done  chan error
	end   context.CancelFunc

	// http is shared by all clients of the agent.
	http *http.Client
}

// newLog returns a logger whose last lines stay in t.
func newLog(t *tail) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.AddSync(t), zap.InfoLevel))
}

// startAgent starts the agent of the settings.
func startAgent(ctx context.Context, log *zap.Logger, opts Options, s *settings) (*agentRun, error) {
	a := &agentRun{done: make(chan error, 1), http: &http.Client{Transport: &http.Transport{}}}
	var o agent.Options
	o.Build.Version, o.Build.Revision = opts.Version, opts.Revision
	o.Load = s.load
	var err error
	a.agent, err = agent.New(ctx, log, s.config, o)
	if errors.Is(err, syscall.EADDRINUSE) {
		// Somebody took the port since it was looked at.
		s.config.Metrics.Listen, s.config.Console.Listen = anyPort, anyPort
		a.agent, err = agent.New(ctx, log, s.config, o)
	}
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	ctx, a.end = context.WithCancel(context.WithoutCancel(ctx))
	go func() { a.done <- a.agent.Run(ctx) }()
	return a, nil
}

// stop ends the agent and returns when nothing of it runs.
func (a *agentRun) stop() error {
	a.end()
	err := <-a.done
	a.http.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("the agent did not stop in order: %w", err)
	}
	return nil
}

// failed returns when the agent ends by itself, which is a failure.
func (a *agentRun) failed(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.done:
		a.done <- err // for stop
		if err == nil {
			err = errors.New("it ended by itself")
		}
		return fmt.Errorf("the agent failed: %w", err)
	}
}

func (a *agentRun) metricsURL() string {
	return "http://" + a.agent.MetricsAddr().String() + "/metrics"
}

func (a *agentRun) consoleURL() string { return strings.TrimSuffix(a.agent.ConsoleURL(), "/") + "/" }

// client returns the API as one of the people has it.
func (a *agentRun) client(s *settings, who string) (*apiclient.Client, error) {
	return apiclient.New(a.agent.ConsoleURL(), s.tokens[who], a.http)
}

// listen is the usual address, or any port if somebody else has that.
func listen(usual string, anyPorts bool) string {
	if anyPorts {
		return anyPort
	}
	l, err := net.Listen("tcp", usual)
	if err != nil || l.Close() != nil {
		return anyPort
	}
	return usual
}
