package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
)

// Pause keeps sweeps and watches of one target, or of all, from asking anything.
// It lasts over reloads, not over a restart or a take-over by another replica.
func (a *Agent) Pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error) {
	if a.member == nil {
		return a.pause(ctx, target, p)
	}
	return a.onEach(target, func(name string) ([]string, error) {
		return forward(ctx, a, callPause, pauseInput{Target: name, Pause: p})
	})
}

// onEach does something to one target or to all, and goes on after an error.
func (a *Agent) onEach(target string, do func(name string) ([]string, error)) ([]string, error) {
	if target != "" {
		return do(target)
	}
	cfg := a.targets.Now().Config.Targets
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

func (a *Agent) pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error) {
	list, err := a.targets.OneOrAll(target)
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
	a.auditBy(ctx, p.By, "target.pause", fmt.Sprintf("%s, %s", strings.Join(names, ", "), until))
	return names, nil
}

// Resume ends what Pause began.
func (a *Agent) Resume(ctx context.Context, target, by string) ([]string, error) {
	if a.member == nil {
		return a.resume(ctx, target, by)
	}
	return a.onEach(target, func(name string) ([]string, error) {
		return forward(ctx, a, callResume, pauseInput{Target: name, By: by})
	})
}

func (a *Agent) resume(ctx context.Context, target, by string) ([]string, error) {
	list, err := a.targets.OneOrAll(target)
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
		a.auditBy(ctx, by, "target.resume", strings.Join(names, ", "))
	}
	return names, nil
}

var _ console.Pauser = (*Agent)(nil)
