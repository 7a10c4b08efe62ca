package lock

import (
	"context"
	"errors"
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

// The last renewal of a lease has little time, and its answer may not come: what the server refused those before it with
// stands in the error all the same.
func TestLossTellsOfTheRefusalBeforeATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.db.answer = func(s *transport.Script, n int) (any, error) {
			switch {
			case s == renewScript && n < 3:
				return nil, reply("NOPERM no permissions")
			case s == renewScript:
				return nil, context.DeadlineExceeded
			}
			return nil, nil
		}
		h := b.take(t, Lease{TTL: 10 * time.Second})
		<-h.Context().Done()
		wantLost(t, h, ReasonExpired)
		cause := context.Cause(h.Context())
		if refused, ok := errors.AsType[*ServerError](cause); !ok || refused.Code != CodeDenied || !errors.Is(cause, ErrUnknown) {
			t.Errorf("cause %v, want the refusal and that the last answer did not come", cause)
		}
	})
}
