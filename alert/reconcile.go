package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

const (
	// reconcileEvery is how often backlogs are read, reconcileSoon how long after a
	// change.
	reconcileEvery = 5 * time.Second
	reconcileSoon  = 500 * time.Millisecond
)

// errRemoved is why notifications of a removed receiver are given up.
var errRemoved = errors.New("the receiver was removed from the configuration; add it again under this name to retry them, or leave them")

// reconcileLoop reports backlogs to the hooks and gives up what is for removed
// receivers, until ctx ends.
func (s *Sender) reconcileLoop(ctx context.Context) {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		s.reconcile(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.changed:
			// Several changes are read together.
			select {
			case <-ctx.Done():
				return
			case <-time.After(reconcileSoon):
			}
		}
	}
}

func (s *Sender) reconcile(ctx context.Context) {
	list, err := s.outbox.Backlogs(ctx)
	if err != nil {
		s.log.Debug("reading the backlogs failed", zap.Error(err))
		return
	}
	configured := s.writers.Load().list
	out := make([]locksteward.Backlog, len(configured))
	for i, w := range configured {
		out[i].Receiver = w.name
	}
	for _, b := range list {
		if n := slices.IndexFunc(configured, func(w writer) bool { return w.name == b.Receiver }); n >= 0 {
			out[n] = b
		} else if b.Waiting > 0 || b.Grouped > 0 || b.Groups > 0 {
			s.deadLetterRemoved(ctx, b.Receiver)
		}
	}
	if s.hooks.Backlogs != nil {
		s.hooks.Backlogs(out)
	}
}

// deadLetterRemoved gives up what waits for a removed receiver. What a killed process
// had claimed is left until its claim expires.
func (s *Sender) deadLetterRemoved(ctx context.Context, name string) {
	n, err := s.outbox.DeadLetterAll(ctx, name, 0, errRemoved)
	if err == nil {
		var waited int64
		waited, err = s.outbox.DropReceiver(ctx, name)
		n += waited
	}
	if err != nil {
		s.log.Warn("giving up the notifications of a removed receiver failed, it is tried again", zap.String("receiver", name), zap.Error(err))
		return
	}
	if n == 0 {
		return
	}
	s.log.Warn("notifications given up, their receiver was removed", zap.String("receiver", name), zap.Int64("count", n))
	for range n {
		s.hooks.count(name, OutcomeDropped, ReasonRemoved)
	}
}

// ReceiverState is the state of one receiver.
type ReceiverState struct {
	Name string
	// CircuitOpen says that it accepts nothing: one notification at a time is tried, the
	// next one not before Until.
	CircuitOpen bool
	Until       time.Time
	// Gone says that it answered 410: it is tried once an hour, until a reload or a test
	// that is delivered.
	Gone bool
}

// Receivers returns the receivers in the order of the configuration.
func (s *Sender) Receivers() []ReceiverState {
	workers := s.workers()
	out := make([]ReceiverState, 0, len(workers))
	for _, w := range workers {
		open, gone, until := w.circuit.state()
		out = append(out, ReceiverState{Name: w.name, CircuitOpen: open, Until: until, Gone: gone})
	}
	return out
}

// Test makes one attempt to send a test to a receiver, ahead of what waits for it. If it
// is delivered, the receiver's open circuit is closed. An unknown name is
// [locksteward.ErrNotFound], a failed attempt a [DeliveryError].
func (s *Sender) Test(ctx context.Context, name, by string) error {
	workers := s.workers()
	i := slices.IndexFunc(workers, func(w *worker) bool { return w.name == name })
	if i < 0 {
		return fmt.Errorf("receiver %q: %w: alert.receivers has no such name", name, locksteward.ErrNotFound)
	}
	w := workers[i]
	d := w.dest.Load()
	n, err := testNotification(d.writer, by, time.Now(), s.nextNumber())
	if err != nil {
		return err
	}
	d.limiter.begin(time.Now(), 1) // what waits comes after it
	err = d.out.send(ctx, newOutgoing(n.ID, n.Body))
	d.limiter.end(time.Now())
	if err != nil {
		return err
	}
	if w.circuit.reset() {
		w.retryAll.Store(true)
		w.wake()
	}
	return nil
}

func testNotification(to writer, by string, at time.Time, number uint64) (locksteward.Notification, error) {
	p := Payload{
		Version: PayloadVersion, Lang: to.lang, Type: typeTest, Seq: number, Timestamp: stamp(at), Text: sentence(to.lang, "notification.test", to.name, by),
	}
	return to.notification(&p, "", "", fmt.Sprintf("test-%d", number))
}
