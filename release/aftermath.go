package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// What comes after a release: the end of what stands in the lock's place, and a
// look whether its old holder writes the key again. Both are known from the
// released request alone, so that a crash loses neither.

// aftermath is what is left to do after releases.
type aftermath struct {
	mu     sync.Mutex
	loaded bool
	stands map[string]time.Time // request id → when what stands there ends
	placed map[string]placeholder
	watch  map[string]watched // request id → whose key is looked at
	told   map[string]bool    // request id → reminded of
}

type watched struct {
	request locksteward.Request
	until   time.Time
}

// placeholder is what a request puts, or may have put, in the place of a lock.
type placeholder struct {
	target string
	db     int
	key    string
	until  time.Time
}

// Placeholder says whether a request put what names it in the place of that lock, or
// may have: the key holds no lock then.
func (s *Service) Placeholder(target string, db int, key, requestID string) bool {
	s.after.mu.Lock()
	defer s.after.mu.Unlock()
	p, ok := s.after.placed[requestID]
	return ok && p.target == target && p.db == db && p.key == key && s.now().Before(p.until)
}

// place takes in that a request is carried out at that time which leaves a placeholder.
func (a *aftermath) place(r locksteward.Request, at time.Time) {
	e := r.Evidence
	if e.Stand <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.placed == nil {
		a.placed = map[string]placeholder{}
	}
	maps.DeleteFunc(a.placed, func(_ string, p placeholder) bool { return p.until.Before(at) })
	// A renewer that does not compare may prolong it.
	a.placed[r.ID] = placeholder{e.Target, e.DB, e.Key, at.Add(e.Stand + source.PlaceholderMargin + class.MaxStand)}
}

// displaced takes in that a placeholder was removed. What was read just before is still
// under way for a moment. The caller holds a.mu.
func (a *aftermath) displaced(requestID string, at time.Time) {
	if p, ok := a.placed[requestID]; ok && at.Add(source.PlaceholderMargin).Before(p.until) {
		p.until = at.Add(source.PlaceholderMargin)
		a.placed[requestID] = p
	}
}

// aftermathLook is how far back released requests are looked at after a start.
const aftermathLook = class.MaxStand + 24*time.Hour

// remember takes a request in that was carried out.
func (a *aftermath) remember(r locksteward.Request, watchFor time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.State != locksteward.RequestReleased {
		if r.State != locksteward.RequestUnknown && r.State != locksteward.RequestExecuting {
			delete(a.placed, r.ID)
		}
		return
	}
	if a.stands == nil {
		a.stands, a.watch = map[string]time.Time{}, map[string]watched{}
	}
	switch e := r.Evidence; e.Act {
	case locksteward.ActUndo:
		delete(a.watch, e.Of) // the key is meant to be there again
		delete(a.stands, e.Of)
		a.displaced(e.Of, r.FinishedAt)
	case locksteward.ActLift:
		delete(a.stands, e.Of)
		a.displaced(e.Of, r.FinishedAt)
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

// Recall finds what an earlier run of the agent, or another replica, left to do, and
// which placeholders it put in the place of locks.
func (s *Service) Recall(ctx context.Context) error {
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
		s.after.place(r, cmp.Or(r.FinishedAt, r.CreatedAt))
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
// once. What fails is tried again. While all releases are paused nothing ends.
func (s *Service) EndStands(ctx context.Context) error {
	if err := errors.Join(s.pauses.load(ctx), s.Recall(ctx)); err != nil {
		return err
	}
	if s.refusePaused() != nil {
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
	if _, err := s.releaser(of.Evidence.Target); err != nil {
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
	if at.After(of.FinishedAt.Add(of.Evidence.Stand + source.PlaceholderMargin + class.MaxStand)) {
		s.after.doneStand(id) // its own TTL ended it long ago
		return nil
	}
	next := fmt.Sprintf("%s-end%d", id, tries+1)
	s.enter(next)
	defer s.leave(next)
	r := followUp(of, next, locksteward.ActLift, AgentName, "the time of request "+id+" is over", at)
	err = s.openDecided(ctx, r, entry(at, AgentName, ActionLift, r, r.Reason, created(r)))
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
	if err := s.Recall(ctx); err != nil {
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
	m := locksteward.NewMessage("release.back")
	if e.Identity != locksteward.IdentityStrong {
		m = locksteward.NewMessage("release.back-weak")
	}
	at := s.now().UTC()
	s.log.Warn("a released lock is back", append(requestFields(w.request), zap.String("what", english(m)))...)
	_, err = s.update(ctx, w.request.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		e := entry(at, AgentName, ActionResurrected, *r, "", detail{Sentence: english(m)})
		e.Outcome = OutcomeResurrected
		return []locksteward.Entry{notify(e, locksteward.EventResurrected, *r, m)}, nil
	})
	if err == nil {
		s.after.unwatch(w.request.ID) // not before it is written: people must hear of it
	}
	return err
}
