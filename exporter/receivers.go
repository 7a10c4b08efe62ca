package exporter

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Reasons why an event of a finding was not told to a receiver.
const (
	SuppressedBySilence = "silence" // somebody silenced it
	SuppressedByInhibit = "inhibit" // its target is down
	SuppressedBySurvey  = "survey"  // the first survey of its target told of it as a number
	SuppressedByMatch   = "match"   // the receiver does not want its kind
	SuppressedByUnknown = "unknown" // it is the end of what the receiver was not told of
)

func suppressions() []string {
	return []string{SuppressedBySilence, SuppressedByInhibit, SuppressedBySurvey, SuppressedByMatch, SuppressedByUnknown}
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

// told is what was told to one receiver, and what was not. Counters only grow.
type told struct {
	deliveries map[[2]string]float64 // by outcome and reason
	suppressed map[string]float64    // by reason
	omitted    float64
	failed     float64 // templates
	groups     int
	grouped    bool // the three above are known
	backlog    *Backlog
}

func newTold() *told {
	return &told{deliveries: map[[2]string]float64{}, suppressed: map[string]float64{}}
}

// merge adds what another receiver was told.
func (r *told) merge(o *told) {
	for id, n := range o.deliveries {
		r.deliveries[id] += n
	}
	for reason, n := range o.suppressed {
		r.suppressed[reason] += n
	}
	r.omitted += o.omitted
	r.failed += o.failed
	r.groups += o.groups
	r.grouped = r.grouped || o.grouped
	if b := o.backlog; b != nil {
		sum := Backlog{}
		if r.backlog != nil {
			sum = *r.backlog
		}
		sum.Waiting += b.Waiting
		sum.Dead += b.Dead
		sum.Oldest = max(sum.Oldest, b.Oldest)
		sum.CircuitOpen = sum.CircuitOpen || b.CircuitOpen
		r.backlog = &sum
	}
}

// brief is r with one reason for all deliveries that did not arrive.
func (r *told) brief() *told {
	out := *r
	out.deliveries = map[[2]string]float64{}
	for id, n := range r.deliveries {
		if id[0] != "delivered" {
			id[1] = Other
		}
		out.deliveries[id] += n
	}
	return &out
}

func (r *told) emit(s sink, name string) {
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

// receiversShare is the part of Config.MaxSeries that receivers may take: the rest
// is for locks.
const receiversShare = 4

// emitReceivers gives what was told to each receiver. If that is more than their
// share, failed deliveries have no reasons; if it still is, the last receivers, by
// name, are one.
func (e *Exporter) emitReceivers(s sink) {
	list := e.toldByName()
	names := slices.Sorted(maps.Keys(list))
	share := e.cfg.MaxSeries / receiversShare
	size := func(r *told) int {
		var n counting
		r.emit(&n, "")
		return n.n
	}
	total := 0
	for _, r := range list {
		total += size(r)
	}
	if total > share {
		total = 0
		for name, r := range list {
			list[name] = r.brief()
			total += size(list[name])
		}
	}
	rest := newTold()
	for last := len(names) - 1; last >= 0 && total+size(rest) > share; last-- {
		r := list[names[last]]
		total -= size(r)
		rest.merge(r)
		names = names[:last]
	}
	for _, name := range names {
		list[name].emit(s, name)
	}
	rest.emit(s, Other)
}

// toldByName has one entry for each name as it is shown: names that are no valid
// label value may look alike.
func (e *Exporter) toldByName() map[string]*told {
	out := map[string]*told{}
	for name, r := range e.receivers {
		shown := strings.Clone(labelValue(name))
		if out[shown] == nil {
			out[shown] = newTold()
		}
		out[shown].merge(r)
	}
	return out
}

// receiver returns what was told to a receiver, nil for one that SetReceivers did
// not name.
func (e *Exporter) receiver(name string) *told {
	r, ok := e.receivers[name]
	if !ok && !e.closed {
		r = newTold()
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
	for _, name := range names {
		r := e.receiver(name)
		if before, ok := e.leftOut.take(name); ok {
			r.merge(before)
		}
		r.grouped = true
		for _, reason := range suppressions() {
			r.suppressed[reason] += 0
		}
	}
	for name, r := range e.receivers {
		if !slices.Contains(names, name) {
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
	e.tell(receiver, func(r *told) { r.deliveries[[2]string{labelValue(outcome), labelValue(reason)}]++ })
}

// InitDelivery shows a counter of deliveries as 0 until something is counted, so
// that rate and increase see its first event.
func (e *Exporter) InitDelivery(receiver, outcome, reason string) {
	e.tell(receiver, func(r *told) { r.deliveries[[2]string{labelValue(outcome), labelValue(reason)}] += 0 })
}

// CountSuppressed counts n events of findings that a receiver was not told of, by
// one of the reasons above.
func (e *Exporter) CountSuppressed(receiver, reason string, n int) {
	e.tell(receiver, func(r *told) { r.suppressed[labelValue(reason)] += float64(max(0, n)) })
}

// CountOmitted counts n findings that a message to the receiver had no room for:
// it tells their number, not what they are.
func (e *Exporter) CountOmitted(receiver string, n int) {
	e.tell(receiver, func(r *told) { r.omitted, r.grouped = r.omitted+float64(max(0, n)), true })
}

// CountTemplateFailure counts a message that was told with the built-in text, since
// the receiver's template failed.
func (e *Exporter) CountTemplateFailure(receiver string) {
	e.tell(receiver, func(r *told) { r.failed, r.grouped = r.failed+1, true })
}

// SetAlertGroups says how many groups of findings a receiver knows to fire or will
// be told of.
func (e *Exporter) SetAlertGroups(receiver string, n int) {
	e.tell(receiver, func(r *told) { r.groups, r.grouped = n, true })
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

func (e *Exporter) tell(receiver string, change func(*told)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.receiver(receiver); r != nil {
		change(r)
		e.dirty = true
	}
}
