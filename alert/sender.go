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
	// Held says why a firing finding is not told now ("silence:ID", "inhibit:WHAT"; ""
	// if it is). It is called inside transactions of the outbox, which it must not
	// use. Whoever knows that a reason is over has the outbox look again.
	Held func(f locksteward.Finding) string
	// RequestOver says that a release request is over, so that nobody is asked to decide
	// on it when a message comes late; nil: none is. It may take its time.
	RequestOver func(ctx context.Context, id string) bool
	// Alone says that nobody else can tell what the outbox does not take, so that it is
	// told from memory; nil: that is so. It is asked again every second.
	Alone func() bool
	// Suppressed and Omitted are called for changes that a receiver is not told of,
	// and for those that a message counts and does not list.
	Suppressed func(receiver, reason string, n int)
	Omitted    func(receiver string, n int)
	// Pattern is the pattern of a class that a key matches, and Salt is the
	// installation's own: for receivers that are not told names of locks.
	Pattern func(class, key string) string
	Salt    []byte
	// TemplateFailed is called when a receiver's template failed: the message has the
	// built-in text.
	TemplateFailed func(receiver string)
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
	to    atomic.Pointer[addressees]
	// changed wakes the look at what waits.
	changed chan struct{}

	// mu guards what a reload replaces.
	mu      sync.Mutex
	drain   time.Duration
	workers []*worker // in the order of the configuration
	running *run      // nil before Run and after it
}

// addressees are all receivers, and what becomes of first surveys.
type addressees struct {
	list   []addressee
	survey string
}

// run is what the goroutines of one Run share.
type run struct {
	stop, hard context.Context
	group      sync.WaitGroup
}

// New validates the configuration, reads the files it names, and reports all
// problems at once. It opens no connection and starts no goroutine.
func New(log *zap.Logger, cfg Config, box Outbox, hooks Hooks) (*Sender, error) {
	s := &Sender{log: log, box: box, hooks: hooks, changed: make(chan struct{}, 1)}
	s.to.Store(&addressees{})
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
		rc.stumbled = s.stumbled(rc.Name)
		out, how, err := rc.opened()
		if err != nil {
			errs = append(errs, prefixed(fmt.Sprintf("receivers[%d].", i), err)...)
			continue
		}
		a := newAddressee(cfg, rc, how, s.hooks)
		to = append(to, a)
		all = append(all, newDestination(out, a))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return func() { s.apply(cfg.DrainTimeout, addressees{to, cfg.FirstSurvey}, all) }, nil
}

// stumbled is what is told when a receiver's template failed.
func (s *Sender) stumbled(receiver string) func(error) {
	return func(err error) {
		s.log.Warn("a template failed, the message has the built-in text", zap.String("receiver", receiver), zap.Error(err))
		if s.hooks.TemplateFailed != nil {
			s.hooks.TemplateFailed(receiver)
		}
	}
}

func (s *Sender) apply(drain time.Duration, to addressees, all []*destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Nothing more is written for those that go.
	s.to.Store(&to)
	s.drain = drain
	workers := make([]*worker, 0, len(to.list))
	for i, a := range to.list {
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
	r.group.Go(w.both)
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

// Changes are transitions as receivers are told of them, in their order, for
// whoever writes them with the findings. survey says of a finding that the first
// sweep of its target found it, and for how long that has been under way, negative once it has ended; leaseEnds when its lock's lease ends; either may be
// nil. Those that are neither firing nor resolved, or of which nobody is told, are left
// out.
func (s *Sender) Changes(transitions []locksteward.Transition, survey func(locksteward.Finding) (found bool, running time.Duration), leaseEnds func(locksteward.Finding) time.Time) []Change {
	to := *s.to.Load()
	var out []Change
	groups := map[string]string{}
	for _, t := range transitions {
		if status := t.Finding.Status; status != locksteward.StatusFiring && status != locksteward.StatusResolved {
			continue
		}
		c := Change{EventID: eventID(t), Seq: s.next(), At: t.At, Finding: t.Finding}
		if to.survey != SurveyFire && t.Finding.Status == locksteward.StatusFiring && survey != nil {
			c.Survey, c.surveying = survey(t.Finding)
		}
		if leaseEnds != nil && t.Finding.Status == locksteward.StatusFiring {
			c.LeaseEnds = leaseEnds(t.Finding)
		}
		if c.Finding.Team == "" && len(to.list) > 0 {
			c.Finding.Team = to.list[0].team // for matchers as well
		}
		c.To = make([]Address, 0, len(to.list))
		for _, a := range to.list {
			if address, ok := a.address(c, to.survey); ok {
				if same, known := groups[address.Group]; known {
					address.Group = same // a storm is of few groups
				} else {
					groups[address.Group] = address.Group
				}
				c.To = append(c.To, address)
			}
		}
		if len(c.To) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// Release makes the messages of a notice, one for each receiver. Whatever leaves
// messages out leaves none out that is loud.
func (s *Sender) Release(n Notice) []Message {
	seq := s.next()
	to := (*s.to.Load()).list
	out := make([]Message, 0, len(to))
	for _, a := range to {
		if m, ok := s.made(a, func() (Message, error) { return tellRelease(a, n, seq) }); ok {
			out = append(out, m)
		}
	}
	return out
}

func (s *Sender) made(a addressee, tell func() (Message, error)) (Message, bool) {
	m, err := tell()
	if err != nil { // there is nothing in a payload that cannot be encoded
		s.log.Error("alert not encoded", zap.String("receiver", a.name), zap.Error(err))
		s.hooks.count(a.name, OutcomeDropped, ReasonOther)
	}
	return m, err == nil
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
