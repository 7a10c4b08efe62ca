package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/exporter"
)

// ready is what /-/ready answers. A replica that is not ready gets no requests, so it
// says that only of what it cannot do and another one may: what is wrong with a target
// is as wrong wherever people look, and would take the pages away from them.
func (a *Agent) ready() exporter.Readiness {
	now := time.Now()
	waits, notes := a.unrecalled(), a.firstSweeps(now)
	if a.keeper != nil {
		var others []string
		waits, others = a.readyAmongReplicas(now, waits)
		notes = append(notes, others...)
	}
	if err := a.follows.unread.Load(); err != nil {
		waits = append(waits, *err)
	}
	notes = append(notes, storeNotes(a.store.Health())...)
	if len(waits) == 0 {
		a.wasReady.Store(true)
	}
	return exporter.Readiness{Waits: errors.Join(waits...), Notes: notes}
}

// unrecalled are the targets here of which the findings of the last run are not shown
// yet.
func (a *Agent) unrecalled() []error {
	var out []error
	for _, w := range a.watchedBy("") {
		if !w.restored.Load() {
			out = append(out, fmt.Errorf("target %q: what the store knows of it is being read", w.target.Name))
		}
	}
	return out
}

// firstSweeps are the first sweeps here that have not ended, and how far they are.
// Nobody waits for them: a large target with a small budget takes minutes, its findings
// of the last run are shown meanwhile, and pages say what they may lack.
func (a *Agent) firstSweeps(now time.Time) []string {
	var out []string
	for _, w := range a.watchedBy("") {
		if a.exporter.Ready(w.target.Name) != nil {
			out = append(out, fmt.Sprintf("target %q: %s", w.target.Name, w.view().FirstSweep(now)))
		}
	}
	return out
}

// readyAmongReplicas is ready for one of several; unrecalled are its own. What it takes
// over later does not make it unready: others died, and it may be the last one that is.
func (a *Agent) readyAmongReplicas(now time.Time, unrecalled []error) (waits []error, notes []string) {
	if since := a.keeper.Silent(now); since > 0 {
		waits = append(waits, fmt.Errorf("the database has not answered for %s: other replicas may do by now what this one did", since.Round(100*time.Millisecond)))
	}
	if !a.keeper.Settled() {
		return append(waits, errors.New("this replica has not heard yet what it is to do: the database has not answered")), nil
	}
	begun := a.wasReady.Load()
	for _, err := range unrecalled {
		if begun {
			notes = append(notes, err.Error())
		} else {
			waits = append(waits, err)
		}
	}
	for _, t := range a.current().cfg.Targets {
		switch _, mine, works := a.keeper.Holder(t.Name); {
		case works:
		case mine && !begun:
			waits = append(waits, fmt.Errorf("target %q: this replica begins to work on it", t.Name))
		case mine:
			notes = append(notes, fmt.Sprintf("target %q: this replica begins to work on it, or ends", t.Name))
		default:
			notes = append(notes, fmt.Sprintf("target %q: no replica works on it at this moment", t.Name))
		}
	}
	return waits, notes
}
