package source

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/internal/pace"
)

// The waits for a server's pace are counted by the reason that the pace gives.
func TestThrottleCountsReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle, server := NewThrottle(nil), new(pace.Host).Server(pace.Config{})
		server.Spend(time.Now(), time.Millisecond) // nothing is known of it: the busy bound, 1 %
		began := time.Now()
		if err := throttle.Wait(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		if err := throttle.Sleep(t.Context(), ReasonBusy, time.Second); err != nil {
			t.Fatal(err)
		}
		got := throttle.Waited()
		waited := time.Since(began) - time.Second
		if waited < 70*time.Millisecond || waited > 100*time.Millisecond || got[Reason(pace.Starting)] != waited || got[ReasonBusy] != time.Second {
			t.Errorf("waited %s; %v", waited, got)
		}
		if len(got) != len(Reasons()) {
			t.Errorf("reasons %v, want all of %v", got, Reasons())
		}
	})
}
