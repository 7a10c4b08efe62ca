package lockuser_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/demo/lockuser"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHold(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	ctx, cancel := context.WithCancel(t.Context())
	held, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- lockuser.HoldOn(ctx, rdb, lock.Options{}, "k", lock.Lease{TTL: 30 * time.Second}, func() { close(held) })
	}()
	select {
	case <-held:
	case err := <-done:
		t.Fatal(err)
	}
	if rdb.Exists(t.Context(), "k").Val() != 1 {
		t.Error("no lock is taken")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if rdb.Exists(t.Context(), "k").Val() != 0 {
		t.Error("lock left")
	}
}

func TestHoldTellsOfLoss(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	// Long enough for a slow machine to connect and to have the answer in time.
	err := lockuser.Hold(t.Context(), srv.URL(), "k", lock.Lease{TTL: 3 * time.Second, NoRenew: true})
	if !errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v", err)
	}
	err = lockuser.Hold(t.Context(), "redis://:hunter2@bad:port:1/x", "k", lock.Lease{TTL: time.Second})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
