package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/storehealth"
)

// ready returns what /-/ready answers. A replica that is not ready gets no requests, so it is unready only if another one
// may do better: a problem with a target is the same at every replica, and people need the pages.
func (a *Agent) ready() exporter.Readiness {
	now := time.Now()
	waits, notes := a.unrecalled(), append(a.firstSweeps(now), a.downTargets()...)
	if a.member != nil {
		var others []string
		waits, others = a.readyAmongReplicas(now, waits)
		notes = append(notes, others...)
	}
	if err := a.sources.Unread(); err != nil {
		waits = append(waits, err)
	}
	notes = append(notes, storehealth.Notes(a.store.Health())...)
	if len(waits) == 0 {
		a.wasReady.Store(true)
	}
	return exporter.Readiness{Waits: errors.Join(waits...), Notes: notes}
}

// unrecalled returns the targets here of which the findings of the last run are not shown yet.
func (a *Agent) unrecalled() []error {
	var out []error
	for _, w := range a.targets.Named("") {
		if !w.Recalled() {
			out = append(out, fmt.Errorf("target %q: what the store knows of it is being read", w.Target().Name))
		}
	}
	return out
}

// firstSweeps returns the first sweeps here that have not ended, with their progress. They do not make the agent unready: a
// large target takes minutes, its findings of the last run are shown meanwhile, and pages name what is missing.
func (a *Agent) firstSweeps(now time.Time) []string {
	var out []string
	for _, w := range a.targets.Named("") {
		if a.exporter.Ready(w.Target().Name) != nil {
			out = append(out, fmt.Sprintf("target %q: %s", w.Target().Name, w.View().FirstSweep(now)))
		}
	}
	return out
}

// maxDownNamed is how many targets downTargets names.
const maxDownNamed = 10

// downTargets returns one note about the targets here that were tried and do not answer, none while all do. They do not make
// the agent unready.
func (a *Agent) downTargets() []string {
	all := a.targets.Named("")
	var down []string
	for _, w := range all {
		if !w.Up() && a.exporter.Ready(w.Target().Name) == nil {
			down = append(down, w.Target().Name+": "+w.View().Reason)
		}
	}
	if len(down) == 0 {
		return nil
	}
	are := "are"
	if len(down) == 1 {
		are = "is"
	}
	named := strings.Join(down[:min(len(down), maxDownNamed)], "; ")
	if more := len(down) - maxDownNamed; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return []string{fmt.Sprintf("%d of %d targets %s down: %s", len(down), len(all), are, named)}
}

// readyAmongReplicas is ready for one of several replicas. Targets that it acquires later do not make it unready: others
// died, and it may be the last one that is ready.
func (a *Agent) readyAmongReplicas(now time.Time, unrecalled []error) (waits []error, notes []string) {
	if since := a.member.NoAnswerFor(now); since > 0 {
		waits = append(waits, fmt.Errorf("the database has not answered for %s: other replicas may own the targets of this one by now", since.Round(100*time.Millisecond)))
	}
	if !a.member.Joined() {
		return append(waits, errors.New("this replica has not joined the cluster yet: the database has not answered")), nil
	}
	begun := a.wasReady.Load()
	for _, err := range unrecalled {
		if begun {
			notes = append(notes, err.Error())
		} else {
			waits = append(waits, err)
		}
	}
	for _, t := range a.targets.Now().Config.Targets {
		switch _, self, owned := a.member.Owner(t.Name); {
		case owned:
		case self && !begun:
			waits = append(waits, fmt.Errorf("target %q: this replica starts to work on it", t.Name))
		case self:
			notes = append(notes, fmt.Sprintf("target %q: this replica starts or ends to work on it", t.Name))
		default:
			notes = append(notes, fmt.Sprintf("target %q: no replica works on it at this moment", t.Name))
		}
	}
	return waits, notes
}
