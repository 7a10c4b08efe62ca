package alert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// latest is the last state of each finding, in the order in which they come.
func latest(events []PayloadFinding) []PayloadFinding {
	at := map[string]int{}
	var out []PayloadFinding
	for _, e := range events {
		id := cmp.Or(e.Fingerprint, e.EventID)
		if i, ok := at[id]; ok {
			out[i] = e
			continue
		}
		at[id] = len(out)
		out = append(out, e)
	}
	return out
}

// totals sums up a notification about findings.
type totals struct {
	firing, resolved int
	severities       map[string]int // of those that fire
	worst            string
	rules, classes   []string
	targets          []string
}

func total(p Payload, list []PayloadFinding) totals {
	counts := p.Counts
	if len(counts) == 0 {
		for _, e := range list {
			counts = append(counts, Count{Rule: e.Rule, Target: e.Target, Class: e.Class, Severity: e.Severity, Status: e.Status, Findings: 1})
		}
	}
	t := totals{severities: map[string]int{}}
	rules, classes, targets := map[string]bool{}, map[string]bool{}, map[string]bool{}
	of := map[string]int{}
	for _, c := range counts {
		rules[c.Rule], targets[c.Target] = true, true
		if c.Class != "" {
			classes[c.Class] = true
		}
		of[kindOf(c.Status, c.Severity)] += c.Findings
	}
	if len(p.OmittedBy) > 0 { // there may be more sums than a notification has
		of = maps.Clone(p.OmittedBy)
		for _, e := range list {
			of[kindOf(e.Status, e.Severity)]++
		}
	}
	for kind, n := range of {
		switch kind {
		case kindNotified: // a repeat says beside how many fire
		case kindResolved:
			t.resolved = n
		default:
			t.firing += n
			t.severities[kind] = n
			t.worst = worse(t.worst, kind)
		}
	}
	t.rules, t.classes, t.targets = slices.Sorted(maps.Keys(rules)), slices.Sorted(maps.Keys(classes)), slices.Sorted(maps.Keys(targets))
	return t
}

var severities = []string{"info", "warning", "critical"}

func worse(a, b string) string {
	if slices.Index(severities, b) > slices.Index(severities, a) {
		return b
	}
	return a
}

func (t totals) level() level { return levelOf(t.firing > 0, t.worst) }

func levelOf(firing bool, severity string) level {
	switch {
	case !firing:
		return levelResolved
	case severity == "critical":
		return levelCritical
	default:
		return levelWarning
	}
}

func (r renderer) findings(s *message, p Payload) {
	list := latest(p.Findings)
	t := total(p, list)
	s.level = t.level()
	s.urgent = t.firing > 0 && t.worst == "critical"
	s.title = r.findingsTitle(t, list)
	if p.Reason != "" && p.Reason != ReasonNews {
		s.addSentence(r.word(string(p.Reason)))
	}
	r.group(s, p, t)
	if p.Omitted > 0 || p.Reason == ReasonFirstSweep || p.Reason == ReasonDigest {
		r.counts(s, p.Counts, t)
	}
	for _, e := range list {
		s.parts = append(s.parts, r.finding(e))
	}
	s.more = rest{p.Omitted, p.OmittedBy}
}

// findingsTitle is such as "FIRING critical · ttl/none · lock:order:42 · redis".
func (r renderer) findingsTitle(t totals, list []PayloadFinding) string {
	var state []string
	n := t.firing + t.resolved
	if t.firing > 0 {
		text := r.word("firing")
		if n > 1 {
			text += fmt.Sprintf(" %d", t.firing)
		}
		state = append(state, text+r.severities(t, n))
	}
	if t.resolved > 0 {
		text := r.word("resolved")
		if n > 1 {
			text += fmt.Sprintf(" %d", t.resolved)
		}
		state = append(state, text)
	}
	title := []string{strings.Join(state, ", "), r.several(t.rules, "count.rules")}
	if n == 1 && len(list) == 1 && list[0].Key.Key != "" {
		title = append(title, cut(lockName(list[0].Key), 80))
	} else if len(t.classes) > 0 {
		title = append(title, r.several(t.classes, "count.classes"))
	}
	title = append(title, r.several(t.targets, "count.targets"))
	return strings.Join(slices.DeleteFunc(title, func(s string) bool { return s == "" }), " · ")
}

func (r renderer) severities(t totals, n int) string {
	if n == 1 {
		return " " + r.word(t.worst)
	}
	var out []string
	for _, severity := range slices.Backward(severities) {
		if c := t.severities[severity]; c > 0 {
			out = append(out, severityWords(r.lang, c, severity))
		}
	}
	return sentence(r.lang, "brackets", list(out))
}

// several is a name, or how many there are.
func (r renderer) several(names []string, what string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return tidy(names[0])
	default:
		return sentence(r.lang, what, len(names))
	}
}

// group says what the findings share, where that is not a single one.
func (r renderer) group(s *message, p Payload, t totals) {
	if p.Group == nil || t.firing+t.resolved < 2 && p.Group.Firing < 2 {
		return
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(p.Group.Labels)) {
		labels = append(labels, r.word(name)+"="+p.Group.Labels[name])
	}
	s.fact(r.label("group"), strings.Join(labels, ", "))
	if p.Group.Firing > 0 {
		s.addSentence(sentence(r.lang, "notification.firing", p.Group.Firing))
	}
}

// maxRows is how many rows of counts a notification shows.
const maxRows = 12

// counts sums up a notification that does not list everything.
func (r renderer) counts(s *message, counts []Count, t totals) {
	if len(counts) == 0 {
		return
	}
	left := rest{t.firing + t.resolved, maps.Clone(t.severities)}
	left.of[kindResolved] = t.resolved
	for _, c := range counts[:min(len(counts), maxRows)] {
		where := strings.Trim(c.Class+" · "+c.Target, " ·")
		s.addSentence(fmt.Sprintf("%d × %s (%s) · %s · %s", c.Findings, c.Rule, r.word(c.Severity), where, r.word(c.Status)))
		left.n -= c.Findings
		left.of[kindOf(c.Status, c.Severity)] -= c.Findings
	}
	if left.n > 0 {
		s.addSentence(left.words(r.lang))
	}
}

// maxEvidence is how many lines of evidence of one finding are shown.
const maxEvidence = 4

func (r renderer) finding(e PayloadFinding) part {
	firing := e.Status != string(locksteward.StatusResolved)
	p := part{level: levelOf(firing, e.Severity), kind: kindOf(e.Status, e.Severity)}
	p.head = strings.TrimSpace(r.word(e.Status) + " " + r.word(e.Severity) + " · " + tidy(e.Rule))
	if e.Risk != "" {
		p.head += " · " + r.word(e.Risk)
	}
	add := func(label, text string) { p.lines = fact(p.lines, r.label(label), text) }
	add("", e.Summary)
	add("lock", lockName(e.Key))
	add("target", where(e.Target, e.DB, e.Class, e.Library))
	add("subject", e.Subject)
	if firing {
		add("since", r.since(cmp.Or(e.Since, e.FiredAt), e.At))
		add("proof", r.wordOrNone(e.Proof))
		for i, text := range e.Evidence {
			if i == maxEvidence {
				add("", sentence(r.lang, "notification.more", len(e.Evidence)-i))
				break
			}
			add("evidence", text)
		}
		for _, text := range e.CounterEvidence[:min(len(e.CounterEvidence), maxEvidence)] {
			add("against", text)
		}
		add("cause", e.Cause)
		add("remedy", e.Remedy)
	} else if !e.FiredAt.IsZero() && e.ResolvedAt.After(e.FiredAt) {
		add("lasted", e.ResolvedAt.Sub(e.FiredAt).Round(time.Second).String())
	}
	add("team", e.Team)
	p.links = addLink(p.links, r.word("runbook"), e.RunbookURL)
	if len(p.links) == 0 {
		add("runbook", e.RunbookURL)
	}
	p.links = addLink(p.links, r.word("console"), e.URL)
	return p
}

// label is a word before a fact.
func (r renderer) label(word string) string {
	if word == "" {
		return ""
	}
	return sentence(r.lang, "notification.label", r.word(word))
}

func (r renderer) wordOrNone(w string) string {
	if w == "" {
		return ""
	}
	return r.word(w)
}

// where is such as "redis/0 · orders · redsync".
func where(target string, db int, class, library string) string {
	out := []string{target}
	if db != 0 {
		out[0] += fmt.Sprintf("/%d", db)
	}
	for _, s := range []string{class, library} {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, " · ")
}

// since is a time with how long that was before another.
func (r renderer) since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	text := clock(t)
	if ago := now.Sub(t).Round(time.Second); ago > 0 {
		text += " (" + ago.String() + ")"
	}
	return text
}

// clock is a time as all notifications write it.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
