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
	// lookEvery is how often it is looked at what waits, lookSoon how long after a
	// change.
	lookEvery = 5 * time.Second
	lookSoon  = 500 * time.Millisecond
)

// errRemoved is why messages of a receiver are given up that is gone.
var errRemoved = errors.New("the receiver is configured no longer; give it its name back and replay them, or leave them")

// tend tells the hooks what waits and gives up what is for nobody, until ctx ends.
func (s *Sender) tend(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		s.takeStock(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.changed:
			// What changes at once is looked at once.
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookSoon):
			}
		}
	}
}

func (s *Sender) takeStock(ctx context.Context) {
	list, err := s.box.Backlogs(ctx)
	if err != nil {
		s.log.Debug("what waits for receivers is not known", zap.Error(err))
		return
	}
	to := s.to.Load().list
	out := make([]Backlog, len(to))
	for i, a := range to {
		out[i].Receiver = a.name
	}
	for _, b := range list {
		if n := slices.IndexFunc(to, func(a addressee) bool { return a.name == b.Receiver }); n >= 0 {
			out[n] = b
		} else if b.Waiting > 0 || b.Grouped > 0 || b.Groups > 0 {
			s.buryRemoved(ctx, b.Receiver)
		}
	}
	if s.hooks.Backlogs != nil {
		s.hooks.Backlogs(out)
	}
}

// buryRemoved gives up what waits for a receiver that is gone. What a process that
// was killed had claimed is left until that claim ends.
func (s *Sender) buryRemoved(ctx context.Context, name string) {
	n, err := s.box.BuryAll(ctx, name, 0, errRemoved)
	if err == nil {
		var waited int64
		waited, err = s.box.Drop(ctx, name)
		n += waited
	}
	if err != nil {
		s.log.Warn("messages of a receiver that is gone are not given up yet", zap.String("receiver", name), zap.Error(err))
		return
	}
	if n == 0 {
		return
	}
	s.log.Warn("alerts given up, their receiver is configured no longer", zap.String("receiver", name), zap.Int64("messages", n))
	for range n {
		s.hooks.count(name, OutcomeDropped, ReasonRemoved)
	}
}

// ReceiverState is how it stands with one receiver.
type ReceiverState struct {
	Name string
	// Open says that it takes nothing: one message at a time finds out whether that
	// is over, the next one not before Until.
	Open  bool
	Until time.Time
	// Gone says that it answered 410: it is tried once an hour, until a reload or a
	// test that arrives.
	Gone bool
}

// Receivers are the receivers in the order of the configuration.
func (s *Sender) Receivers() []ReceiverState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]ReceiverState, 0, len(s.workers))
	for _, w := range s.workers {
		open, gone, until := w.circuit.state()
		out = append(out, ReceiverState{Name: w.name, Open: open, Until: until, Gone: gone})
	}
	return out
}

// Test makes one attempt to tell a receiver that this is a test, whatever waits for
// it; if it arrives a receiver that is left alone is told of what waits. An unknown name is locksteward.ErrNotFound, a failed attempt a
// [DeliveryError].
func (s *Sender) Test(ctx context.Context, name, by string) error {
	s.mu.Lock()
	n := slices.IndexFunc(s.workers, func(w *worker) bool { return w.name == name })
	if n < 0 {
		s.mu.Unlock()
		return fmt.Errorf("receiver %q: %w: alert.receivers has no such name", name, locksteward.ErrNotFound)
	}
	w := s.workers[n]
	d := w.dest.Load()
	s.mu.Unlock()
	m, err := tellTest(d.addressee, by, time.Now(), s.next())
	if err != nil {
		return err
	}
	d.pace.began(time.Now(), 1) // what waits comes after it
	err = d.out.send(ctx, m.ID, m.Body)
	d.pace.ended(time.Now())
	if err != nil {
		return err
	}
	if w.circuit.reset() {
		w.hurried.Store(false)
		w.rouse()
	}
	return nil
}

func tellTest(to addressee, by string, at time.Time, seq uint64) (Message, error) {
	p := Payload{
		Version: PayloadVersion, Lang: to.lang, Type: typeTest, Seq: seq, Timestamp: stamp(at), Text: testWords(to.lang, to.name, by),
	}
	return to.finish(&p, "", "", fmt.Sprintf("test-%d", seq))
}
