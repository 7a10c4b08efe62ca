package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Why changes were not told: the `reason` label of
// locksteward_alerts_suppressed_total.
const (
	// SuppressedSilence and SuppressedInhibit held a finding back until it was over.
	SuppressedSilence = "silence"
	SuppressedInhibit = "inhibit"
	// SuppressedUnknown is the end of a finding that the receiver was not told of.
	SuppressedUnknown = "unknown"
	// SuppressedSurvey is first_survey: mute.
	SuppressedSurvey = "survey"
	// SuppressedMatch does not match the receiver.
	SuppressedMatch = "match"
)

// SuppressedReasons returns all of them, for metrics.
func SuppressedReasons() []string {
	return []string{SuppressedSilence, SuppressedInhibit, SuppressedUnknown, SuppressedSurvey, SuppressedMatch}
}

// allGroups is the ordering of messages to people about findings: what is told of all
// groups is one stream.
const allGroups = "*"

// surveyPrefix begins the keys of groups that are first surveys.
const surveyPrefix = "first_survey "

// picked is what is told of one group now.
type picked struct {
	due    Due
	tell   []*Waiting // of due
	flush  Flushed
	firing int // findings that the receiver knows to fire afterwards
	counts map[string]int
}

// pick decides what becomes of all that waits in a group. hold says why a firing
// finding is not told, and for how long.
func pick(d Due, hold func(locksteward.Finding) string) picked {
	p := picked{due: d, flush: Flushed{Group: d.Group, Held: map[int64]string{}, Next: -1}, firing: d.Told, counts: map[string]int{}}
	known, held := map[string]bool{}, map[string][]*Waiting{}
	dropHeld := func(id string) {
		for _, w := range held[id] {
			p.drop(w, p.flush.Held[w.Handle])
			delete(p.flush.Held, w.Handle)
		}
		delete(held, id)
	}
	ended := endsOfHeld(d.Waiting)
	for i := range d.Waiting {
		w := &d.Waiting[i] // a storm is not copied
		id := w.Finding.Fingerprint()
		if _, seen := known[id]; !seen {
			known[id] = w.Known
		}
		if w.Finding.Status == locksteward.StatusResolved {
			dropHeld(id)
			if !known[id] {
				p.drop(w, SuppressedUnknown)
				continue
			}
			known[id] = false
			p.firing--
		} else {
			why := w.Held
			if why == "" || i >= ended[id] {
				why = hold(w.Finding)
			}
			if why != "" {
				p.flush.Held[w.Handle] = why
				held[id] = append(held[id], w)
				continue
			}
			dropHeld(id) // of a lesser severity: the greater one is told
			if !known[id] {
				p.firing++
			}
			known[id] = true
		}
		p.tell = append(p.tell, w)
		p.flush.Told = append(p.flush.Told, w.Handle)
	}
	p.firing = max(0, p.firing)
	return p
}

// endsOfHeld is where each finding's last end waits; empty where nothing was held back.
// What was held back until its end is not told for what held it back ended with it.
func endsOfHeld(waiting []Waiting) map[string]int {
	ends := map[string]int{}
	if !slices.ContainsFunc(waiting, func(w Waiting) bool { return w.Held != "" }) {
		return ends
	}
	for i := range waiting {
		if f := waiting[i].Finding; f.Status == locksteward.StatusResolved {
			ends[f.Fingerprint()] = i
		}
	}
	return ends
}

func (p *picked) drop(w *Waiting, why string) {
	p.flush.Dropped = append(p.flush.Dropped, w.Handle)
	reason, _, _ := strings.Cut(why, ":")
	p.counts[reason]++
}

// repeats has the group told again while it fires; a first survey is told once.
func (p *picked) repeats(every time.Duration) {
	if p.firing == 0 || every == 0 || strings.HasPrefix(p.due.Group, surveyPrefix) {
		return
	}
	if since := p.due.Now.Sub(p.due.LastAt); !p.flush.Sent && !p.due.LastAt.IsZero() && since < every {
		every -= since
	}
	p.flush.Next = every
}

// repeatDue says that nothing new is to be told, and that it is time to tell again
// what fires.
func (p *picked) repeatDue(every time.Duration) bool {
	return len(p.tell) == 0 && len(p.due.Waiting) == 0 && len(p.due.Standing) > 0 && every > 0 &&
		!strings.HasPrefix(p.due.Group, surveyPrefix) && !p.due.LastAt.IsZero() && p.due.Now.Sub(p.due.LastAt) >= every
}

// composer makes the messages of one receiver.
type composer struct {
	addressee
	hold func(locksteward.Finding) string
	// digest has all groups told in one message; quiet has nothing told again: the
	// receiver takes nothing, and repeats would only pile up.
	digest, quiet bool
	// one has people told one message; the groups that are not in it stay due, so that
	// they can be told by urgency or together.
	one bool

	// at is the time of a repeat; zero for a message that is of its newest event.
	at         time.Time
	suppressed map[string]int
	omitted    int
	err        error
}

// compose is what [Groups].Flush asks for.
func (c *composer) compose(due []Due) ([]Flushed, []Message) {
	var flushed []Flushed
	var messages []Message
	var all []picked
	c.suppressed, c.omitted = map[string]int{}, 0 // a transaction that failed is begun again
	for _, d := range due {
		if c.one && (len(messages) > 0 || len(all) > 0 && !c.digest) {
			break
		}
		p := pick(d, c.hold)
		if c.one && len(all) > 0 && p.repeatDue(c.grouping.Repeat) {
			continue
		}
		for why, n := range p.counts {
			c.suppressed[why] += n
		}
		switch {
		case p.repeatDue(c.grouping.Repeat):
			if made := c.repeat(d); len(made) > 0 && !c.quiet {
				messages = append(messages, made...)
				p.flush.Sent = true
			}
		case len(p.tell) > 0:
			p.flush.Sent = true
			all = append(all, p)
		}
		p.repeats(c.grouping.Repeat)
		flushed = append(flushed, p.flush)
	}
	return flushed, append(messages, c.news(all)...)
}

// news are the messages about what receivers were not told before.
func (c *composer) news(all []picked) []Message {
	if len(all) == 0 {
		return nil
	}
	if c.people && c.digest && len(all) > 1 {
		var changes []Change
		for _, p := range all {
			changes = append(changes, changesOf(p.tell)...)
		}
		return c.message(ReasonDigest, nil, "", changes)
	}
	var out []Message
	for _, p := range all {
		why, changes := ReasonNews, changesOf(p.tell)
		group := &Group{Key: p.due.Group, Labels: c.grouping.labels(changes[0].Finding), Firing: p.firing}
		if strings.HasPrefix(p.due.Group, surveyPrefix) {
			group.Labels = map[string]string{"target": changes[0].Finding.Target}
		}
		if changes[0].Survey { // what ends later comes in the same group
			why = ReasonSurvey
		}
		if c.people || why == ReasonSurvey {
			out = append(out, c.message(why, group, "", changes)...)
			continue
		}
		for part := range slices.Chunk(changes, c.cap) {
			out = append(out, c.message(why, group, "", part)...)
		}
	}
	return out
}

// repeat is the message about a group that fires still.
func (c *composer) repeat(d Due) []Message {
	changes := slices.DeleteFunc(slices.Clone(d.Standing), func(t Change) bool {
		return c.hold(t.Finding) != ""
	})
	if len(changes) == 0 {
		return nil
	}
	group := &Group{Key: d.Group, Labels: c.grouping.labels(changes[0].Finding), Firing: d.Told}
	// The same events make another message each time.
	c.at = d.Now
	defer func() { c.at = time.Time{} }()
	return c.message(ReasonRepeat, group, fmt.Sprintf("repeat %d", d.LastAt.UnixMicro()), changes)
}

func changesOf(list []*Waiting) []Change {
	out := make([]Change, 0, len(list))
	for _, w := range list {
		out = append(out, w.Change)
	}
	return out
}

// message makes one message of changes, which are its own then; none if it cannot be
// encoded. People are told of the last state of each finding, and of the worst in full.
func (c *composer) message(why Reasoning, group *Group, salt string, changes []Change) []Message {
	last := make(map[string]int, len(changes))
	for i := range changes {
		last[changes[i].Finding.Fingerprint()] = i
	}
	p := Payload{Version: PayloadVersion, Lang: c.lang, Reason: why, Group: group, Status: string(locksteward.StatusResolved)}
	urgency := urgencyNone
	for _, i := range last {
		if changes[i].Finding.Status == locksteward.StatusFiring {
			p.Status = string(locksteward.StatusFiring)
		}
		if why != ReasonRepeat {
			urgency = max(urgency, urgencyOf(changes[i].Finding))
		}
	}
	p.Type = typeFindings + p.Status
	if why == ReasonSurvey {
		p.Type = typeSurvey
	}
	events := make([]string, 0, len(changes)+1)
	for _, t := range changes {
		events = append(events, t.EventID)
		p.Seq = max(p.Seq, t.Seq)
		if at := stamp(t.At); at.After(p.Timestamp) {
			p.Timestamp = at
		}
	}
	if salt != "" {
		events = append(events, salt)
	}
	listed, target, n := changes, changes[0].Finding.Target, len(changes)
	if c.people || why != ReasonNews { // all but what happened to each, told one after the other
		listed = changes[:0]
		for i := range changes {
			if last[changes[i].Finding.Fingerprint()] == i {
				listed = append(listed, changes[i])
			}
		}
		slices.SortStableFunc(listed, worst)
	}
	p.Counts = countsOf(listed)
	told := 0
	if why == ReasonRepeat {
		told = max(0, group.Firing-n) // those that were not read, or are held back now
	}
	room := min(len(listed), c.cap)
	p.omit(listed[room:], told)
	listed = listed[:room]
	c.omitted += p.Omitted
	p.Findings = make([]Event, 0, len(listed))
	for _, t := range listed {
		e := c.event(t)
		if why == ReasonRepeat {
			e.CounterEvidence = []string{} // most of it is of the first moments: it may be over
		}
		p.Findings = append(p.Findings, e)
	}
	if !c.at.IsZero() {
		p.Timestamp = stamp(c.at)
	}
	ordering := allGroups
	if !c.people {
		ordering = group.Key
	}
	m, err := c.finish(&p, ordering, target, events...)
	if err != nil {
		c.err = err
		return nil
	}
	m.Urgency = urgency
	return []Message{m}
}

// worst comes first: what fires before what ended, then by severity.
func worst(a, b Change) int {
	return cmp.Or(
		strings.Compare(string(a.Finding.Status), string(b.Finding.Status)), // firing, resolved
		cmp.Compare(b.Finding.Severity, a.Finding.Severity),
		cmp.Compare(a.Seq, b.Seq),
	)
}

// countsOf sums changes up, the most first. Where there are too many sums, those of the
// worst are kept.
func countsOf(changes []Change) []Count {
	n := map[Count]int{}
	for _, t := range changes {
		f := t.Finding
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

// maxCounts bounds the sums in a message.
const maxCounts = 50
