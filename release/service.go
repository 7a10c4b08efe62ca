package release

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/reload"
	"github.com/locksteward/locksteward/source"
)

// Store keeps requests and audit entries; package store implements it. Each
// method is one transaction, in which people are notified of the events of the
// entries. A callback may be called again.
type Store interface {
	// CreateRequest inserts req with its entries. If a request is open for the
	// same target, db and key, onOpen either makes it final and returns entries
	// about that, or returns the error that CreateRequest returns.
	CreateRequest(ctx context.Context, req locksteward.Request, entries []locksteward.Entry,
		onOpen func(open *locksteward.Request) ([]locksteward.Entry, error)) error
	// CreateRequests is CreateRequest of requests that are asked for together: all or
	// none. count comes first and may alter them by what is there: recent is CountRecent
	// in the same transaction, from which to its end no other process writes a request.
	CreateRequests(ctx context.Context, list []locksteward.Request,
		count func(recent func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error)) error,
		entries func(locksteward.Request) []locksteward.Entry,
		onOpen func(open *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error)) error
	// DecideRequest lets change alter a request and writes it with the entries that
	// change returned; an error of change comes back and nothing is written. acts is
	// ListActs in the same transaction, from which to its end no other process writes a
	// request.
	DecideRequest(ctx context.Context, id string,
		change func(r *locksteward.Request, acts func(since time.Time) ([]locksteward.Request, error)) ([]locksteward.Entry, error)) (locksteward.Request, error)
	GetRequest(ctx context.Context, id string) (locksteward.Request, error)
	// ListRequests is newest first; limit 0 is the store's default, -1 none.
	ListRequests(ctx context.Context, states []locksteward.RequestState, target string, limit int) ([]locksteward.Request, error)
	// RequestsForKey is newest first.
	RequestsForKey(ctx context.Context, target string, db int, key string, limit int) ([]locksteward.Request, error)
	// CountRecent counts the requests that are open, and those that were carried out
	// or may have been since a time, as far as counts accepts them; it stops at most.
	CountRecent(ctx context.Context, since time.Time, most int, counts func(locksteward.Request) bool) (int, error)
	// ListActs is what is approved or being carried out, and what was carried out or may
	// have been since a time, newest first.
	ListActs(ctx context.Context, since time.Time) ([]locksteward.Request, error)
	AppendEntries(ctx context.Context, entries ...locksteward.Entry) error
}

// LockReader reads one lock directly, now, and tells which rules fire on it. A
// key that is no lock, or not there, is locksteward.ErrNotFound.
type LockReader interface {
	ReadLock(ctx context.Context, target, key string) (lock locksteward.Lock, firing []string, err error)
}

// Prover is a [LockReader] that also tells how surely a lock's holder is dead,
// where the rule holder/dead fires on it.
type Prover interface {
	ProofOf(lock locksteward.Lock) locksteward.Proof
}

// Deps are the things that a [Service] works with.
type Deps struct {
	Store   Store
	Locks   LockReader
	Classes *class.Set
	// Releasers has every target; nil for one without release credentials.
	Releasers map[string]source.Releaser
	// OnFinal, if set, is called with each request that became final, after it was
	// stored and outside of any transaction: it may read the store. The call that ended
	// the request, an approver's among them, waits for it, so it must not wait for a
	// lock store. For metrics and alerts.
	OnFinal func(locksteward.Request)
	// Receivers says how many receivers of alerts are configured; nil is none.
	// Without one nobody would hear of what is never silent, so that is refused.
	Receivers func() int
	// Settings keeps the pauses that admins set, for all replicas and over restarts;
	// nil keeps it in memory.
	Settings SettingStore
	// Reminded says whether the audit trail has a reminder of a request: an earlier run
	// of the agent, or another replica, may have written it. Nil: none has.
	Reminded func(ctx context.Context, id string) (bool, error)
	// Mine says whether a target is this replica's to work on; nil: all are. What is
	// due by itself on others is theirs to do.
	Mine func(target string) bool
	// Now is the agent's clock; nil is time.Now.
	Now func() time.Time
}

// Service takes requests and decisions and carries them out. Make one with [New].
type Service struct {
	log       *zap.Logger
	store     Store
	locks     LockReader
	onFinal   func(locksteward.Request)
	mine      func(target string) bool
	receivers func() int
	reminded  func(ctx context.Context, id string) (bool, error)
	now       func() time.Time
	settings  atomic.Pointer[settings]
	pauses    *pauseState
	auto      sweeps
	followUps followUps

	mu sync.Mutex
	// busy counts who works on a request in this process, so that the loop does
	// not take an act under way for one that was left behind.
	busy map[string]int
}

// settings is what a reload of the configuration replaces, as a whole.
type settings struct {
	cfg       Config
	classes   *class.Set
	releasers map[string]source.Releaser
}

// New returns a service. It starts nothing; see [Service.Run].
func New(log *zap.Logger, cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Store == nil || deps.Locks == nil || deps.Classes == nil {
		return nil, errors.New("release: store, locks and classes are required")
	}
	s := &Service{
		log: log.Named("release"), store: deps.Store, locks: deps.Locks,
		onFinal: deps.OnFinal, mine: deps.Mine, receivers: deps.Receivers, now: deps.Now, busy: map[string]int{},
		pauses: newPauseState(deps.Settings), reminded: deps.Reminded,
	}
	if s.reminded == nil {
		s.reminded = func(context.Context, string) (bool, error) { return false, nil }
	}
	if s.receivers == nil {
		s.receivers = func() int { return 0 }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.mine == nil {
		s.mine = func(string) bool { return true }
	}
	s.settings.Store(&settings{cfg: cfg.withDefaults(), classes: deps.Classes, releasers: deps.Releasers})
	return s, nil
}

// Prepare checks another configuration; its Commit replaces configuration, classes and releasers. Requests already open
// follow the new policy; an act under way ends with the releaser it began with.
func (s *Service) Prepare(cfg Config, classes *class.Set, releasers map[string]source.Releaser) (reload.Prepared, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	next := &settings{cfg: cfg.withDefaults(), classes: classes, releasers: releasers}
	return reload.Funcs{OnCommit: func() { s.settings.Store(next) }}, nil
}

// Enabled says whether this agent can delete on a target.
func (s *Service) Enabled(target string) bool {
	now := s.settings.Load()
	return now.releasers[target] != nil && s.refusePaused() == nil
}

// Get returns a request; an unknown id is locksteward.ErrNotFound.
func (s *Service) Get(ctx context.Context, id string) (locksteward.Request, error) {
	return s.store.GetRequest(ctx, id)
}

// releaser returns the means to delete on a target, or why there are none.
func (s *Service) releaser(target string) (source.Releaser, error) {
	r, known := s.settings.Load().releasers[target]
	if !known {
		return nil, notFound("no target is named %q; see targets[].name in the configuration", target)
	}
	if r == nil {
		return nil, refused("this agent cannot delete: no release credentials configured; set release_credentials of target %q", target)
	}
	return r, nil
}

// limits returns what cannot be done with a hold. Where this agent cannot delete it
// cannot do anything, and no rule decides.
func (s *Service) limits(hold locksteward.Evidence) source.Limits {
	r, err := s.releaser(hold.Target)
	if err != nil {
		return source.Limits{Release: err, Decision: err.Error(), Placeholder: err.Error(), Undo: err.Error()}
	}
	return r.Limits(hold)
}

// enter marks a request as worked on; leave ends that.
func (s *Service) enter(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[id]++
}

// enterAlone is enter if nobody else works on the request.
func (s *Service) enterAlone(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id] > 0 {
		return false
	}
	s.busy[id]++
	return true
}

func (s *Service) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id]--; s.busy[id] <= 0 {
		delete(s.busy, id)
	}
}

// final tells who wants to know that a request is over.
func (s *Service) final(r locksteward.Request) {
	log := s.log.Info
	if r.State == locksteward.RequestUnknown || r.State == locksteward.RequestFailed {
		log = s.log.Error
	}
	log("release request is over", requestFields(r)...)
	if s.onFinal != nil {
		s.onFinal(r)
	}
}

func requestFields(r locksteward.Request) []zap.Field {
	return []zap.Field{
		zap.String("request_id", r.ID), zap.String("state", string(r.State)), zap.String("target", r.Evidence.Target),
		zap.String("key", locksteward.DisplayKey(r.Evidence.Key)), zap.String("class", r.Evidence.Class),
		zap.String("requester", r.Requester), zap.String("outcome", r.Outcome),
	}
}
