package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// gauge is a quantity drawn as a bar of 100 units.
type gauge struct {
	Name, Value string
	Fill        float64
	Mark        float64 // where a limit is; negative: none
	MarkName    string
	Tone        string
	Words       string // for who does not see it
}

// gauges are for how long a lock is held and how much of its lease is left.
func gauges(l locksteward.Lock, c *api.Class) []gauge {
	held := gauge{Name: "Held", Value: ageWords(l, l.At), Mark: -1, Tone: "calm"}
	age, basis, _ := l.Age()
	if basis == locksteward.AgeNone {
		held.Words = "time held: unknown"
	} else {
		expect := expected(l, c)
		whole := max(age+age/5, expect+expect/4, time.Second)
		held.Fill = share(age, whole)
		held.Words = "held for " + ageWords(l, l.At)
		if expect > 0 {
			held.Mark, held.MarkName = share(expect, whole), "expected "+span(expect)
			held.Words += ", " + held.MarkName
			if age > expect {
				held.Tone = "warning"
			}
		}
	}
	left := gauge{Name: "TTL", Value: span(l.TTL) + " left", Mark: -1, Tone: "calm"}
	switch whole := leaseOf(l, age); {
	case l.Lifetime == locksteward.LifetimeSession:
		left.Name, left.Value, left.Fill, left.Words = "Ends", "with the session of its holder", 100, "it ends with the session of its holder"
	case l.NeverExpires():
		left.Value, left.Fill, left.Tone, left.Words = "none: it never expires", 100, "critical", "it has no TTL and never expires"
	case whole <= 0:
		left.Fill, left.Words = 100, span(l.TTL)+" of its TTL are left"
	default:
		left.Fill = share(l.TTL, whole)
		left.Value += " of " + span(whole)
		left.Words = left.Value
		if left.Fill < 20 {
			left.Tone = "warning"
		}
	}
	return []gauge{held, left}
}

// expected is for how long the lock may be held, by its holder or its class; 0:
// nobody says.
func expected(l locksteward.Lock, c *api.Class) time.Duration {
	if l.Claim != nil && l.Claim.Expect > 0 {
		return l.Claim.Expect
	}
	if c != nil && c.ExpectMs != nil {
		return time.Duration(*c.ExpectMs) * time.Millisecond
	}
	return 0
}

// leaseOf is the whole lease that a TTL is left of: what the holder says, or what
// passed since it was seen to be renewed.
func leaseOf(l locksteward.Lock, age time.Duration) time.Duration {
	switch {
	case l.Claim != nil && l.Claim.TTL > 0:
		return max(l.Claim.TTL, l.TTL)
	case !l.History.LastRenewal.IsZero():
		return l.TTL + max(0, l.At.Sub(l.History.LastRenewal))
	case age > 0:
		return l.TTL + age
	default:
		return 0
	}
}

func share(part, whole time.Duration) float64 {
	return round(100 * float64(max(0, part)) / float64(whole))
}

// round keeps coordinates short.
func round(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }

// timeline is what happened to a lock, drawn on a scale of 1000 units.
type timeline struct {
	From, To time.Time
	Lanes    []lane
}

// lane is one row of a timeline.
type lane struct {
	Name string
	Bars []laneBar
}

// laneBar is a time in which something was so. A tick has no width.
type laneBar struct {
	X, W  float64
	Tone  string
	Title string
}

// maxLanes bounds how many rules a timeline has a lane for.
const maxLanes = 6

// newTimeline draws events, newest first; l is the lock if it is held now.
func newTimeline(events []api.LockEvent, l *locksteward.Lock, now time.Time) timeline {
	var holds, renewals []segment
	byRule := map[string][]segment{}
	begins := map[string]time.Time{} // by token: the next hold may begin before the end of one is known
	for _, e := range slices.Backward(events) {
		switch {
		case e.Kind == api.EventAcquired:
			begins[e.TokenDigest] = e.At
		case e.Kind == api.EventRenewed:
			renewals = append(renewals, segment{from: e.At, to: e.At, tone: "calm", what: "renewed"})
		case slices.Contains(api.EndKinds, e.Kind):
			from := begins[e.TokenDigest]
			if held := time.Duration(e.HeldMs) * time.Millisecond; from.IsZero() || from.After(e.At) {
				from = e.At.Add(-held)
			}
			holds = append(holds, segment{from: from, to: e.At, tone: endClass(e.Kind), what: "held " + span(e.At.Sub(from)) + ", " + e.Words()})
			delete(begins, e.TokenDigest)
		case e.Rule != "":
			byRule[e.Rule] = append(byRule[e.Rule], segment{from: e.At, tone: e.Kind, what: e.Kind, severity: e.Severity})
		}
	}
	if l != nil {
		begun := begins[l.TokenDigest]
		if age, basis, _ := l.Age(); basis != locksteward.AgeNone && begun.IsZero() {
			begun = now.Add(-age)
		}
		if begun.IsZero() {
			begun = cmp.Or(l.History.FirstSeen, now)
		}
		holds = append(holds, segment{from: begun, to: now, tone: "held", what: "held " + span(now.Sub(begun)) + " by now"})
	}
	out := timeline{To: now, From: now}
	for _, list := range [][]segment{holds, renewals} {
		for _, s := range list {
			out.From = earlier(out.From, s.from)
		}
	}
	rules := make([]string, 0, len(byRule))
	for rule, list := range byRule {
		rules = append(rules, rule)
		out.From = earlier(out.From, list[0].from)
	}
	if now.Sub(out.From) < time.Second {
		return timeline{}
	}
	slices.Sort(rules)
	out.add("holds", holds)
	out.add("renewals", renewals)
	for _, rule := range rules[:min(len(rules), maxLanes)] {
		out.add(rule, closed(byRule[rule], now))
	}
	return out
}

// segment is a time in which something was so.
type segment struct {
	from, to   time.Time
	tone, what string
	severity   string
}

func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// endClass is how the end of a hold looks.
func endClass(kind string) string {
	switch kind {
	case api.EventExpired, api.EventDeleted:
		return "warning"
	case api.EventForceReleased:
		return "forced"
	default:
		return "good"
	}
}

// closed turns changes of a finding into times: each lasts until the next one.
func closed(changes []segment, now time.Time) []segment {
	var out []segment
	for i, c := range changes {
		if c.tone == "resolved" {
			continue
		}
		c.to = now
		if i+1 < len(changes) {
			c.to = changes[i+1].from
		}
		c.what += " for " + span(c.to.Sub(c.from))
		if c.tone == "firing" && (c.severity == "critical" || c.severity == "warning" || c.severity == "info") {
			c.tone = c.severity
		}
		out = append(out, c)
	}
	return out
}

func (t *timeline) add(name string, list []segment) {
	if len(list) == 0 {
		return
	}
	whole := t.To.Sub(t.From)
	at := func(when time.Time) float64 {
		return min(1000, max(0, round(1000*float64(when.Sub(t.From))/float64(whole))))
	}
	l := lane{Name: name}
	for _, s := range list {
		x := at(s.from)
		l.Bars = append(l.Bars, laneBar{X: x, W: max(3, round(at(s.to)-x)), Tone: s.tone, Title: s.what + ", " + s.from.UTC().Format(time.DateTime) + " UTC"})
	}
	t.Lanes = append(t.Lanes, l)
}

// Middle is the time in the middle of the scale.
func (t timeline) Middle() time.Time { return t.From.Add(t.To.Sub(t.From) / 2) }
