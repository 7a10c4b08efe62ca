package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// record is what a request did; a withdrawn one never runs.
type record struct {
	outcome   source.Outcome
	withdrawn bool
}

// keptHold is a released hold that can be put back until then.
type keptHold struct {
	held
	until time.Time
}

var _ source.Releaser = (*Store)(nil)

// Limits refuses a hold whose token is not known; else there are none.
func (*Store) Limits(hold locksteward.Evidence) source.Limits {
	if hold.TokenDigest == "" {
		return source.Limits{Release: fmt.Errorf("%w: the token of %q is not known", locksteward.ErrRefused, locksteward.DisplayKey(hold.Key))}
	}
	return source.Limits{}
}

// Preview compares the lock with the evidence.
func (s *Store) Preview(_ context.Context, req locksteward.Request) (source.Preview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.current(req.Evidence.Key)
	if !ok {
		return source.Preview{}, nil
	}
	now := s.evidence(req.Evidence.Key, h)
	return source.Preview{Found: true, Now: now, Differences: source.Differences(req.Evidence, now), Keys: []string{req.Evidence.Key}}, nil
}

// Release does what the request asks for, once.
func (s *Store) Release(_ context.Context, req locksteward.Request) (source.Outcome, error) {
	defer s.changed(req.Evidence.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ran := s.records[req.ID]; ran {
		r.outcome.ConfirmedBy = source.ConfirmedByRecord
		return r.outcome, nil
	}
	act := s.release
	switch req.Evidence.Act {
	case locksteward.ActUndo:
		act = s.undo
	case locksteward.ActLift:
		act = s.lift
	}
	out := act(req)
	s.records[req.ID] = record{outcome: out}
	out.ConfirmedBy = source.ConfirmedByAnswer
	return out, nil
}

// Resolve returns what the request did, or withdraws it.
func (s *Store) Resolve(_ context.Context, req locksteward.Request) (source.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ran := s.records[req.ID]; ran && !r.withdrawn {
		r.outcome.ConfirmedBy = source.ConfirmedByRecord
		return r.outcome, nil
	}
	s.records[req.ID] = record{outcome: source.Outcome{State: locksteward.RequestChanged}, withdrawn: true}
	return source.Failed("it was not carried out and is withdrawn"), nil
}

// release deletes a hold or puts a placeholder there. The caller holds s.mu.
func (s *Store) release(req locksteward.Request) source.Outcome {
	e := req.Evidence
	h, ok := s.current(e.Key)
	if !ok {
		return source.Outcome{State: locksteward.RequestAlreadyGone}
	}
	if diff := source.Differences(e, s.evidence(e.Key, h)); len(diff) > 0 {
		return source.Outcome{State: locksteward.RequestChanged, Differences: diff}
	}
	now := time.Now()
	delete(s.holds, e.Key)
	if e.Undo > 0 {
		s.kept[req.ID] = keptHold{h, now.Add(e.Undo)}
	}
	if e.Placeholder > 0 {
		s.holds[e.Key] = held{
			Hold:  Hold{Library: h.Library, Token: req.ID, Identity: locksteward.IdentityStrong, Expires: now.Add(e.Placeholder + source.PlaceholderMargin)},
			since: now, placedBy: req.ID,
		}
	}
	return source.Outcome{State: locksteward.RequestReleased}
}

// undo puts a hold back that an earlier request released. The caller holds s.mu.
func (s *Store) undo(req locksteward.Request) source.Outcome {
	e := req.Evidence
	if h, ok := s.current(e.Key); ok && h.placedBy != e.Of {
		return source.Outcome{State: locksteward.RequestChanged}
	}
	back, ok := s.kept[e.Of]
	if now := time.Now(); !ok || !now.Before(back.until) || !back.Expires.IsZero() && !now.Before(back.Expires) {
		return source.Outcome{State: locksteward.RequestAlreadyGone}
	}
	delete(s.kept, e.Of)
	s.holds[e.Key] = back.held
	return source.Outcome{State: locksteward.RequestReleased}
}

// lift removes the placeholder of an earlier request. The caller holds s.mu.
func (s *Store) lift(req locksteward.Request) source.Outcome {
	e := req.Evidence
	switch h, ok := s.current(e.Key); {
	case !ok:
		return source.Outcome{State: locksteward.RequestAlreadyGone}
	case h.placedBy != e.Of:
		return source.Outcome{State: locksteward.RequestChanged}
	}
	delete(s.holds, e.Key)
	return source.Outcome{State: locksteward.RequestReleased}
}
