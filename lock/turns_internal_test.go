package lock

import (
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// TestNotifyNeverBlocks notifies a waiter, which reads nothing, from the goroutine of
// each channel that it listens to, at once: none of them may block, since they hold the
// mutex of what they send for.
func TestNotifyNeverBlocks(t *testing.T) {
	t.Parallel()
	for round := range 200 {
		c := &Client{}
		h := &hub{c: c, topics: map[string]*topic{}}
		w := newWaiter("A")
		h.topics["wake"] = &topic{name: "wake", live: true, waiters: map[*waiter]struct{}{w: {}}}
		grant := record.Grant{ID: "A", Fence: int64(round), Nonce: "M"}
		var senders sync.WaitGroup
		for _, send := range []func(){
			func() { h.acknowledged("wake") },
			func() { c.told(record.TurnMessage("A", 0)) },
			func() { c.turns.tell("A", word{before: 1}) },
			func() {
				c.turns.tell("A", word{grant: grant})
				c.turns.listen(w)
			},
		} {
			senders.Go(func() {
				for range 500 {
					send()
				}
			})
		}
		done := make(chan struct{})
		go func() {
			senders.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("round %d: a sender has blocked with its mutex locked", round)
		}
		if got := <-w.wake; got.grant != grant || got.before != 0 {
			t.Fatalf("round %d: notified of %+v, want the grant", round, got)
		}
	}
}
