package testredis_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestClock(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t)
	c, ctx := srv.Client(t), t.Context()
	now := func() time.Time {
		t.Helper()
		at, err := c.Time(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if off := time.Until(now()).Abs(); off > time.Minute {
		t.Errorf("unset clock is off by %s", off)
	}
	clock.Set(time.Hour)
	clock.Step(-2 * time.Hour)
	if off := time.Since(now()); off < 59*time.Minute || off > 61*time.Minute {
		t.Errorf("clock is %s behind, want an hour", off)
	}

	// It stands still, and expiries go by it alone.
	at := time.Date(2031, 2, 3, 4, 5, 6, 7000, time.UTC)
	clock.Freeze(at)
	if err := c.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if got := now(); !got.Equal(at) {
		t.Errorf("frozen at %s, says %s", at, got)
	}
	if left := c.PTTL(ctx, "k").Val(); left != time.Minute {
		t.Errorf("PTTL %s, want a minute to the millisecond", left)
	}
	clock.Freeze(at.Add(time.Minute + time.Millisecond))
	if n := c.Exists(ctx, "k").Val(); n != 0 {
		t.Error("the key outlived its expiry")
	}
}
