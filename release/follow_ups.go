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

// What comes after a release: the end of the placeholder, and a
// look whether its old holder writes the key again. Both are known from the
// released request alone, so that a crash loses neither.

// followUps is what is left to do after releases.
type followUps struct {
	mu              sync.Mutex
	loaded          bool
	placeholderEnds map[string]time.Time // request id → end of its placeholder
	placed          map[string]placeholder
	watch           map[string]watched // request id → whose key is looked at
	reminded        map[string]bool    // by request id
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
	s.followUps.mu.Lock()
	defer s.followUps.mu.Unlock()
	p, ok := s.followUps.placed[requestID]
	return ok && p.target == target && p.db == db && p.key == key && s.now().Before(p.until)
}

// place takes in that a request is carried out at that time which leaves a placeholder.
func (a *followUps) place(r locksteward.Request, at time.Time) {
	e := r.Evidence
	if e.Placeholder <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.placed == nil {
		a.placed = map[string]placeholder{}
	}
	maps.DeleteFunc(a.placed, func(_ string, p placeholder) bool { return p.until.Before(at) })
	// A renewer that does not compare may prolong it.
	a.placed[r.ID] = placeholder{e.Target, e.DB, e.Key, at.Add(e.Placeholder + source.PlaceholderMargin + class.MaxPlaceholder)}
}

// displaced takes in that a placeholder was removed. What was read just before is still
// under way for a moment. The caller holds a.mu.
func (a *followUps) displaced(requestID string, at time.Time) {
	if p, ok := a.placed[requestID]; ok && at.Add(source.PlaceholderMargin).Before(p.until) {
		p.until = at.Add(source.PlaceholderMargin)
		a.placed[requestID] = p
	}
}

// followUpsPeriod is how far back released requests are looked at after a start.
const followUpsPeriod = class.MaxPlaceholder + 24*time.Hour

// remember takes a request in that was carried out.
func (a *followUps) remember(r locksteward.Request, watchFor time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.State != locksteward.RequestReleased {
		if r.State != locksteward.RequestUnknown && r.State != locksteward.RequestExecuting {
			delete(a.placed, r.ID)
		}
		return
	}
	if a.placeholderEnds == nil {
		a.placeholderEnds, a.watch = map[string]time.Time{}, map[string]watched{}
	}
	switch e := r.Evidence; e.Act {
	case locksteward.ActUndo:
		delete(a.watch, e.Of) // the key is meant to be there again
		delete(a.placeholderEnds, e.Of)
		a.displaced(e.Of, r.FinishedAt)
	case locksteward.ActLift:
		delete(a.placeholderEnds, e.Of)
		a.displaced(e.Of, r.FinishedAt)
		a.watchLocked(r, watchFor)
	default:
		if e.Placeholder > 0 {
			a.placeholderEnds[r.ID] = r.FinishedAt.Add(e.Placeholder)
			return // watched from its end on
		}
		a.watchLocked(r, watchFor)
	}
}

func (a *followUps) watchLocked(r locksteward.Request, watchFor time.Duration) {
	if watchFor > 0 {
		a.watch[r.ID] = watched{r, r.FinishedAt.Add(watchFor)}
	}
}

// Recall finds what an earlier run of the agent, or another replica, left to do, and
// which placeholders it put in the place of locks.
func (s *Service) Recall(ctx context.Context) error {
	s.followUps.mu.Lock()
	loaded := s.followUps.loaded
	s.followUps.mu.Unlock()
	if loaded {
		return nil
	}
	list, err := s.store.ListActs(ctx, s.now().Add(-followUpsPeriod))
	if err != nil {
		return err
	}
	watchFor := s.settings.Load().cfg.WatchFor
	for _, r := range slices.Backward(list) { // oldest first: an undo comes after what it undoes
		s.followUps.place(r, cmp.Or(r.FinishedAt, r.CreatedAt))
		if s.mine(r.Evidence.Target) {
			s.followUps.remember(r, watchFor)
		}
	}
	s.followUps.mu.Lock()
	defer s.followUps.mu.Unlock()
	s.followUps.loaded = true
	return nil
}

// Gained has what is left to be done on a target done here from now on: another replica
// worked on it before.
func (s *Service) Gained(target string) {
	s.followUps.mu.Lock()
	s.followUps.loaded = false
	s.followUps.mu.Unlock()
	s.auto.forget(target)
	s.log.Debug("what releases left to be done is read again", zap.String("target", target))
}

// nextPlaceholderEnd is when the next placeholder ends; zero if none does.
func (a *followUps) nextPlaceholderEnd() (next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.placeholderEnds {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// EndPlaceholders deletes placeholders whose time is over,
// and wakes who waits: a request of the agent's own for each, carried out at
// once. What fails is tried again. While all releases are paused nothing ends.
func (s *Service) EndPlaceholders(ctx context.Context) error {
	if err := errors.Join(s.pauses.load(ctx), s.Recall(ctx)); err != nil {
		return err
	}
	if s.refusePaused() != nil {
		return nil
	}
	var errs []error
	for _, id := range s.followUps.duePlaceholders(s.now()) {
		if err := s.endStand(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("end the placeholder of request %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

func (a *followUps) duePlaceholders(at time.Time) (due []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, end := range a.placeholderEnds {
		if !at.Before(end) {
			due = append(due, id)
		}
	}
	return due
}

func (a *followUps) donePlaceholder(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.placeholderEnds, id)
}

func (s *Service) endStand(ctx context.Context, id string) error {
	of, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return err
	}
	if !s.mine(of.Evidence.Target) {
		s.followUps.donePlaceholder(id) // the next replica ends it
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
			s.followUps.donePlaceholder(id)
			return nil
		}
	}
	at := s.now().UTC().Truncate(time.Microsecond)
	if at.After(of.FinishedAt.Add(of.Evidence.Placeholder + source.PlaceholderMargin + class.MaxPlaceholder)) {
		s.followUps.donePlaceholder(id) // its own TTL ended it long ago
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
	for _, w := range s.followUps.watching() {
		if !s.now().Before(w.until) || !s.mine(w.request.Evidence.Target) {
			s.followUps.unwatch(w.request.ID)
			continue
		}
		if err := s.lookAgain(ctx, w); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *followUps) watching() (list []watched) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watch {
		list = append(list, w)
	}
	return list
}

func (a *followUps) unwatch(id string) {
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
		s.followUps.unwatch(w.request.ID)
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
		s.followUps.unwatch(w.request.ID) // not before it is written: people must hear of it
	}
	return err
}
