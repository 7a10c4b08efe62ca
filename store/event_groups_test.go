package store_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// A group that waits for long is due soon once it is hurried, one that is due sooner stays, and others wait.
func TestHurryGroup(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		writeEvents(t, s, fires("e1", "lock:a", locksteward.Recipient{Receiver: "ops", Group: "g\xff", Wait: time.Hour}, locksteward.Recipient{Receiver: "chat", Group: "g\xff", Wait: time.Second}),
			fires("e2", "lock:b", locksteward.Recipient{Receiver: "mail", Group: "h", Wait: time.Hour}))
		var wakes atomic.Int32
		s.OnOutboxChange(func() { wakes.Add(1) })
		for range 2 {
			if err := s.WakeGroup(t.Context(), "g\xff", 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if wakes.Load() != 1 {
			t.Errorf("woken %d times", wakes.Load())
		}
		for receiver, most := range map[string]time.Duration{"ops": 10 * time.Second, "chat": time.Second, "mail": time.Hour} {
			if wait, ok, err := s.NextGroup(t.Context(), receiver, ""); err != nil || !ok || wait > most || most > 10*time.Second && wait < 50*time.Minute {
				t.Errorf("%s: due in %s, %t, %v", receiver, wait, ok, err)
			}
		}
	})
}
