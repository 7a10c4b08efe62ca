package agent_test

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// stacks are those of all goroutines.
func stacks(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&out, 1); err != nil {
		t.Error(err)
	}
	return out.String()
}

// While the store takes its time to keep a pause, the list of targets is shown,
// and a reload waits for the store at most.
func TestPauseReloadAndTargetsAtOnce(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)

	entered, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.agent.BeforeComposing(func(store.Written) {
		once.Do(func() {
			close(entered)
			<-goOn
		})
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*within)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		if err := b.agent.PauseReleases(ctx, "root", true); err != nil {
			t.Errorf("pause: %v", err)
		}
	})
	<-entered
	shown := make(chan struct{})
	all.Go(func() {
		defer close(shown)
		b.agent.Backend().Targets()
	})
	all.Go(func() {
		if err := b.agent.Reload(ctx); err != nil {
			t.Errorf("reload: %v", err)
		}
	})
	select {
	case <-shown:
	case <-time.After(5 * time.Second):
		t.Error("the list of targets waits for the store")
	}
	close(goOn)

	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(within):
		// The agent cannot be stopped either.
		fmt.Fprintln(os.Stderr, "pause, reload and the list of targets wait for each other:\n"+stacks(t))
		os.Exit(1)
	}
}
