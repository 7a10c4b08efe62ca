package exporter

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Reasons why a receiver was not notified of an event of a finding.
const (
	SuppressedBySilence    = "silence"     // somebody silenced it
	SuppressedByInhibit    = "inhibit"     // its target is down
	SuppressedByFirstSweep = "first_sweep" // its target was swept for the first time, and first_sweep is mute
	SuppressedByMatch      = "match"       // the receiver does not want its kind
	SuppressedByUnknown    = "unknown"     // it resolves what the receiver was not notified of
)

func suppressions() []string {
	return []string{SuppressedBySilence, SuppressedByInhibit, SuppressedByFirstSweep, SuppressedByMatch, SuppressedByUnknown}
}

// Backlog is what waits for one receiver, or was given up.
type Backlog struct {
	Receiver      string
	Waiting, Dead int64
	Oldest        time.Duration // how long the oldest has been waiting
	// CircuitOpen says that the receiver takes nothing: one message at a time finds
	// out whether that is over.
	CircuitOpen bool
}

// receiverCounts counts what was sent to one receiver, and what was not. They only grow.
type receiverCounts struct {
	deliveries map[[2]string]float64 // by outcome and reason
	suppressed map[string]float64    // by reason
	omitted    float64
	failed     float64 // templates
	groups     int
	grouped    bool // the three above are known
	backlog    *Backlog
}

func newReceiverCounts() *receiverCounts {
	return &receiverCounts{deliveries: map[[2]string]float64{}, suppressed: map[string]float64{}}
}

func (r *receiverCounts) emit(s *building, name string) {
	for _, id := range slices.SortedFunc(maps.Keys(r.deliveries), compareLabels) {
		s.series(deliveries, r.deliveries[id], name, id[0], id[1])
	}
	for _, reason := range slices.Sorted(maps.Keys(r.suppressed)) {
		s.series(alertsSuppressed, r.suppressed[reason], name, reason)
	}
	if r.grouped {
		s.series(alertsOmitted, r.omitted, name)
		s.series(alertGroups, float64(r.groups), name)
		s.series(templateFailures, r.failed, name)
	}
	if b := r.backlog; b != nil {
		s.series(outboxDepth, float64(b.Waiting), name)
		s.series(outboxOldest, b.Oldest.Seconds(), name)
		s.series(outboxDead, float64(b.Dead), name)
		s.series(circuitOpen, truth(b.CircuitOpen), name)
	}
}

func compareLabels(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

// emitReceivers emits the counts of all receivers.
func (e *Exporter) emitReceivers(s *building) {
	for _, name := range slices.Sorted(maps.Keys(e.receivers)) {
		e.receivers[name].emit(s, name)
	}
}

// receiver returns the counts of a receiver, nil for one that SetReceivers did
// not name. It is kept by the name that its series have: two names that are no valid
// label value may share it.
func (e *Exporter) receiver(name string) *receiverCounts {
	name = labelValue(name)
	r, ok := e.receivers[name]
	if !ok && !e.closed {
		name = strings.Clone(name)
		r = newReceiverCounts()
		e.receivers[name] = r
	}
	return r
}

// SetReceivers takes the names of all receivers that are configured. Each is shown
// at once with counters of 0, so that rate and increase see the first event; one
// that is gone vanishes, and what is counted for it later counts nowhere. If it comes
// back its counters go on.
func (e *Exporter) SetReceivers(names ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = false
	shown := map[string]bool{}
	for _, name := range names {
		shown[labelValue(name)] = true
		if before, ok := e.leftOut.take(labelValue(name)); ok {
			e.receivers[labelValue(name)] = before
		}
		r := e.receiver(name)
		r.grouped = true
		for _, reason := range suppressions() {
			r.suppressed[reason] += 0
		}
	}
	for name, r := range e.receivers {
		if !shown[name] {
			delete(e.receivers, name)
			r.backlog, r.groups = nil, 0
			e.leftOut.put(name, r)
		}
	}
	e.closed, e.dirty = true, true
}

// CountDelivery counts the end of one attempt to deliver. Outcomes and reasons
// must come from closed sets.
func (e *Exporter) CountDelivery(receiver, outcome, reason string) {
	e.countFor(receiver, func(r *receiverCounts) { r.deliveries[[2]string{labelValue(outcome), labelValue(reason)}]++ })
}

// InitDelivery shows a counter of deliveries as 0 until something is counted, so
// that rate and increase see its first event.
func (e *Exporter) InitDelivery(receiver, outcome, reason string) {
	e.countFor(receiver, func(r *receiverCounts) { r.deliveries[[2]string{labelValue(outcome), labelValue(reason)}] += 0 })
}

// CountSuppressed counts n events of findings of which a receiver was not notified, by
// one of the reasons above.
func (e *Exporter) CountSuppressed(receiver, reason string, n int) {
	e.countFor(receiver, func(r *receiverCounts) { r.suppressed[labelValue(reason)] += float64(max(0, n)) })
}

// CountOmitted counts n findings that a message to the receiver had no room for:
// it tells their number, not what they are.
func (e *Exporter) CountOmitted(receiver string, n int) {
	e.countFor(receiver, func(r *receiverCounts) { r.omitted, r.grouped = r.omitted+float64(max(0, n)), true })
}

// CountTemplateFailure counts a notification that was sent with the built-in text, since
// the receiver's template failed.
func (e *Exporter) CountTemplateFailure(receiver string) {
	e.countFor(receiver, func(r *receiverCounts) { r.failed, r.grouped = r.failed+1, true })
}

// SetAlertGroups says how many groups of findings a receiver knows to fire or will
// be notified of.
func (e *Exporter) SetAlertGroups(receiver string, n int) {
	e.countFor(receiver, func(r *receiverCounts) { r.groups, r.grouped = n, true })
}

// SetOutbox takes what waits, for each receiver that is configured.
func (e *Exporter) SetOutbox(list []Backlog) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.receivers {
		r.backlog = nil
	}
	for _, b := range list {
		if r := e.receiver(b.Receiver); r != nil {
			r.backlog = &b
		}
	}
	e.dirty = true
}

func (e *Exporter) countFor(receiver string, change func(*receiverCounts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.receiver(receiver); r != nil {
		change(r)
		e.dirty = true
	}
}
