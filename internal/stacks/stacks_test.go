//go:build unix

package stacks_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward/internal/stacks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parked(until <-chan struct{}, up chan<- struct{}) {
	up <- struct{}{}
	<-until
}

func startParked(until <-chan struct{}, up chan<- struct{}) { go parked(until, up) }

// The signal logs how many goroutines wait where.
func TestSignalLogsWhatGoroutinesDo(t *testing.T) {
	t.Parallel()
	const many, here = 7, "github.com/locksteward/locksteward/internal/stacks_test."
	until, up := make(chan struct{}), make(chan struct{})
	defer close(until)
	for range many {
		startParked(until, up)
		<-up
	}
	core, logged := observer.New(zap.InfoLevel)
	written := make(chan struct{})
	stop := stacks.OnSignal(zap.New(core, zap.Hooks(func(zapcore.Entry) error { close(written); return nil })))
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	select {
	case <-written:
	case <-time.After(time.Minute):
		t.Fatal("nothing was logged")
	}
	fields := logged.FilterMessage(stacks.Message).All()[0].ContextMap()
	found, total := 0, 0
	for _, g := range fields["groups"].([]stacks.Group) {
		total += g.Count
		if strings.HasPrefix(g.Stack, here+"parked < ") && strings.HasSuffix(g.Stack, " < "+stacks.Began+here+"startParked") {
			found += g.Count
		}
		if strings.Contains(g.Stack, "runtime.gopark") || strings.Contains(g.Stack, "0x") || strings.Contains(g.Stack, ".go:") {
			t.Errorf("%q reports more than functions", g.Stack)
		}
	}
	if found != many || fields["total"] != int64(total) {
		t.Errorf("%d of %d goroutines are reported; total %v of %d", found, many, fields["total"], total)
	}
}
