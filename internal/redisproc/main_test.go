package redisproc

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv makes the test binary start a server, print its process id and
// wait to be killed.
const childEnv = "LOCKSTEWARD_REDISPROC_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		p, err := Start(context.Background(), Options{Dir: dir})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	goleak.VerifyTestMain(m)
}

// start gives a server to the test, or skips it as internal/testkit/testredis would,
// which cannot be imported here.
func start(t *testing.T, opts Options) *Proc {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real redis-server: not run with -short")
	}
	if _, err := Binary(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	p, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// await is testredis.Eventually, which cannot be imported here.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 20s: %s", what)
		}
	}
}

// answers asks the server of p as the readiness check does.
func answers(t *testing.T, p *Proc) error {
	t.Helper()
	return probe(t.Context(), p.network, p.addr, p.tlsConfig, p.opts.Username, p.opts.Password, p.PID())
}
