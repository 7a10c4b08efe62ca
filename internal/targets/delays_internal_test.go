package targets

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward/scanner"
)

// TestLogTellsThatChangesAreLate: once, again after a minute, and when it is over.
func TestLogTellsThatChangesAreLate(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.InfoLevel)
	log := zap.New(core)
	now := time.Unix(1_800_000_000, 0)
	var late lateness
	for i, step := range []struct {
		after, delay time.Duration
		want         int // lines
	}{
		{0, time.Second, 0},
		{time.Second, 10 * time.Second, 1},
		{30 * time.Second, 40 * time.Second, 0},
		{30 * time.Second, 70 * time.Second, 1},
		{time.Second, 7 * time.Second, 0}, // neither late nor in time
		{time.Second, time.Second, 1},
		{time.Second, time.Second, 0},
		{time.Second, 12 * time.Second, 1},
	} {
		now = now.Add(step.after)
		late.tell(log, scanner.WatchState{Delay: step.delay, Waiting: 7}, now)
		if got := seen.TakeAll(); len(got) != step.want {
			t.Errorf("step %d: %d lines, want %d: %v", i, len(got), step.want, got)
		}
	}
}
