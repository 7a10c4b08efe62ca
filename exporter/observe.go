package exporter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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

// ObserveRecheck takes in what direct reads of some locks told, given as a sweep
// without masters. It changes the gauges and counters of those locks alone.
func (e *Exporter) ObserveRecheck(sweep locksteward.Sweep) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recheck(e.target(sweep.Target), sweep)
	e.publish()
}

// SetFindings takes all current findings of a target; only those that fire are
// shown, and not what another one is told in place of: nothing is paged twice.
func (e *Exporter) SetFindings(target string, all []locksteward.Finding) {
	firing := map[findingID]int{}
	for _, f := range all {
		if f.Status == locksteward.StatusFiring && f.InhibitedBy == "" {
			firing[findingID{class: f.Class, rule: f.Rule, severity: f.Severity.String(), risk: f.Risk}]++
		}
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
	e.publish()
}

// RemoveTarget forgets a target that a reload took out of the configuration.
func (e *Exporter) RemoveTarget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.targets, name)
	ofTarget := prometheus.Labels{"target": labelValue(name)}
	e.holds.DeletePartialMatch(ofTarget)
	e.throttled.DeletePartialMatch(ofTarget)
	e.publish()
}

// AddThrottled counts that sweeps of a target waited for d. Reasons must come
// from a closed set.
func (e *Exporter) AddThrottled(target, reason string, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.target(target)
	c, ok := t.throttled[reason]
	if !ok {
		c = e.throttled.WithLabelValues(labelValue(target), labelValue(reason))
		t.throttled[reason] = c
	}
	c.Add(max(0, d.Seconds()))
	if !ok {
		e.publish()
	}
}

// SetPaused says whether an operator paused the target.
func (e *Exporter) SetPaused(target string, paused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).paused = paused
	e.publish()
}

// SetReleaseEnabled says whether the agent has credentials to release locks of a
// target.
func (e *Exporter) SetReleaseEnabled(target string, enabled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.target(target).release = &enabled
	e.publish()
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
	e.publish()
}

// CountRelease counts a release request that reached a final state.
func (e *Exporter) CountRelease(target, class, outcome string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.tallyOf(e.target(target), class)
	if c.releases == nil {
		c.releases = map[string]float64{}
	}
	c.releases[outcome]++
	e.publish()
}

// CountDelivery counts the end of one attempt to deliver. Outcomes and reasons
// must come from closed sets.
func (e *Exporter) CountDelivery(receiver, outcome, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliveryOf(deliveryID{receiver, outcome, reason}).Inc()
}

// InitDelivery shows a counter of deliveries as 0 until something is counted, so
// that rate and increase see its first event.
func (e *Exporter) InitDelivery(receiver, outcome, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliveryOf(deliveryID{receiver, outcome, reason})
}

func (e *Exporter) deliveryOf(id deliveryID) prometheus.Counter {
	c, ok := e.deliveries[id]
	if !ok {
		c = e.delivered.WithLabelValues(labelValue(id[0]), labelValue(id[1]), labelValue(id[2]))
		e.deliveries[id] = c
		e.publish()
	}
	return c
}

// Backlog is what waits for one receiver, or was given up.
type Backlog struct {
	Receiver      string
	Waiting, Dead int64
	Oldest        time.Duration // how long the oldest has been waiting
}

// SetOutbox takes what waits, for each receiver that is configured.
func (e *Exporter) SetOutbox(list []Backlog) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Equal(e.outbox, list) {
		return
	}
	e.outbox = slices.Clone(list)
	e.publish()
}

// SetReload says whether the configuration was read without error the last time.
func (e *Exporter) SetReload(ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reload = &ok
	e.publish()
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
