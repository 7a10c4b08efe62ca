package lock

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock/internal/heartbeat"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// With EndWithHeartbeat a hold ends before the server forgets the heartbeat, and
// at the first look after a pause.
func TestEndWithHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		b.opts.EndWithHeartbeat = true
		var alive atomic.Bool
		alive.Store(true)
		b.db.answer = func(s *transport.Script, _ int) (any, error) {
			switch {
			case s != heartbeat.Script:
				return nil, nil // as a server that has the lock for us
			case alive.Load():
				return "1000", nil
			default:
				return nil, io.EOF
			}
		}
		b.beaten(b.clock.now())
		b.spawn(b.heart.Run)
		h := b.take(t, Lease{TTL: time.Hour})
		time.Sleep(time.Minute)
		if err := h.Err(); err != nil {
			t.Fatalf("with a heartbeat: %v", err)
		}
		alive.Store(false)
		began := time.Now()
		<-h.Context().Done()
		if d := time.Since(began); d > record.HeartbeatTTL || d < record.HeartbeatTTL-record.Heartbeat-drift(record.HeartbeatTTL) {
			t.Errorf("ended %s after the last heartbeat but one", d)
		}
		lost, ok := errors.AsType[*LostError](h.Err())
		if !ok || lost.Reason != ReasonHeartbeat {
			t.Errorf("got %v", h.Err())
		}

		// A hold that is taken meanwhile ends at once.
		if h := b.take(t, Lease{TTL: time.Hour}); h.Context().Err() == nil {
			t.Error("a hold without heartbeat")
		}
		alive.Store(true)
		time.Sleep(record.Heartbeat)
		h = b.take(t, Lease{TTL: time.Hour})
		if err := h.Err(); err != nil {
			t.Errorf("the heartbeat is back: %v", err)
		}
		b.shift.Add(int64(20 * time.Second)) // a suspended machine
		if h.Context().Err() == nil {
			t.Error("first look after a pause")
		}
	})
}
