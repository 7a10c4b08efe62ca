package exporter

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/locksteward/locksteward"
)

// ObserveSweep takes in what a sweep established. A sweep without masters takes
// the target's lock gauges away; an incomplete one takes no lock away.
func (e *Exporter) ObserveSweep(sweep locksteward.Sweep) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observe(e.target(sweep.Target), sweep)
	e.publish()
}

// ObserveRecheck takes in what direct reads of some locks established. It changes the
// gauges and counters of those locks alone.
func (e *Exporter) ObserveRecheck(u locksteward.Update) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recheck(e.target(u.Target), u)
	e.publish()
}

// SetFindings takes all current findings of a target; only those that fire are
// shown, and not those that another finding inhibits: nothing is paged twice. Their
// texts are not looked at.
func (e *Exporter) SetFindings(target string, all iter.Seq[locksteward.Finding]) {
	firing := map[string]map[findingID]int{}
	for f := range all {
		if f.Status != locksteward.StatusFiring || f.InhibitedBy != "" {
			continue
		}
		of := firing[f.Class]
		if of == nil {
			of = map[findingID]int{}
			firing[f.Class] = of
		}
		of[findingID{rule: labelValue(f.Rule), severity: f.Severity.String(), risk: labelValue(f.Risk)}]++
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).findings = firing
	e.publish()
}

// SetTarget takes what is known of a target's health. Figures of its servers are
// shown while it is up.
func (e *Exporter) SetTarget(state locksteward.TargetState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(state.Target.Name).state = &state
	e.dirty = true
}

// RemoveTarget forgets a target that a reload took out of the configuration, or that
// another replica works on. If it comes back its counters go on.
func (e *Exporter) RemoveTarget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t, ok := e.targets[name]; ok {
		delete(e.targets, name)
		if forgotten := e.left.put(name, t.counters()); forgotten != "" {
			e.holds.DeletePartialMatch(prometheus.Labels{"target": labelValue(forgotten)})
		}
	}
	e.names = slices.Sorted(maps.Keys(e.targets))
	e.dropCredentials(name)
	e.publish()
}

// AddThrottled counts that sweeps of a target waited for d. Reasons must come
// from a closed set.
func (e *Exporter) AddThrottled(target, reason string, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).throttled[labelValue(reason)] += max(0, d.Seconds())
	e.dirty = true
}

// SetPace says which share of its time the least of the target's servers grants to sweeping.
func (e *Exporter) SetPace(target string, share float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).pace = share
	e.dirty = true
}

// SetPaused says whether an operator paused the target.
func (e *Exporter) SetPaused(target string, paused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).paused = paused
	e.dirty = true
}

// SetRefused takes the commands that the server refuses the agent and that sweeps do
// without. They must come from a closed set.
func (e *Exporter) SetRefused(target string, commands []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.target(target); !slices.Equal(t.refused, commands) {
		t.refused, e.dirty = slices.Clone(commands), true
	}
}

// SetReleaseEnabled says whether the agent has credentials to release locks of a
// target.
func (e *Exporter) SetReleaseEnabled(target string, enabled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).release = &enabled
	e.dirty = true
}

// SetLeader says whether this agent holds the right to work on a target: the
// target's lease, or the lock of the store's file. Other replicas leave it alone.
// A right ends at until, unless until is zero. A target of
// which nothing else was said is not there, or not any more.
func (e *Exporter) SetLeader(target string, leads bool, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.targets[target]; t != nil {
		t.leader = &right{leads, until}
		e.dirty = true
	}
}

// right is the right to work on a target, until a time if that is not zero.
type right struct {
	is    bool
	until time.Time
}

// over says that it has ended since it was said.
func (r *right) over(now time.Time) bool {
	return r != nil && r.is && !r.until.IsZero() && !now.Before(r.until)
}

// SetUnsaved says how many changes of findings the store did not take yet.
func (e *Exporter) SetUnsaved(target string, changes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).unsaved = &changes
	e.dirty = true
}

// SetRequests takes how many release requests are in each state. The states that
// somebody has to act on are shown as 0 when they are not in it.
func (e *Exporter) SetRequests(byState map[locksteward.RequestState]int) {
	requests := map[locksteward.RequestState]int{
		locksteward.RequestPending:   0,
		locksteward.RequestApproved:  0,
		locksteward.RequestExecuting: 0,
		locksteward.RequestUnknown:   0,
	}
	maps.Copy(requests, byState)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = requests
	e.dirty = true
}

// SetReplicas says how many agents share the store, this one included.
func (e *Exporter) SetReplicas(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replicas = n
	e.dirty = true
}

// ClearSingletonMetrics removes what only the replica with the singleton duties shows.
func (e *Exporter) ClearSingletonMetrics() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = nil
	for _, r := range e.receivers {
		r.backlog = nil
	}
	e.heart.beat = time.Time{}
	e.dirty = true
}

// CountRelease counts a release request that reached a final state.
func (e *Exporter) CountRelease(target, class, outcome string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.tallyOf(e.target(target), class)
	if c.releases == nil {
		c.releases = map[string]float64{}
	}
	c.releases[labelValue(outcome)]++
	e.dirty = true
}

// SetReload says whether the configuration was read without error the last time.
func (e *Exporter) SetReload(ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reload = &ok
	e.dirty = true
}

// SetConsoleURL publishes where people reach the console. Empty: nowhere, and no series.
func (e *Exporter) SetConsoleURL(url string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.consoleURL = strings.TrimSuffix(url, "/")
	e.dirty = true
}

// Ready says whether a first sweep of every given target has ended, complete or
// not, so that the metrics can be relied on. The error has one line for each
// that has not.
func (e *Exporter) Ready(targets ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, name := range targets {
		if t := e.targets[name]; t == nil || !t.sweep.attempted {
			errs = append(errs, fmt.Errorf("target %q: its first sweep has not ended", name))
		}
	}
	return errors.Join(errs...)
}
