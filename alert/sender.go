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
	"github.com/locksteward/locksteward/internal/reload"
)

// Hooks are called when something happens; every function may be nil and must be safe
// for concurrent use and quick. None is called with a mutex held.
type Hooks struct {
	// Delivered is called for every attempt and every notification that is given up, with
	// the values of the labels of locksteward_notifications_total.
	Delivered func(receiver, outcome, reason string)
	// Backlogs is called with the backlog of every receiver, whenever backlogs were read.
	Backlogs func([]locksteward.Backlog)
	// HeldBy returns why a firing finding is held back ("silence:ID", "inhibit:WHAT"; ""
	// if it is not). It is called inside transactions of the outbox, which it must not
	// use. Who knows that a reason has ended wakes the groups in the outbox.
	HeldBy func(f locksteward.Finding) string
	// RequestEnded reports whether a release request has ended, so that a late
	// notification asks nobody to decide on it; nil: none has. It may be slow.
	RequestEnded func(ctx context.Context, id string) bool
	// OnlyReplica reports whether no other replica can notify of what the outbox does not
	// take, so that it is sent from memory; nil: none can. It is called every second.
	OnlyReplica func() bool
	// Suppressed and Omitted are called with the number of events that a receiver is not
	// notified of, and of those that a notification counts and does not list.
	Suppressed func(receiver, reason string, n int)
	Omitted    func(receiver string, n int)
	// Pattern is the pattern of a class that a key matches, and Salt is the
	// installation's own: for receivers that do not see names of locks.
	Pattern func(class, key string) string
	Salt    []byte
	// TemplateFailed is called when a receiver's template failed: the notification has
	// the built-in text.
	TemplateFailed func(receiver string)
}

func (h Hooks) count(receiver, outcome string, reason Reason) {
	if h.Delivered != nil {
		h.Delivered(receiver, outcome, string(reason))
	}
}

// Sender makes notifications and delivers those of an outbox. Make one with [New].
type Sender struct {
	log     *zap.Logger
	outbox  Outbox
	hooks   Hooks
	number  atomic.Uint64 // of the last event
	writers atomic.Pointer[writers]
	current atomic.Pointer[[]*worker] // in the order of the configuration
	changed chan struct{}             // wakes reconcileLoop

	// mu guards what follows, and that a worker is started once: by Run or by a reload.
	// It is taken before the mutexes of a worker, and held over none of its loops.
	mu      sync.Mutex
	drain   time.Duration
	running *run // nil before Run and after it
}

// writers are those of all receivers, and what becomes of first sweeps.
type writers struct {
	list       []writer
	firstSweep string
}

// run is what the goroutines of one Run share.
type run struct {
	stop, hard context.Context
	group      sync.WaitGroup
}

// New validates the configuration, reads the files it names, and reports all
// problems at once. It opens no connection and starts no goroutine.
func New(log *zap.Logger, cfg Config, box Outbox, hooks Hooks) (*Sender, error) {
	s := newSender(log, box, hooks)
	receivers, err := s.Prepare(cfg)
	if err != nil {
		return nil, err
	}
	receivers.Commit()
	return s, nil
}

// newSender returns a sender without receivers.
func newSender(log *zap.Logger, box Outbox, hooks Hooks) *Sender {
	s := &Sender{log: log, outbox: box, hooks: hooks, changed: make(chan struct{}, 1)}
	s.writers.Store(&writers{})
	s.current.Store(&[]*worker{})
	return s
}

func (s *Sender) workers() []*worker { return *s.current.Load() }

// Prepare reads another configuration as New does and changes nothing. Its Commit
// replaces the receivers. What waits for a receiver that
// keeps its name goes to its new destination; what waits for a removed one is given up.
// Two commits must not overlap.
func (s *Sender) Prepare(cfg Config) (reload.Prepared, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	list := make([]writer, 0, len(cfg.Receivers))
	all := make([]*destination, 0, len(cfg.Receivers))
	var errs []error
	for i, rc := range cfg.Receivers {
		rc.templateFailed = s.templateFailed(rc.Name)
		out, err := rc.opened()
		if err != nil {
			errs = append(errs, prefixed(fmt.Sprintf("receivers[%d].", i), err)...)
			continue
		}
		w := newWriter(cfg, rc, kinds[rc.Kind].traits, s.hooks)
		list = append(list, w)
		all = append(all, newDestination(out, w))
	}
	prepared := reload.Funcs{
		OnCommit: func() { s.apply(cfg.DrainTimeout, writers{list, cfg.FirstSweep}, all) },
		OnDiscard: func() {
			for _, d := range all {
				d.out.close()
			}
		},
	}
	if len(errs) > 0 {
		prepared.Discard()
		return nil, errors.Join(errs...)
	}
	return prepared, nil
}

// templateFailed returns what is called when the template of a receiver failed.
func (s *Sender) templateFailed(receiver string) func(error) {
	return func(err error) {
		s.log.Warn("a template failed, the notification has the built-in text", zap.String("receiver", receiver), zap.Error(err))
		if s.hooks.TemplateFailed != nil {
			s.hooks.TemplateFailed(receiver)
		}
	}
}

func (s *Sender) apply(drain time.Duration, to writers, all []*destination) {
	// Nothing more is written for removed receivers.
	s.writers.Store(&to)
	removed := slices.Clone(s.workers())
	workers := make([]*worker, 0, len(to.list))
	var added []*worker
	for i, wr := range to.list {
		n := slices.IndexFunc(removed, func(w *worker) bool { return w.name == wr.name })
		if n < 0 {
			w := newWorker(s.log, wr.name, s.outbox, s.hooks, all[i])
			workers, added = append(workers, w), append(added, w)
			continue
		}
		w := removed[n]
		removed = slices.Delete(removed, n, n+1)
		w.redirect(all[i])
		workers = append(workers, w)
	}
	s.mu.Lock()
	s.drain = drain
	s.current.Store(&workers)
	for _, w := range added {
		s.start(w)
	}
	s.mu.Unlock()
	for _, w := range removed {
		w.remove()
	}
	s.reconcileNow()
}

// start runs a worker if the sender runs. The caller holds s.mu.
func (s *Sender) start(w *worker) {
	if s.running == nil {
		return
	}
	r := s.running
	w.begin(r.stop, r.hard)
	r.group.Go(w.run)
}

// Run delivers until ctx is done, then sends what is due for at most drain_timeout,
// and returns after the last goroutine ended. It returns nil. It may be called again
// after that, when another process may have delivered meanwhile; one runs at a time.
func (s *Sender) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &run{stop: ctx, hard: hard}
	s.mu.Lock()
	s.running = r
	for _, w := range s.workers() {
		s.start(w)
	}
	s.mu.Unlock()
	s.reconcileLoop(ctx)
	s.mu.Lock()
	s.running = nil
	drain := s.drain
	s.mu.Unlock()
	timer := time.AfterFunc(drain, cancel)
	defer timer.Stop()
	r.group.Wait()
	return nil
}

// Wake is called after a write to the outbox: something may be due. It waits for nothing.
func (s *Sender) Wake() {
	for _, w := range s.workers() {
		w.wake()
	}
	s.reconcileNow()
}

func (s *Sender) reconcileNow() { signal(s.changed) }

// Events returns the transitions that receivers are notified of, in their order, to be
// written with the findings: those that are firing or resolved and that a receiver
// takes. firstSweep reports whether the first sweep of its target found a finding, and how
// long that has been running, negative once it has ended; leaseEnds returns when the
// lease of its lock ends, zero if that is not known. Either may be nil.
func (s *Sender) Events(transitions []locksteward.Transition, firstSweep func(locksteward.Finding) (found bool, running time.Duration), leaseEnds func(locksteward.Finding) time.Time) []locksteward.FindingEvent {
	to := *s.writers.Load()
	var out []locksteward.FindingEvent
	groups := map[string]string{}
	for _, t := range transitions {
		if status := t.Finding.Status; status != locksteward.StatusFiring && status != locksteward.StatusResolved {
			continue
		}
		e := locksteward.FindingEvent{ID: eventID(t), Number: s.nextNumber(), At: t.At, Finding: t.Finding}
		var when timing
		if to.firstSweep != FirstSweepFire && t.Finding.Status == locksteward.StatusFiring && firstSweep != nil {
			e.FirstSweep, when.firstSweepFor = firstSweep(t.Finding)
		}
		if leaseEnds != nil && t.Finding.Status == locksteward.StatusFiring {
			if ends := leaseEnds(t.Finding); !ends.IsZero() {
				when.leaseLeft = ends.Sub(t.At)
			}
		}
		if e.Finding.Team == "" && len(to.list) > 0 {
			e.Finding.Team = to.list[0].team // for matchers as well
		}
		e.To = make([]locksteward.Recipient, 0, len(to.list))
		for _, w := range to.list {
			if recipient, ok := w.recipient(e, when, to.firstSweep); ok {
				if same, known := groups[recipient.Group]; known {
					recipient.Group = same // a storm is of few groups
				} else {
					groups[recipient.Group] = recipient.Group
				}
				e.To = append(e.To, recipient)
			}
		}
		if len(e.To) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// Release makes the notifications of a release event, one for each receiver. Filters and
// silences do not apply to those that are loud.
func (s *Sender) Release(n Notice) []locksteward.Notification {
	number := s.nextNumber()
	list := s.writers.Load().list
	out := make([]locksteward.Notification, 0, len(list))
	for _, w := range list {
		if m, ok := s.encoded(w, func() (locksteward.Notification, error) { return releaseNotification(w, n, number) }); ok {
			out = append(out, m)
		}
	}
	return out
}

func (s *Sender) encoded(w writer, encode func() (locksteward.Notification, error)) (locksteward.Notification, bool) {
	n, err := encode()
	if err != nil { // there is nothing in a payload that cannot be encoded
		s.log.Error("encoding a notification failed", zap.String("receiver", w.name), zap.Error(err))
		s.hooks.count(w.name, OutcomeDropped, ReasonOther)
	}
	return n, err == nil
}

// nextNumber numbers an event: higher than any before, also than those before a restart
// as long as the clock was not set back in between.
func (s *Sender) nextNumber() uint64 {
	for {
		last := s.number.Load()
		now := max(last+1, uint64(time.Now().UnixMicro()))
		if s.number.CompareAndSwap(last, now) {
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
