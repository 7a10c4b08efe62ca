package scanner

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/pace"
)

// Waits of a server that runs a script for long.
const (
	busyFirst = 100 * time.Millisecond
	busyMost  = time.Second
	busyLimit = 30 * time.Second
)

// Scanner sweeps one target. See [New].
type Scanner struct {
	log      *zap.Logger
	conn     *connect.Conn
	digest   locksteward.DigestKey
	cfg      Config
	prefixes []string
	schedule schedule
	history  HistoryStore
	// factStore keeps facts; nil for none.
	factStore FactStore
	// found is Options.Found.
	found func(context.Context, locksteward.Update)
	// placeholder is Options.Placeholder.
	placeholder func(key, requestID string) bool
	classes     atomic.Pointer[class.Set]
	seed        maphash.Seed
	clock       func() time.Time

	target   locksteward.Target
	table    *Table
	throttle *throttle
	hosts    *pace.Hosts
	caps     *caps

	// sweeping is held by the one sweep that runs.
	sweeping sync.Mutex
	// order is held from the moment that something is put into the table until it
	// has been handed on, so that sweeps and the watch tell in the order of what
	// they saw. See [Scanner.Yield].
	order fairMutex
	watch *watcher
	// hurried holds one token when the next sweep shall not wait for its date.
	requested chan struct{}
	servers   map[string]*pace.Server // by address; mu guards it
	lastSeen  map[string]int          // candidates of the last pass, by address
	turn      uint64                  // sweeps begun
	runIDs    map[string]bool         // server processes of the last sweep
	saidPace  map[string]pace.Reason  // of servers that the log names, by address; of the goroutine of Run
	// known are losses of which more was known once than the server tells now.
	known map[lossKey]locksteward.Loss
	facts *facts

	scanned atomic.Int64 // Stats.Keys
	tracker sweepTracker
	stall   stall

	mu       sync.Mutex
	saidLate bool // that the next sweep begins later than scheduled
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
	// Paused is told when a pause begins and when it ends. It must return soon
	// and not call the scanner.
	Paused func(bool)
	// Hosts are the machines whose servers share an allowance, with other scanners; nil for the target's alone.
	Hosts *pace.Hosts
	// Facts keeps what is known of servers and processes; nil keeps none.
	Facts FactStore
	// Placeholder says whether the release request of that id is known to have put a
	// placeholder in a lock's place, so that the key is no lock. Nil knows none: then
	// each placeholder is a lock, shown as unverified. It is called by many goroutines
	// and must return soon.
	Placeholder func(key, requestID string) bool
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
	Keys           int64 // returned by SCAN, those of a sweep under way included
	// Throttled is the time waited by reason, summed over masters; every reason
	// is present.
	Throttled map[Reason]time.Duration
	// Bounds are the configured bounds of the pace.
	Bounds pace.Config
	// Pace is how fast each server may be read, as of its last sweep, by address; empty without a limit.
	Pace map[string]pace.State
	// Degraded says in sentences what the last sweep had to do without, sorted.
	Degraded []string
	// Refused are the commands that it had to do without, as an ACL names them,
	// sorted: a closed set.
	Refused []string
	// Forbidden is how many reads of single keys the ACL refused in the last
	// sweep.
	Forbidden int64
	// Long is how many names and values of more than 1 MiB were read past in the last
	// sweep.
	Long int64
}

// New returns a scanner of target over conn, which stays the caller's. It does
// no I/O. target.Mode is what the configuration says; [Scanner.State] tells what
// was found.
func New(log *zap.Logger, target locksteward.Target, conn *connect.Conn, classes *class.Set, digest locksteward.DigestKey, cfg Config, opts Options) (*Scanner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	plan, err := newSchedule(cfg)
	if err != nil {
		return nil, err
	}
	target.DB = conn.DB()
	s := &Scanner{
		log:      log.Named("scanner").With(zap.String("target", target.Name)),
		conn:     conn,
		digest:   digest,
		cfg:      cfg,
		prefixes: cfg.prefixes(),
		schedule: plan,
		history:  opts.History,

		found:       opts.Found,
		placeholder: opts.Placeholder,
		seed:        maphash.MakeSeed(),
		target:      target,
		table:       newTable(target),
		throttle:    newThrottle(),
		hosts:       opts.Hosts,
		caps:        newCaps(),
		servers:     map[string]*pace.Server{},
		saidPace:    map[string]pace.Reason{},
		runIDs:      map[string]bool{},
		requested:   make(chan struct{}, 1),
		lastSeen:    map[string]int{},
		known:       map[lossKey]locksteward.Loss{},
		facts:       newFacts(), factStore: opts.Facts,
		state: locksteward.TargetState{Target: target, Reason: "not contacted yet; wait for the first sweep"},
	}
	if s.clock = opts.Clock; s.clock == nil {
		s.clock = time.Now
	}
	s.table.direct = s.refresh
	if s.hosts == nil {
		s.hosts = new(pace.Hosts)
	}
	s.throttle.paused = opts.Paused
	s.watch = newWatcher(s)
	s.SetClasses(classes)
	return s, nil
}

// SetClasses replaces the classes, from the next sweep on. What is known of the
// locks stays.
func (s *Scanner) SetClasses(classes *class.Set) {
	s.classes.Store(classes)
	s.watch.setClasses(classes)
}

// Table returns the live table of the target's locks, the same for the life of
// the scanner.
func (s *Scanner) Table() *Table { return s.table }

// State returns what the last contact told of the target's health.
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
	defer s.mu.Unlock()
	stats := s.stats
	stats.Keys = s.scanned.Load()
	stats.Bounds = s.cfg.Pace
	stats.Throttled, stats.Pace = s.throttle.throttled(), map[string]pace.State{}
	if !s.cfg.NoThrottle {
		for addr, server := range s.servers {
			stats.Pace[addr] = server.Latest(time.Now())
		}
	}
	stats.Degraded, stats.Refused, stats.Forbidden, stats.Long = s.caps.notes()
	return stats
}

// paced calls f when the pace of a server allows, and again while it is busy with
// a script. f books what it took.
func (s *Scanner) paced(ctx context.Context, server *pace.Server, f func() error) error {
	wait, waited := busyFirst, time.Duration(0)
	for {
		if err := s.allowed(ctx, server); err != nil {
			return err
		}
		s.stall.progress()
		err := f()
		s.stall.progress()
		if !isBusy(err) || waited >= busyLimit {
			return err
		}
		if pauseErr := s.throttle.pause(ctx, ReasonBusy, wait); pauseErr != nil {
			return errors.Join(pauseErr, err)
		}
		waited += wait
		wait = min(2*wait, busyMost)
	}
}

// allowed returns when a server may be asked something, or with ctx's error.
func (s *Scanner) allowed(ctx context.Context, server *pace.Server) error {
	if s.cfg.NoThrottle {
		return s.throttle.pass(ctx)
	}
	return s.throttle.wait(ctx, server)
}

// book books a call to the server at addr that no sweep made and that waited for no pace.
func (s *Scanner) book(addr string, took time.Duration) {
	s.server(addr).Spend(time.Now(), took)
}

func isBusy(err error) bool { return redis.HasErrorPrefix(err, "BUSY ") }

// reasonOf says why a pass or a sweep failed, fit for a screen.
func reasonOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errReplica):
		return "the server is a replica; point the target at the master"
	case errors.Is(err, errLoading):
		return "the server is loading its data; wait until it is done"
	case errors.Is(err, errTimeout):
		return "no server answered the sweep within its timeout; check the server and the network, or raise timeout"
	}
	if errors.Is(err, errEndless) {
		return err.Error() + "; look what answers there: Redis does not"
	}
	for _, own := range []error{errRestarted, errDemoted, errMoved, errTopology, errResynced} {
		if errors.Is(err, own) {
			return own.Error() + "; the next sweep repeats it"
		}
	}
	return connect.Explain(err)
}
