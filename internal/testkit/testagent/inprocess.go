package testagent

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
)

// Run runs an agent on a configuration file in this process, until the test ends. A
// reload reads the file again.
func Run(t testing.TB, file string, o agent.Options) *agent.Agent {
	t.Helper()
	o.Load = func() (config.Config, error) { return config.Load(file) }
	cfg, err := o.Load()
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(t.Context(), zap.NewNop(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with: %v", err)
		}
	})
	return a
}
