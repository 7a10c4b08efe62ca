package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/console"
)

// Pause keeps sweeps and watches of one target, or of all, from asking anything.
// It lasts over reloads, not over a restart.
func (a *Agent) Pause(ctx context.Context, target string, p locksteward.Pause) ([]string, error) {
	list, err := a.oneOrAll(target)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, w := range list {
		w.scanner.Pause(p)
		names = append(names, w.target.Name)
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
	list, err := a.oneOrAll(target)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, w := range list {
		if w.scanner.Resume() {
			names = append(names, w.target.Name)
		}
	}
	if len(names) > 0 {
		a.auditBy(ctx, by, "target.resume", strings.Join(names, ", "))
	}
	return names, nil
}

// oneOrAll returns the target of that name, or all in the order of the
// configuration.
func (a *Agent) oneOrAll(target string) ([]*watched, error) {
	if target != "" {
		w, err := a.watched(target)
		if err != nil {
			return nil, err
		}
		return []*watched{w}, nil
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	var list []*watched
	for _, t := range a.cfg.Targets {
		list = append(list, a.targets[t.Name])
	}
	return list, nil
}

var _ console.Pauser = (*Agent)(nil)
