package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// What comes after a release: the end of what stands in the lock's place, and a
// look whether its old holder writes the key again. Both are known from the
// released request alone, so that a crash loses neither.

// aftermath is what is left to do after releases.
type aftermath struct {
	mu     sync.Mutex
	loaded bool
	stands map[string]time.Time // request id → when what stands there ends
	watch  map[string]watched   // request id → whose key is looked at
	told   map[string]bool      // request id → reminded of
}

type watched struct {
	request locksteward.Request
	until   time.Time
}

// aftermathLook is how far back released requests are looked at after a start.
const aftermathLook = class.MaxStand + 24*time.Hour

// standMargin is how much longer the TTL of what stands in a lock's place is than
// its time: the job that ends it must be the first, or nobody is woken.
const standMargin = time.Minute

// remember takes a request in that was carried out.
func (a *aftermath) remember(r locksteward.Request, watchFor time.Duration) {
	if r.State != locksteward.RequestReleased {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stands == nil {
		a.stands, a.watch = map[string]time.Time{}, map[string]watched{}
	}
	switch e := r.Evidence; e.Act {
	case locksteward.ActUndo:
		delete(a.watch, e.Of) // the key is meant to be there again
		delete(a.stands, e.Of)
	case locksteward.ActLift:
		delete(a.stands, e.Of)
		a.watchLocked(r, watchFor)
	default:
		if e.Stand > 0 {
			a.stands[r.ID] = r.FinishedAt.Add(e.Stand)
			return // watched from its end on
		}
		a.watchLocked(r, watchFor)
	}
}

func (a *aftermath) watchLocked(r locksteward.Request, watchFor time.Duration) {
	if watchFor > 0 {
		a.watch[r.ID] = watched{r, r.FinishedAt.Add(watchFor)}
	}
}

// recall finds what an earlier run of the agent left to do.
func (s *Service) recall(ctx context.Context) error {
	s.after.mu.Lock()
	loaded := s.after.loaded
	s.after.mu.Unlock()
	if loaded {
		return nil
	}
	list, err := s.store.ListActs(ctx, s.now().Add(-aftermathLook))
	if err != nil {
		return err
	}
	watchFor := s.settings.Load().cfg.WatchFor
	for _, r := range slices.Backward(list) { // oldest first: an undo comes after what it undoes
		if s.mine(r.Evidence.Target) {
			s.after.remember(r, watchFor)
		}
	}
	s.after.mu.Lock()
	defer s.after.mu.Unlock()
	s.after.loaded = true
	return nil
}

// Gained has what is left to be done on a target done here from now on: another replica
// worked on it before.
func (s *Service) Gained(target string) {
	s.after.mu.Lock()
	s.after.loaded = false
	s.after.mu.Unlock()
	s.auto.forget(target)
	s.log.Debug("what releases left to be done is read again", zap.String("target", target))
}

// nextStand is when the next stand ends; zero if none does.
func (a *aftermath) nextStand() (next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.stands {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// EndStands deletes what stands in the place of locks and whose time is over,
// and wakes who waits: a request of the agent's own for each, carried out at
// once. What fails is tried again. While the kill switch is on nothing ends.
func (s *Service) EndStands(ctx context.Context) error {
	if err := errors.Join(s.stops.load(ctx), s.recall(ctx)); err != nil {
		return err
	}
	if s.killed() != nil {
		return nil
	}
	var errs []error
	for _, id := range s.after.dueStands(s.now()) {
		if err := s.endStand(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("end what stands in a lock's place by request %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

func (a *aftermath) dueStands(at time.Time) (due []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, end := range a.stands {
		if !at.Before(end) {
			due = append(due, id)
		}
	}
	return due
}

func (a *aftermath) doneStand(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.stands, id)
}

func (s *Service) endStand(ctx context.Context, id string) error {
	of, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return err
	}
	if !s.mine(of.Evidence.Target) {
		s.after.doneStand(id) // the next replica ends it
		return nil
	}
	if _, err := s.executor(of.Evidence.Target); err != nil {
		return err
	}
	earlier, err := s.store.RequestsForKey(ctx, of.Evidence.Target, of.Evidence.DB, of.Evidence.Key, 100)
	if err != nil {
		return err
	}
	tries := 0
	for _, r := range earlier {
		if r.Evidence.Of != id || r.Evidence.Act != locksteward.ActLift && r.Evidence.Act != locksteward.ActUndo {
			continue
		}
		switch {
		case !r.State.Final():
			return nil // Recover carries it on
		case r.State == locksteward.RequestFailed, r.State == locksteward.RequestExpired:
			tries++
		case r.Evidence.Act == locksteward.ActLift || r.State == locksteward.RequestReleased:
			s.after.doneStand(id)
			return nil
		}
	}
	at := s.now().UTC().Truncate(time.Microsecond)
	if at.After(of.FinishedAt.Add(of.Evidence.Stand + standMargin + class.MaxStand)) {
		s.after.doneStand(id) // its own TTL ended it long ago
		return nil
	}
	next := fmt.Sprintf("%s-end%d", id, tries+1)
	s.enter(next)
	defer s.leave(next)
	r := followUp(of, next, locksteward.ActLift, AgentName, "the time of request "+id+" is over", at)
	err = s.openDecided(ctx, r, change{
		entries: []locksteward.Entry{entry(at, AgentName, ActionLift, r, r.Reason, created(r))},
	})
	if err != nil {
		return err
	}
	r, err = s.execute(ctx, r.ID)
	if err == nil && r.State == locksteward.RequestFailed {
		return errors.New(r.Outcome)
	}
	return err
}

// WatchReleased looks whether the keys that were released lately were written
// again by their old holders, and reports that once.
func (s *Service) WatchReleased(ctx context.Context) error {
	if err := s.recall(ctx); err != nil {
		return err
	}
	var errs []error
	for _, w := range s.after.watching() {
		if !s.now().Before(w.until) || !s.mine(w.request.Evidence.Target) {
			s.after.unwatch(w.request.ID)
			continue
		}
		if err := s.lookAgain(ctx, w); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *aftermath) watching() (list []watched) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watch {
		list = append(list, w)
	}
	return list
}

func (a *aftermath) unwatch(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watch, id)
}

func (s *Service) lookAgain(ctx context.Context, w watched) error {
	e := w.request.Evidence
	lock, _, err := s.locks.ReadLock(ctx, e.Target, e.Key)
	switch {
	case errors.Is(err, locksteward.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look at %q after its release: %w", locksteward.DisplayKey(e.Key), err)
	}
	if lock.TokenDigest != e.TokenDigest {
		s.after.unwatch(w.request.ID)
		return nil // the next holder has it
	}
	said := "The old holder wrote the lock again after its release: its library re-creates a key that is missing. Stop that process, then request again."
	if e.Identity != locksteward.IdentityStrong {
		said = "The same owner has the lock again after its release: it took it anew, or its library re-creates a key that is missing. If nobody works under it, stop that process, then request again."
	}
	at := s.now().UTC()
	s.log.Warn("a released lock is back", append(requestFields(w.request), zap.String("what", said))...)
	_, err = s.update(ctx, w.request.ID, func(r *locksteward.Request) (change, error) {
		line := entry(at, AgentName, ActionResurrected, *r, "", detail{Sentence: said})
		line.Outcome = OutcomeResurrected
		return change{
			entries: []locksteward.Entry{line},
			events:  []Event{eventOf(EventResurrected, at, AgentName, *r, said)},
		}, nil
	})
	if err == nil {
		s.after.unwatch(w.request.ID) // not before it is written: people must hear of it
	}
	return err
}
