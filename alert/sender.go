package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// Hooks are told what happens; every function may be nil and must be safe for
// concurrent use and quick.
type Hooks struct {
	// Delivered is called for every attempt and every message that is given up, with
	// the values of the labels of locksteward_deliveries_total.
	Delivered func(receiver, outcome, reason string)
	// Backlogs is called with what waits, also with zeros for receivers for which
	// nothing does, whenever that was looked at.
	Backlogs func([]Backlog)
}

func (h Hooks) count(receiver, outcome string, reason Reason) {
	if h.Delivered != nil {
		h.Delivered(receiver, outcome, string(reason))
	}
}

// Sender makes messages and delivers those of an outbox. Make one with [New].
type Sender struct {
	log   *zap.Logger
	box   Outbox
	hooks Hooks
	seq   atomic.Uint64
	to    atomic.Pointer[[]addressee]
	// changed wakes the look at what waits.
	changed chan struct{}

	// mu guards what a reload replaces.
	mu      sync.Mutex
	drain   time.Duration
	workers []*worker // in the order of the configuration
	running *run      // nil before Run and after it
}

// addressee is what it takes to write a message to a receiver.
type addressee struct{ name, lang string }

// run is what the goroutines of one Run share.
type run struct {
	stop, hard context.Context
	group      sync.WaitGroup
}

// New validates the configuration, reads the files it names, and reports all
// problems at once. It opens no connection and starts no goroutine.
func New(log *zap.Logger, cfg Config, box Outbox, hooks Hooks) (*Sender, error) {
	s := &Sender{log: log, box: box, hooks: hooks, changed: make(chan struct{}, 1)}
	apply, err := s.Prepare(cfg)
	if err != nil {
		return nil, err
	}
	apply()
	return s, nil
}

// Prepare reads another configuration as New does and changes nothing; apply, which
// may be called once and cannot fail, tells its receivers from then on. What waits
// for a receiver that keeps its name goes where it is now; what waits for one that
// is gone is given up.
func (s *Sender) Prepare(cfg Config) (apply func(), err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	to := make([]addressee, 0, len(cfg.Receivers))
	all := make([]*destination, 0, len(cfg.Receivers))
	var errs []error
	for i, rc := range cfg.Receivers {
		out, err := newWebhook(*rc.Webhook)
		if err != nil {
			errs = append(errs, prefixed(fmt.Sprintf("receivers[%d].webhook.", i), err)...)
			continue
		}
		to = append(to, addressee{rc.Name, rc.Lang})
		all = append(all, &destination{
			out: out, timeout: rc.Webhook.Timeout, maxAttempts: rc.Webhook.MaxAttempts, maxAge: rc.Webhook.MaxAge,
		})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return func() { s.apply(cfg.DrainTimeout, to, all) }, nil
}

func (s *Sender) apply(drain time.Duration, to []addressee, all []*destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Nothing more is written for those that go.
	s.to.Store(&to)
	s.drain = drain
	workers := make([]*worker, 0, len(to))
	for i, a := range to {
		n := slices.IndexFunc(s.workers, func(w *worker) bool { return w.name == a.name })
		if n < 0 {
			w := newWorker(s.log, a.name, s.box, s.hooks, all[i])
			workers = append(workers, w)
			s.start(w)
			continue
		}
		w := s.workers[n]
		s.workers = slices.Delete(s.workers, n, n+1)
		w.redirect(all[i])
		workers = append(workers, w)
	}
	for _, gone := range s.workers {
		gone.remove()
	}
	s.workers = workers
	s.look()
}

// start has a worker run if the sender does. The caller holds s.mu.
func (s *Sender) start(w *worker) {
	if s.running == nil {
		return
	}
	r := s.running
	w.begin(r.stop, r.hard)
	r.group.Go(w.run)
}

// Run delivers until ctx is done, then sends what is due for at most drain_timeout,
// and returns after the last goroutine ended. It returns nil. It may be called
// once.
func (s *Sender) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &run{stop: ctx, hard: hard}
	s.mu.Lock()
	s.running = r
	for _, w := range s.workers {
		s.start(w)
	}
	s.mu.Unlock()
	s.tend(ctx)
	s.mu.Lock()
	s.running = nil
	drain := s.drain
	s.mu.Unlock()
	timer := time.AfterFunc(drain, cancel)
	defer timer.Stop()
	r.group.Wait()
	return nil
}

// Wake says that something may be due: whoever wrote to the outbox calls it.
func (s *Sender) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		w.rouse()
	}
	s.look()
}

func (s *Sender) look() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Findings makes the messages of transitions, one for each and receiver. Those
// that are neither firing nor resolved are left out. Transitions of one finding
// must come in their order.
func (s *Sender) Findings(transitions []locksteward.Transition) []Message {
	to := *s.to.Load()
	var out []Message
	for _, t := range transitions {
		if status := t.Finding.Status; status != locksteward.StatusFiring && status != locksteward.StatusResolved {
			continue
		}
		next := sequenced{t, s.next()}
		out = append(out, s.messages(to, func(a addressee) (Message, error) { return tellFindings(a, next) })...)
	}
	return out
}

// Release makes the messages of a notice, one for each receiver. Whatever will
// leave messages out one day leaves none out that is loud.
func (s *Sender) Release(n Notice) []Message {
	seq := s.next()
	return s.messages(*s.to.Load(), func(a addressee) (Message, error) { return tellRelease(a, n, seq) })
}

func (s *Sender) messages(to []addressee, tell func(addressee) (Message, error)) []Message {
	out := make([]Message, 0, len(to))
	for _, a := range to {
		m, err := tell(a)
		if err != nil { // there is nothing in a payload that cannot be encoded
			s.log.Error("alert not encoded", zap.String("receiver", a.name), zap.Error(err))
			s.hooks.count(a.name, OutcomeDropped, ReasonOther)
			continue
		}
		out = append(out, m)
	}
	return out
}

// next numbers an event: higher than any before, also than those before a restart
// as long as the clock was not set back in between.
func (s *Sender) next() uint64 {
	for {
		last := s.seq.Load()
		now := max(last+1, uint64(time.Now().UnixMicro()))
		if s.seq.CompareAndSwap(last, now) {
			return now
		}
	}
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
