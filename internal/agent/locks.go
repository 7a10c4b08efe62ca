package agent

import (
	"cmp"
	"slices"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/lockview"
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
	if target != "" && !a.configured(target) {
		return api.Graph{}, noTarget(target)
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
	for _, w := range a.watchedBy(name) {
		out = append(out, lockview.Target{Target: w.target, Table: w.scanner.Table(), Now: w.clock.Now})
	}
	return out
}

// watchedBy returns one target that this replica works on, or all by name if it is "".
func (a *Agent) watchedBy(name string) []*watched {
	var out []*watched
	for own, w := range a.current().targets {
		if name == "" || own == name {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *watched) int { return cmp.Compare(a.target.Name, b.target.Name) })
	return out
}
