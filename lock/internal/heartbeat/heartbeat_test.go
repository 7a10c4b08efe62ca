package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/heartbeat"
	"github.com/locksteward/locksteward/lock/record"
)

// At most 32 classes are counted by themselves, and nothing that happened is
// left out.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	h := heartbeat.New("key", record.Instance{}, nil)
	for n := range 100 {
		for range 3 {
			h.Count(fmt.Sprint(n), record.Counts{Acquired: 1, Contended: int64(n % 2)})
		}
		h.Count(fmt.Sprint(n), record.Counts{Failed: 1, Contended: 1})
		h.Count(fmt.Sprint(n), record.Counts{Renewed: 1, RenewFailures: 2, Lost: 3})
	}
	all := h.Counts()
	if len(all) != record.MaxClasses+1 {
		t.Errorf("%d classes", len(all))
	}
	if want := (record.Counts{Acquired: 3, Failed: 1, Contended: 4, Renewed: 1, RenewFailures: 2, Lost: 3}); all["31"] != want {
		t.Errorf("class 31: %+v, want %+v", all["31"], want)
	}
	if want := (record.Counts{Acquired: 3 * 68, Failed: 68, Contended: 68 + 3*34, Renewed: 68, RenewFailures: 2 * 68, Lost: 3 * 68}); all[record.OtherClasses] != want {
		t.Errorf("other classes: %+v, want %+v", all[record.OtherClasses], want)
	}
}

// The heartbeat is written every 5 s, more often after a failure, and repeats when the
// server said that it began.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		var starts []any
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := heartbeat.New("key", record.Instance{ID: "I"}, func(_ context.Context, keys []string, args []any) (any, error) {
			if !slices.Equal(keys, []string{"key"}) || args[0] != record.HeartbeatTTL.Milliseconds() || args[2] != "id" || args[3] != "I" {
				t.Errorf("keys %q, arguments %v", keys, args)
			}
			at, starts = append(at, time.Since(began)), append(starts, args[1])
			if len(at) == 2 {
				return nil, errors.New("refused")
			}
			if len(at) == 4 {
				cancel()
			}
			return "1000", nil
		})
		h.Run(ctx)
		if !slices.Equal(starts, []any{"0", "1000", "1000", "1000"}) {
			t.Errorf("starts %v", starts)
		}
		if at[1] != record.Heartbeat || at[2]-at[1] > 200*time.Millisecond || at[3]-at[2] != record.Heartbeat {
			t.Errorf("written at %v", at)
		}
	})
}
