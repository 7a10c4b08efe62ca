package backend

import (
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/lockview"
	"github.com/locksteward/locksteward/internal/targets"
)

// ListLocks returns a page of the locks of all targets, as last read.
func (b *Backend) ListLocks(f console.LockFilter) (console.LockPage, error) {
	own, err := b.ownLocks(f)
	if err != nil || b.deps.Remote == nil {
		return own.Page, err
	}
	return lockview.Join(append([]lockview.Page{own}, b.remoteLocks(f)...), f.Limit), nil
}

// ownLocks returns the page of the targets that this replica works on.
func (b *Backend) ownLocks(f console.LockFilter) (lockview.Page, error) {
	return lockview.List(b.viewOf(f.Target), b.deps.Engine, f)
}

// Graph returns who waits for whom on one target, or on all if it is "".
func (b *Backend) Graph(target string) (api.Graph, error) {
	if target != "" && !b.deps.Targets.Configured(target) {
		return api.Graph{}, targets.NoTarget(target)
	}
	own := b.ownGraph(target)
	if b.deps.Remote == nil {
		return own, nil
	}
	return lockview.MergeWaits(own, b.remoteGraphs(target)), nil
}

// ownGraph returns the graph of the targets that this replica works on.
func (b *Backend) ownGraph(target string) api.Graph {
	return lockview.Waits(b.viewOf(target), b.deps.Engine, target)
}

// viewOf returns one target that this replica works on, or all if name is "".
func (b *Backend) viewOf(name string) []lockview.Target {
	var out []lockview.Target
	for _, w := range b.deps.Targets.Named(name) {
		out = append(out, lockview.Target{Target: w.Target(), Table: w.Table(), Now: w.ServerTime})
	}
	return out
}
