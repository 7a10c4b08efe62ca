package scanner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

// Scanner sweeps one target. See [New].
type Scanner struct {
	log      *zap.Logger
	source   source.Source
	cfg      Config
	schedule schedule
	history  HistoryStore
	// factStore keeps facts; nil for none.
	factStore FactStore
	// found is Options.Found.
	found func(context.Context, locksteward.Update)
	clock func() time.Time

	target   locksteward.Target
	table    *Table
	throttle *source.Throttle

	// sweeping is held by the one sweep that runs, order from the moment that something is
	// put into the table until it has been passed on, so that sweeps and the watch report in
	// the order of what they saw. See [Scanner.Yield]. Sweeping is taken first.
	sweeping sync.Mutex
	order    fairMutex
	// watchSink gets the updates of the watch; set before it starts.
	watchSink func(context.Context, locksteward.Update)
	// requested holds one token when the next sweep shall not wait for its date.
	requested chan struct{}
	// Of the sweep that runs:
	number   uint64                 // sweeps begun
	runIDs   map[string]bool        // server processes of the last sweep
	saidPace map[string]pace.Reason // of servers that the log names, by address; of the goroutine of Run
	// known are losses of which more was known once than the server tells now.
	known map[lossKey]locksteward.Loss
	facts *facts

	scanned atomic.Int64 // Stats.Keys
	tracker sweepTracker
	stall   stall

	mu       sync.Mutex // guards what follows
	saidLate bool       // that the next sweep begins later than scheduled
	state    locksteward.TargetState
	stats    Stats
}

// Options are what a scanner may have beside its configuration.
type Options struct {
	// History keeps histories across restarts; nil keeps none.
	History HistoryStore
	// Found is called while a sweep is under way with locks that should not wait for its end: those that were not known,
	// new holds, and those for whose verdict the time has come ([Scanner.Touch]). The sweep has them too. Calls come one
	// at a time, and none while the watch or the sweep is handed on. Nil hands nothing on.
	Found func(context.Context, locksteward.Update)
	// Paused is called when a pause begins and when it ends. It must return soon
	// and not call the scanner.
	Paused func(bool)
	// Facts keeps what is known of servers and processes; nil keeps none.
	Facts FactStore
	// Clock is the agent's clock in what is concluded: when sweeps began, for how
	// long a process was silent. Nil is time.Now. The schedule, the budget and the
	// watch go by the true clock all the same. It is called by many goroutines.
	Clock func() time.Time
}

// Stats are a scanner's counters since its start.
type Stats struct {
	Sweeps         int64 // ended
	CompleteSweeps int64
	SkippedSweeps  int64 // due while the one before was still running
	Keys           int64 // scanned, including those of a sweep under way
	// Throttled is the time waited by reason, summed over masters; every reason
	// is present.
	Throttled map[source.Reason]time.Duration
	// Bounds are the configured bounds of the pace.
	Bounds pace.Config
	source.Stats
}

// New returns a scanner of target that reads from src. It does no I/O. target.Mode is
// what the configuration says; [Scanner.State] returns what was found.
func New(log *zap.Logger, target locksteward.Target, src source.Source, classes *class.Set, cfg Config, opts Options) (*Scanner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	plan, err := newSchedule(cfg)
	if err != nil {
		return nil, err
	}
	target.DB = src.DB()
	s := &Scanner{
		order: newFairMutex(),
		log:   log.Named("scanner").With(zap.String("target", target.Name)), source: src, cfg: cfg, schedule: plan,
		history: opts.History, factStore: opts.Facts, found: opts.Found, clock: opts.Clock,
		target: target, table: newTable(target), throttle: source.NewThrottle(opts.Paused),
		runIDs: map[string]bool{}, saidPace: map[string]pace.Reason{}, requested: make(chan struct{}, 1),
		known: map[lossKey]locksteward.Loss{}, facts: newFacts(),
		state: locksteward.TargetState{Target: target, Reason: "not contacted yet; wait for the first sweep"},
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.table.direct, s.table.tolerance = s.refresh, src.Traits().ExpiryTolerance.Milliseconds()
	src.Bind(host{s})
	s.SetClasses(classes)
	return s, nil
}

// SetClasses replaces the classes, from the next sweep on. What is known of the
// locks stays.
func (s *Scanner) SetClasses(classes *class.Set) { s.source.SetClasses(classes) }

// Table returns the live table of the target's locks, the same for the life of
// the scanner.
func (s *Scanner) Table() *Table { return s.table }

// State returns the target's health as of the last contact.
func (s *Scanner) State() locksteward.TargetState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Nodes = append([]locksteward.NodeState(nil), state.Nodes...)
	state.Paused = s.Paused()
	return state
}

// Stats returns the counters.
func (s *Scanner) Stats() Stats {
	s.mu.Lock()
	stats := s.stats
	s.mu.Unlock()
	stats.Keys = s.scanned.Load()
	stats.Bounds = s.cfg.Pace
	stats.Throttled, stats.Stats = s.throttle.Waited(), s.source.Stats()
	return stats
}

// Pause makes sweeps and the watch ask nothing of the target any more, also one
// that is under way, until [Scanner.Resume] or p.Until, if that is set. What a
// person or a release reads directly is not held. A second pause replaces the
// first one. What has been concluded stays.
func (s *Scanner) Pause(p locksteward.Pause) { s.throttle.Pause(p) }

// Resume ends a pause and reports whether there was one.
func (s *Scanner) Resume() bool { return s.throttle.Resume() }

// Paused returns the current pause, nil if there is none.
func (s *Scanner) Paused() *locksteward.Pause { return s.throttle.Paused() }
