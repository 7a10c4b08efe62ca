package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

const (
	// settleEvery is how often Run looks for what is due or was left open.
	settleEvery = 5 * time.Second
	// minRound is the least between two rounds.
	minRound = 100 * time.Millisecond
	// resolveFor is how long an execution may stay without a known outcome, from
	// the end of its approval. Well below the life of the record in the lock store.
	resolveFor = 24 * time.Hour
)

// Run resolves what an earlier run of the agent left open, then ends what is due
// and resolves what stays open, until ctx ends. It returns nil.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := s.settle(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			last = ""
		case err.Error() != last: // the same trouble every few seconds is one line
			last = err.Error()
			s.log.Error("settle release requests", zap.Error(err))
		}
		tick.Reset(s.untilNext())
	}
}

// settle is one round of Run.
func (s *Service) settle(ctx context.Context) error {
	err := s.pauses.read(ctx)
	_, expired := s.ExpireDue(ctx)
	return errors.Join(err, expired, s.Recover(ctx), s.EndPlaceholders(ctx), s.WatchReleased(ctx), s.Remind(ctx))
}

// untilNext is when the next round is due: at once where something that stands
// in a lock's place ends.
func (s *Service) untilNext() time.Duration {
	next := s.followUps.nextPlaceholderEnd()
	if next.IsZero() {
		return settleEvery
	}
	return min(settleEvery, max(minRound, next.Sub(s.now())))
}

// Recover finishes what a crash or a silent server left open. An approved
// request is executed while its approval lasts: the approvals signed exactly the
// evidence that the act compares. An executing one is resolved by the record that
// the act left, and never sent again; if a day later there is still no way to
// know, it becomes unknown. Requests that this process works on right now are
// left alone. The error joins what could not be finished yet.
func (s *Service) Recover(ctx context.Context) error {
	if err := s.pauses.load(ctx); err != nil {
		return err
	}
	open, err := s.store.ListRequests(ctx, []locksteward.RequestState{locksteward.RequestApproved, locksteward.RequestExecuting}, "", -1)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range open {
		if ctx.Err() != nil {
			break
		}
		if !s.mine(r.Evidence.Target) {
			continue
		}
		errs = append(errs, s.recoverOne(ctx, r.ID))
	}
	return errors.Join(errs...)
}

func (s *Service) recoverOne(ctx context.Context, id string) error {
	if !s.enterAlone(id) {
		return nil
	}
	defer s.leave(id)
	// Only now is nobody else at work on it: the list may be older.
	r, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return err
	}
	switch r.State {
	case locksteward.RequestApproved:
		return s.resume(ctx, r)
	case locksteward.RequestExecuting:
		return s.resolve(ctx, r)
	default:
		return nil
	}
}

// resume executes what was approved before the agent stopped. Where policy or
// means are missing now, or the class asks for more approvals than it did, the
// approval runs out by itself.
func (s *Service) resume(ctx context.Context, r locksteward.Request) error {
	if s.refusePaused() != nil && r.Evidence.Act != locksteward.ActUndo {
		return nil
	}
	if _, err := s.releaser(r.Evidence.Target); err != nil {
		return nil //nolint:nilerr // see above
	}
	if ok, err := s.stillApproved(ctx, r); err != nil || !ok {
		return err
	}
	_, err := s.execute(ctx, r.ID)
	return err
}

// stillApproved says whether policy would approve the request today as well.
func (s *Service) stillApproved(ctx context.Context, r locksteward.Request) (bool, error) {
	if r.Evidence.Act == locksteward.ActUndo || r.Evidence.Act == locksteward.ActLift {
		return true, nil // it frees or restores what a request did that was approved
	}
	c, err := s.policy(r.Evidence.Class)
	if err != nil {
		return false, nil //nolint:nilerr // policy says no
	}
	if r.Evidence.BreakGlass {
		return true, nil
	}
	if automatic(r) {
		// What spoke for it was seen by another process.
		if !c.Automatic() {
			return false, nil
		}
		if err := s.mayActAlone(ctx, r); errors.Is(err, locksteward.ErrRefused) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		return true, nil
	}
	yes, _ := lastWords(r)
	if slices.Contains(yes, strings.ToLower(r.Requester)) && s.selfApproval(r, c) != nil {
		return false, nil
	}
	return len(yes) >= s.needed(r, c), nil
}

func (s *Service) resolve(ctx context.Context, r locksteward.Request) error {
	releaser, err := s.releaser(r.Evidence.Target)
	if err == nil {
		var outcome source.Outcome
		ask, cancel := context.WithTimeoutCause(ctx, s.settings.Load().cfg.ExecuteTimeout, errTooSlow)
		defer cancel()
		if outcome, err = releaser.Resolve(ask, r); err == nil {
			_, err = s.finish(context.WithoutCancel(ctx), r.ID, outcome)
			return err
		}
	}
	if s.now().Before(r.ApprovedUntil.Add(resolveFor)) {
		return fmt.Errorf("resolve request %s: %w", r.ID, err)
	}
	_, err = s.finish(ctx, r.ID, source.Unknown("the server could not be asked within a day"))
	return err
}
