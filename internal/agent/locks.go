package agent

import (
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/lockview"
	"github.com/locksteward/locksteward/internal/targets"
)

// ListLocks returns a page of the locks of all targets, as last read.
func (a *Agent) ListLocks(f console.LockFilter) (console.LockPage, error) {
	own, err := a.ownLocks(f)
	if err != nil || a.remote == nil {
		return own.Page, err
	}
	return lockview.Join(append([]lockview.Page{own}, a.remoteLocks(f)...), f.Limit), nil
}

// ownLocks returns the page of the targets that this replica works on.
func (a *Agent) ownLocks(f console.LockFilter) (lockview.Page, error) {
	return lockview.List(a.viewOf(f.Target), a.engine, f)
}

// Graph returns who waits for whom on one target, or on all if it is "".
func (a *Agent) Graph(target string) (api.Graph, error) {
	if target != "" && !a.targets.Configured(target) {
		return api.Graph{}, targets.NoTarget(target)
	}
	own := a.ownGraph(target)
	if a.remote == nil {
		return own, nil
	}
	return lockview.MergeWaits(own, a.remoteGraphs(target)), nil
}

// ownGraph returns the graph of the targets that this replica works on.
func (a *Agent) ownGraph(target string) api.Graph {
	return lockview.Waits(a.viewOf(target), a.engine, target)
}

// viewOf returns one target that this replica works on, or all if name is "".
func (a *Agent) viewOf(name string) []lockview.Target {
	var out []lockview.Target
	for _, w := range a.targets.Named(name) {
		out = append(out, lockview.Target{Target: w.Target(), Table: w.Table(), Now: w.ServerTime})
	}
	return out
}
