package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Why a receiver is not notified of an event: the `reason` label of
// locksteward_notifications_suppressed_total.
const (
	// SuppressedSilence and SuppressedInhibit held a finding back until it ended.
	SuppressedSilence = "silence"
	SuppressedInhibit = "inhibit"
	// SuppressedUnknown is the end of a finding that the receiver does not know.
	SuppressedUnknown = "unknown"
	// SuppressedFirstSweep is first_sweep: mute.
	SuppressedFirstSweep = "first_sweep"
	// SuppressedMatch does not match the receiver.
	SuppressedMatch = "match"
)

// SuppressedReasons returns all of them, for metrics.
func SuppressedReasons() []string {
	return []string{SuppressedSilence, SuppressedInhibit, SuppressedUnknown, SuppressedFirstSweep, SuppressedMatch}
}

// allGroups is the Ordering of notifications to people about findings: those of all
// groups are one stream.
const allGroups = "*"

// firstSweepPrefix begins the keys of groups of first sweeps.
const firstSweepPrefix = "first_sweep "

// groupDecision is what happens to the events of one group now.
type groupDecision struct {
	due     locksteward.DueGroup
	notify  []*locksteward.PendingEvent // of due
	flushed locksteward.FlushedGroup
	firing  int            // findings that the receiver knows to fire afterwards
	dropped map[string]int // by reason
}

// decide decides which events of a group become notifications. heldBy is why a firing
// finding is held back.
func decide(due locksteward.DueGroup, heldBy func(locksteward.Finding) string) groupDecision {
	d := groupDecision{
		due: due, flushed: locksteward.FlushedGroup{Group: due.Group, Held: map[int64]string{}, Next: -1}, firing: due.Firing, dropped: map[string]int{},
	}
	known, held := map[string]bool{}, map[string][]*locksteward.PendingEvent{}
	dropHeld := func(print string) {
		for _, e := range held[print] {
			d.drop(e, d.flushed.Held[e.Seq])
			delete(d.flushed.Held, e.Seq)
		}
		delete(held, print)
	}
	ends := endsOfHeld(due.Waiting)
	for i := range due.Waiting {
		e := &due.Waiting[i] // a storm is not copied
		print := e.Finding.Fingerprint()
		if _, seen := known[print]; !seen {
			known[print] = e.Known
		}
		if e.Finding.Status == locksteward.StatusResolved {
			dropHeld(print)
			if !known[print] {
				d.drop(e, SuppressedUnknown)
				continue
			}
			known[print] = false
			d.firing--
		} else {
			why := e.Held
			if why == "" || i >= ends[print] {
				why = heldBy(e.Finding)
			}
			if why != "" {
				d.flushed.Held[e.Seq] = why
				held[print] = append(held[print], e)
				continue
			}
			dropHeld(print) // of a lesser severity
			if !known[print] {
				d.firing++
			}
			known[print] = true
		}
		d.notify = append(d.notify, e)
		d.flushed.Notified = append(d.flushed.Notified, e.Seq)
	}
	d.firing = max(0, d.firing)
	return d
}

// endsOfHeld is the position of each finding's last end; empty where nothing was held
// back. What was held back until its end is dropped, since its cause ended with it.
func endsOfHeld(waiting []locksteward.PendingEvent) map[string]int {
	ends := map[string]int{}
	if !slices.ContainsFunc(waiting, func(e locksteward.PendingEvent) bool { return e.Held != "" }) {
		return ends
	}
	for i := range waiting {
		if f := waiting[i].Finding; f.Status == locksteward.StatusResolved {
			ends[f.Fingerprint()] = i
		}
	}
	return ends
}

func (d *groupDecision) drop(e *locksteward.PendingEvent, why string) {
	d.flushed.Dropped = append(d.flushed.Dropped, e.Seq)
	reason, _, _ := strings.Cut(why, ":")
	d.dropped[reason]++
}

// scheduleRepeat makes the group due again while it fires. A first sweep is not
// repeated.
func (d *groupDecision) scheduleRepeat(every time.Duration) {
	if d.firing == 0 || every == 0 || strings.HasPrefix(d.due.Group, firstSweepPrefix) {
		return
	}
	if since := d.due.Now.Sub(d.due.LastAt); !d.flushed.Sent && !d.due.LastAt.IsZero() && since < every {
		every -= since
	}
	d.flushed.Next = every
}

// repeatDue reports whether nothing is new and what fires is to be repeated now.
func (d *groupDecision) repeatDue(every time.Duration) bool {
	return len(d.notify) == 0 && len(d.due.Waiting) == 0 && len(d.due.FiringEvents) > 0 && every > 0 &&
		!strings.HasPrefix(d.due.Group, firstSweepPrefix) && !d.due.LastAt.IsZero() && d.due.Now.Sub(d.due.LastAt) >= every
}

// composer makes the notifications of one receiver.
type composer struct {
	writer
	heldBy func(locksteward.Finding) string
	// digest combines all groups in one notification. skipRepeats makes no repeats: the
	// receiver accepts nothing, and they would only pile up.
	digest, skipRepeats bool
	// one makes one notification. Groups that are not in it stay due, so that they can be
	// ordered by urgency or combined.
	one bool

	at         time.Time      // of a repeat; zero: the time of the newest event
	suppressed map[string]int // events by reason
	omitted    int            // events that notifications count and do not list
	err        error
}

// compose is the function for [EventGroups].Flush.
func (c *composer) compose(due []locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification) {
	var flushed []locksteward.FlushedGroup
	var made []locksteward.Notification
	var all []groupDecision
	c.suppressed, c.omitted = map[string]int{}, 0 // a transaction that failed is begun again
	for _, g := range due {
		if c.one && (len(made) > 0 || len(all) > 0 && !c.digest) {
			break
		}
		d := decide(g, c.heldBy)
		if c.one && len(all) > 0 && d.repeatDue(c.grouping.Repeat) {
			continue
		}
		for why, n := range d.dropped {
			c.suppressed[why] += n
		}
		switch {
		case d.repeatDue(c.grouping.Repeat):
			if repeats := c.repeat(g); len(repeats) > 0 && !c.skipRepeats {
				made = append(made, repeats...)
				d.flushed.Sent = true
			}
		case len(d.notify) > 0:
			d.flushed.Sent = true
			all = append(all, d)
		}
		d.scheduleRepeat(c.grouping.Repeat)
		flushed = append(flushed, d.flushed)
	}
	return flushed, append(made, c.news(all)...)
}

// news are the notifications about events that the receiver does not know.
func (c *composer) news(all []groupDecision) []locksteward.Notification {
	if len(all) == 0 {
		return nil
	}
	if c.people && c.digest && len(all) > 1 {
		var events []locksteward.FindingEvent
		for _, d := range all {
			events = append(events, eventsOf(d.notify)...)
		}
		return c.message(ReasonDigest, nil, "", events)
	}
	var out []locksteward.Notification
	for _, d := range all {
		why, events := ReasonNews, eventsOf(d.notify)
		group := &Group{Key: d.due.Group, Labels: c.grouping.labels(events[0].Finding), Firing: d.firing}
		if strings.HasPrefix(d.due.Group, firstSweepPrefix) {
			group.Labels = map[string]string{"target": events[0].Finding.Target}
		}
		if events[0].FirstSweep { // what ends later is in the same group
			why = ReasonFirstSweep
		}
		if c.people || why == ReasonFirstSweep {
			out = append(out, c.message(why, group, "", events)...)
			continue
		}
		for part := range slices.Chunk(events, c.cap) {
			out = append(out, c.message(why, group, "", part)...)
		}
	}
	return out
}

// repeat is the notification about a group that still fires.
func (c *composer) repeat(g locksteward.DueGroup) []locksteward.Notification {
	events := slices.DeleteFunc(slices.Clone(g.FiringEvents), func(e locksteward.FindingEvent) bool {
		return c.heldBy(e.Finding) != ""
	})
	if len(events) == 0 {
		return nil
	}
	group := &Group{Key: g.Group, Labels: c.grouping.labels(events[0].Finding), Firing: g.Firing}
	c.at = g.Now
	defer func() { c.at = time.Time{} }()
	// The salt gives each repeat of the same events its own id.
	return c.message(ReasonRepeat, group, fmt.Sprintf("repeat %d", g.LastAt.UnixMicro()), events)
}

func eventsOf(list []*locksteward.PendingEvent) []locksteward.FindingEvent {
	out := make([]locksteward.FindingEvent, 0, len(list))
	for _, e := range list {
		out = append(out, e.FindingEvent)
	}
	return out
}

// message makes one notification of events, which it may reorder; none if it cannot be
// encoded. For people it has the last state of each finding, the worst in full.
func (c *composer) message(why Reasoning, group *Group, salt string, events []locksteward.FindingEvent) []locksteward.Notification {
	last := make(map[string]int, len(events))
	for i := range events {
		last[events[i].Finding.Fingerprint()] = i
	}
	p := Payload{Version: PayloadVersion, Lang: c.lang, Reason: why, Group: group, Status: string(locksteward.StatusResolved)}
	urgency := urgencyNone
	for _, i := range last {
		if events[i].Finding.Status == locksteward.StatusFiring {
			p.Status = string(locksteward.StatusFiring)
		}
		if why != ReasonRepeat {
			urgency = max(urgency, urgencyOf(events[i].Finding))
		}
	}
	p.Type = typeFindings + p.Status
	if why == ReasonFirstSweep {
		p.Type = typeFirstSweep
	}
	ids := make([]string, 0, len(events)+1)
	for _, e := range events {
		ids = append(ids, e.ID)
		p.Seq = max(p.Seq, e.Number)
		if at := stamp(e.At); at.After(p.Timestamp) {
			p.Timestamp = at
		}
	}
	if salt != "" {
		ids = append(ids, salt)
	}
	listed, target, n := events, events[0].Finding.Target, len(events)
	if c.people || why != ReasonNews { // others get every event of a finding
		listed = events[:0]
		for i := range events {
			if last[events[i].Finding.Fingerprint()] == i {
				listed = append(listed, events[i])
			}
		}
		slices.SortStableFunc(listed, worst)
	}
	p.Counts = countsOf(listed)
	unlisted := 0
	if why == ReasonRepeat {
		unlisted = max(0, group.Firing-n) // those that were not read, or are held back now
	}
	room := min(len(listed), c.cap)
	p.omit(listed[room:], unlisted)
	listed = listed[:room]
	c.omitted += p.Omitted
	p.Findings = make([]PayloadFinding, 0, len(listed))
	for _, e := range listed {
		f := c.event(e)
		if why == ReasonRepeat {
			f.CounterEvidence = []string{} // most of it is of the first moments and may be outdated
		}
		p.Findings = append(p.Findings, f)
	}
	if !c.at.IsZero() {
		p.Timestamp = stamp(c.at)
	}
	ordering := allGroups
	if !c.people {
		ordering = group.Key
	}
	made, err := c.notification(&p, ordering, target, ids...)
	if err != nil {
		c.err = err
		return nil
	}
	made.Urgency = urgency
	return []locksteward.Notification{made}
}

// worst orders events: firing before resolved, then by severity.
func worst(a, b locksteward.FindingEvent) int {
	return cmp.Or(
		strings.Compare(string(a.Finding.Status), string(b.Finding.Status)), // firing, resolved
		cmp.Compare(b.Finding.Severity, a.Finding.Severity),
		cmp.Compare(a.Number, b.Number),
	)
}

// countsOf sums events up, the largest sums first, at most maxCounts. Of more sums those
// of the worst kinds are kept.
func countsOf(events []locksteward.FindingEvent) []Count {
	n := map[Count]int{}
	for _, e := range events {
		f := e.Finding
		n[Count{Rule: f.Rule, Target: f.Target, Class: f.Class, Severity: f.Severity.String(), Status: string(f.Status)}]++
	}
	out := make([]Count, 0, len(n))
	for c, findings := range n {
		c.Findings = findings
		out = append(out, c)
	}
	most := func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Findings, a.Findings), strings.Compare(a.Rule, b.Rule), strings.Compare(a.Target, b.Target),
			strings.Compare(a.Class, b.Class), strings.Compare(a.Severity, b.Severity), strings.Compare(a.Status, b.Status))
	}
	if len(out) > maxCounts {
		slices.SortFunc(out, func(a, b Count) int {
			return cmp.Or(worstKind(kindOf(a.Status, a.Severity), kindOf(b.Status, b.Severity)), most(a, b))
		})
		out = out[:maxCounts]
	}
	slices.SortFunc(out, most)
	return out
}

// maxCounts bounds the sums in a notification.
const maxCounts = 50
