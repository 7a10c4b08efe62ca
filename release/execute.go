package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// errTooSlow is the cause when an act takes longer than it may.
var errTooSlow = errors.New("the act took too long")

// waitingSentence is the outcome shown while nobody knows it.
const waitingSentence = "Sent, but the server did not answer. The agent keeps asking what happened; nothing is sent again."

// execute carries out an approved request: intent first, then the act, then the
// outcome. It does not end with ctx: what was approved is finished and written
// down also when the person who approved it hung up.
func (s *Service) execute(ctx context.Context, id string) (locksteward.Request, error) {
	ctx = context.WithoutCancel(ctx)
	// An admin may have paused all releases at another replica.
	if err := s.pauses.read(ctx); err != nil {
		return locksteward.Request{}, err
	}
	r, err := s.update(ctx, id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		at := s.now().UTC().Truncate(time.Microsecond)
		if due(*r, at) {
			return s.expire(r, at)
		}
		if err := s.pauses.refuseAll(s.now()); err != nil && r.Evidence.Act != locksteward.ActUndo {
			return nil, err
		}
		if err := advance(r, locksteward.RequestExecuting); err != nil {
			return nil, err
		}
		e := entry(at, AgentName, ActionExecute, *r, "", created(*r))
		e.Outcome = OutcomeIntent
		return []locksteward.Entry{e}, nil
	})
	if err != nil {
		return locksteward.Request{}, err
	}
	if r.State != locksteward.RequestExecuting {
		s.final(r)
		return r, nil
	}
	if !intact(r) {
		return s.finish(ctx, id, source.Failed("the evidence in the store is not what was approved; look at the audit trail"))
	}
	releaser, err := s.releaser(r.Evidence.Target)
	if err != nil {
		// Nothing was sent: this is certain.
		return s.finish(ctx, id, source.Failed(err.Error()))
	}
	act, cancel := context.WithTimeoutCause(ctx, s.settings.Load().cfg.ExecuteTimeout, errTooSlow)
	defer cancel()
	s.followUps.place(r, s.now()) // before anybody can see it
	outcome, err := releaser.Release(act, r)
	if err != nil {
		s.log.Error("outcome of a release is not known yet", append(requestFields(r), zap.Error(err))...)
		return s.update(ctx, id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
			if !r.State.Final() {
				r.Outcome = waitingSentence
			}
			return nil, nil
		})
	}
	return s.finish(ctx, id, outcome)
}

// finish writes down the outcome of an execution. A request that is final
// already stays as it is.
func (s *Service) finish(ctx context.Context, id string, outcome source.Outcome) (locksteward.Request, error) {
	changed := false
	r, err := s.update(ctx, id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		if changed = !r.State.Final(); !changed {
			return nil, nil
		}
		if err := advance(r, outcome.State); err != nil {
			return nil, err
		}
		r.FinishedAt = s.now().UTC().Truncate(time.Microsecond)
		said := OutcomeMessage(r.Evidence, outcome)
		r.Outcome, r.WaitersWoken = english(said), outcome.WaitersWoken
		kind := locksteward.EventFinal
		if r.State == locksteward.RequestUnknown {
			kind = locksteward.EventUnknown
		}
		e := entry(r.FinishedAt, AgentName, ActionExecute, *r, "", detail{
			Sentence: r.Outcome, ConfirmedBy: outcome.ConfirmedBy, Differences: outcome.Differences, WaitersWoken: r.WaitersWoken,
		})
		return []locksteward.Entry{notify(e, kind, *r, said)}, nil
	})
	if err != nil {
		return locksteward.Request{}, fmt.Errorf("request %s was carried out (%s) but that could not be written down; the agent does so as soon as its store works: %w",
			id, outcome.State, err)
	}
	if changed {
		s.followUps.remember(r, s.settings.Load().cfg.WatchFor)
		s.final(r)
	}
	return r, nil
}
