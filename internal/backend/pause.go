package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Pause keeps sweeps and watches of one target, or of all, from asking anything.
// It lasts over reloads, not over a restart or a take-over by another replica.
func (b *Backend) Pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error) {
	if b.deps.Member == nil {
		return b.pause(ctx, target, p)
	}
	return b.onEach(target, func(name string) ([]string, error) {
		return forward(ctx, b, callPause, pauseInput{Target: name, Pause: p})
	})
}

// onEach does something to one target or to all, and goes on after an error.
func (b *Backend) onEach(target string, do func(name string) ([]string, error)) ([]string, error) {
	if target != "" {
		return do(target)
	}
	cfg := b.deps.Targets.Now().Config.Targets
	names := []string{}
	var errs []error
	for _, t := range cfg {
		did, err := do(t.Name)
		names = append(names, did...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return names, api.NewProblem(api.CodeUnavailable, errors.Join(errs...).Error())
	}
	return names, nil
}

func (b *Backend) pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error) {
	list, err := b.deps.Targets.OneOrAll(target)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, w := range list {
		w.Pause(p)
		names = append(names, w.Target().Name)
	}
	until := "until somebody resumes"
	if !p.Until.IsZero() {
		until = "until " + p.Until.UTC().Format("2006-01-02 15:04:05Z")
	}
	b.audit(ctx, p.By, "target.pause", fmt.Sprintf("%s, %s", strings.Join(names, ", "), until))
	return names, nil
}

// Resume ends what Pause began.
func (b *Backend) Resume(ctx context.Context, target, by string) ([]string, error) {
	if b.deps.Member == nil {
		return b.resume(ctx, target, by)
	}
	return b.onEach(target, func(name string) ([]string, error) {
		return forward(ctx, b, callResume, pauseInput{Target: name, By: by})
	})
}

func (b *Backend) resume(ctx context.Context, target, by string) ([]string, error) {
	list, err := b.deps.Targets.OneOrAll(target)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, w := range list {
		if w.Resume() {
			names = append(names, w.Target().Name)
		}
	}
	if len(names) > 0 {
		b.audit(ctx, by, "target.resume", strings.Join(names, ", "))
	}
	return names, nil
}

// audit writes an entry of what a person did. It is not a condition of the act, so an error is logged.
func (b *Backend) audit(ctx context.Context, actor, action, reason string) {
	err := b.deps.Store.AppendEntries(ctx, locksteward.Entry{At: time.Now(), Actor: actor, Action: action, Reason: reason})
	if err != nil {
		b.deps.Log.Error("audit entry is not written", zap.String("action", action), zap.Error(err))
	}
}
