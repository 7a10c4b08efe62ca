package lock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

// A goroutine that renews and does not run, whatever its deadline: the end of the
// lease comes all the same, and the success that it comes back with revives
// nothing.
// fault: 3
func TestStuckRenewalDoesNotDelayTheLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			if s == renewScript {
				time.Sleep(time.Minute) // no context ends this
			}
			return nil, nil
		}
		began := time.Now()
		h := b.take(t, Lease{TTL: 10 * time.Second})
		<-h.Context().Done()
		if d := time.Since(began); d != 10*time.Second-102*time.Millisecond {
			t.Errorf("context ended after %s", d)
		}
		wantLost(t, h, ReasonExpired)
		time.Sleep(2 * time.Minute)
		if n := len(b.db.of("renew")); n != 1 {
			t.Errorf("%d renewals, want the one that was stuck", n)
		}
		if h.Validity() != 0 || h.Context().Err() == nil {
			t.Error("the late success has revived the hold")
		}
	})
}
