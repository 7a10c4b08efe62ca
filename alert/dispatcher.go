package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// Hooks are told what happens; every function may be nil and must be safe for
// concurrent use and quick.
type Hooks struct {
	// Delivered is called for every attempt and every loss, with the values of
	// the labels of locksteward_deliveries_total.
	Delivered func(receiver, outcome, reason string)
}

func (h Hooks) count(receiver, outcome string, reason Reason) {
	if h.Delivered != nil {
		h.Delivered(receiver, outcome, string(reason))
	}
}

// Dispatcher delivers transitions of findings to all receivers.
type Dispatcher struct {
	log       *zap.Logger
	drain     time.Duration
	receivers []*receiver
}

// New validates the configuration, reads the files it names, and reports all
// problems at once. It opens no connection and starts no goroutine.
func New(log *zap.Logger, cfg Config, hooks Hooks) (*Dispatcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	d := &Dispatcher{log: log, drain: cfg.DrainTimeout}
	var errs []error
	for i, rc := range cfg.Receivers {
		w, err := newWebhook(*rc.Webhook)
		if err != nil {
			errs = append(errs, prefixed(fmt.Sprintf("receivers[%d].webhook.", i), err)...)
			continue
		}
		d.receivers = append(d.receivers, newReceiver(log, cfg, rc, hooks, w))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return d, nil
}

func newReceiver(log *zap.Logger, cfg Config, rc Receiver, hooks Hooks, s sender) *receiver {
	return &receiver{
		name: rc.Name, lang: rc.Lang, log: log.With(zap.String("receiver", rc.Name)), hooks: hooks, sender: s,
		queueSize: cfg.QueueSize, maxAttempts: rc.Webhook.MaxAttempts, maxAge: rc.Webhook.MaxAge,
		wake: make(chan struct{}, 1), told: make(map[string]told), door: make(map[string]door),
	}
}

// Notify queues transitions for every receiver and returns at once. Transitions
// of one finding must come in their order. Those that are neither firing nor
// resolved are left out. What does not fit is counted and logged.
func (d *Dispatcher) Notify(_ context.Context, transitions []locksteward.Transition) {
	if len(transitions) == 0 {
		return
	}
	for _, r := range d.receivers {
		no := r.enqueue(transitions)
		r.lost(no.full, ReasonQueueFull)
		r.lost(no.closed, ReasonShutdown)
		r.withheld(no.noFire)
	}
}

// Run delivers until ctx is done, then drains the queues for at most
// drain_timeout, and returns after the last goroutine ended. It returns nil.
func (d *Dispatcher) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers, clock sync.WaitGroup
	for _, r := range d.receivers {
		workers.Go(func() { r.run(ctx, hard) })
	}
	drained := make(chan struct{})
	clock.Go(func() {
		select {
		case <-ctx.Done():
		case <-drained:
			return
		}
		timer := time.NewTimer(d.drain)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-drained:
		}
	})
	// Without receivers there is nothing to drain, but Run still lasts as long
	// as its context.
	<-ctx.Done()
	workers.Wait()
	close(drained)
	clock.Wait()
	return nil
}

// Same says whether other tells the same receivers in the same way, by the
// contents of the files that the configuration names too. A reload then keeps
// this one, with what waits in it: a new one would begin with an empty queue, and
// a resolve could overtake its fire.
func (d *Dispatcher) Same(other *Dispatcher) bool {
	return d.drain == other.drain && slices.EqualFunc(d.receivers, other.receivers, (*receiver).same)
}

// Depth is what waits for one receiver.
type Depth struct {
	Receiver string
	// Queued is how many transitions wait, those under way included.
	Queued int
	// Oldest is when the oldest of them was queued; zero if none waits.
	Oldest time.Time
}

// Depths returns what waits, in the order of the configuration.
func (d *Dispatcher) Depths() []Depth {
	out := make([]Depth, 0, len(d.receivers))
	for _, r := range d.receivers {
		n, oldest := r.depth()
		out = append(out, Depth{Receiver: r.name, Queued: n, Oldest: oldest})
	}
	return out
}

// prefixed puts a path before every one of joined errors.
func prefixed(path string, err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s%w", path, err)}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, fmt.Errorf("%s%w", path, e))
	}
	return out
}
