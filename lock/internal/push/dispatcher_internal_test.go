package push

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
		var d Dispatcher
		w := NewWaiter("A")
		u := &Subscriber{channels: map[string]*channel{"wake": {name: "wake", live: true, waiters: map[*Waiter]struct{}{w: {}}}}}
		grant := record.Message{Kind: record.MessageHand, ID: "A", Fence: int64(round), Nonce: "M"}
		var senders sync.WaitGroup
		for _, send := range []func(){
			func() { u.acknowledged("wake") },
			func() { d.Dispatch("A", record.Message{}) },
			func() { d.Dispatch("A", record.Message{Before: 1}) },
			func() { d.Wake() },
			func() {
				d.Dispatch("A", grant)
				d.Listen(w)
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
		if got := <-w.C; got.Nonce != "M" || got.Fence != int64(round) || got.Before != 0 {
			t.Fatalf("round %d: notified of %+v, want the grant", round, got)
		}
	}
}

// What a waiter has not read yet gives way to what says more.
func TestMessagesAreJoined(t *testing.T) {
	t.Parallel()
	grant := record.Message{Kind: record.MessageHand, ID: "A", Fence: 1, Nonce: "M"}
	w := NewWaiter("A")
	w.notify(record.Message{Before: 3})
	w.notify(grant)
	w.notify(record.Message{Before: 1})
	if got := <-w.C; got.Nonce != grant.Nonce || got.Fence != grant.Fence || got.Before != 0 {
		t.Errorf("%+v", got)
	}
	var d Dispatcher
	d.Dispatch("A", record.Message{Before: 1})
	d.Dispatch("A", grant)
	leave := d.Listen(w)
	defer leave()
	if got := <-w.C; got.Nonce != grant.Nonce || got.Fence != grant.Fence {
		t.Errorf("%+v", got)
	}
}
