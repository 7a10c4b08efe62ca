package alert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

const (
	// alertPrefix begins the names of all alerts.
	alertPrefix = "Locksteward"
	// eventLasts is how long an alert about an event lasts: longer than the group_interval of
	// an Alertmanager, which drops alerts that end before their group is flushed.
	eventLasts = time.Hour
	// Bounds in bytes: the name of a lock can be as long as its writer likes.
	maxLabel      = 1 << 10
	maxAnnotation = 4 << 10
)

// amAlert is an alert as Alertmanager's API v2 takes it: api/v2/openapi.yaml of
// prometheus/alertmanager, postableAlert.
type amAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// alertWriter makes alerts of notifications. Labels identify an alert, so those of a fire
// and of its resolve are made in one place.
type alertWriter struct{ resolveAfter time.Duration }

func (w alertWriter) alerts(p Payload, now time.Time) []amAlert {
	switch {
	case p.Type == typeFirstSweep:
		return w.firstSweep(p, now)
	case strings.HasPrefix(p.Type, typeFindings):
		return w.findings(p, now)
	case p.Release != nil:
		return w.release(p, now)
	default:
		a := w.event(map[string]string{"severity": "info", "event": p.ID, "team": p.Team}, "Test", p.Text, p.URL, p.Timestamp, now.Add(w.resolveAfter))
		annotate(a, map[string]string{"runbook_url": p.RunbookURL})
		return []amAlert{a}
	}
}

// findings are the last states of all findings of a notification.
func (w alertWriter) findings(p Payload, now time.Time) []amAlert {
	last := map[string]int{}
	for i, e := range p.Findings {
		last[e.Fingerprint] = i
	}
	var out []amAlert
	for i, e := range p.Findings {
		if last[e.Fingerprint] != i {
			continue
		}
		out = append(out, w.finding(e, now))
		if changed(e) {
			out = append(out, w.before(e)...)
		}
	}
	return out
}

// changed reports whether the event is a change of a finding that fired before. Its times
// are of one reading, or rounded.
func changed(e PayloadFinding) bool {
	return e.Status == string(locksteward.StatusFiring) && !e.FiredAt.IsZero() && e.At.After(e.FiredAt.Add(time.Millisecond))
}

// before ends the alerts of the severities that the finding had: for Alertmanager
// those are other alerts.
func (w alertWriter) before(e PayloadFinding) []amAlert {
	var out []amAlert
	for _, s := range []locksteward.Severity{locksteward.SeverityWarning, locksteward.SeverityCritical} {
		if s.String() == e.Severity {
			continue
		}
		old := e
		old.Severity, old.Status, old.ResolvedAt = s.String(), string(locksteward.StatusResolved), e.At
		out = append(out, w.finding(old, e.At))
	}
	return out
}

// finding is the alert of one finding: a firing one ends by itself some time after now.
func (w alertWriter) finding(e PayloadFinding, now time.Time) amAlert {
	labels := map[string]string{
		"alertname": alertName(e.Rule), "rule": e.Rule, "severity": e.Severity, "target": e.Target, "db": strconv.Itoa(e.DB),
		"class": e.Class, "key": e.Key.Key, "team": e.Team, "fingerprint": e.Fingerprint, "risk": e.Risk,
	}
	annotations := map[string]string{
		"summary": e.Summary, "cause": e.Cause, "remedy": e.Remedy, "evidence": strings.Join(e.Evidence, "\n"),
		"counter_evidence": strings.Join(e.CounterEvidence, "\n"), "unlock": e.Unlock, "runbook_url": e.RunbookURL, "console_url": e.URL,
	}
	starts := e.FiredAt
	if starts.IsZero() {
		starts = e.At
	}
	ends := now.Add(w.resolveAfter)
	if e.Status == string(locksteward.StatusResolved) {
		ends = e.ResolvedAt
		if ends.IsZero() {
			ends = e.At
		}
	}
	return newAlert(labels, annotations, starts, ends, e.URL)
}

// alertName is Locksteward and the words of a rule: ttl/none is LockstewardTtlNone.
func alertName(rule string) string {
	var b strings.Builder
	b.WriteString(alertPrefix)
	for _, word := range strings.FieldsFunc(rule, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// firstSweep is one alert for each target that was swept for the first time.
func (w alertWriter) firstSweep(p Payload, now time.Time) []amAlert {
	found := map[string]int{}
	lines := map[string][]string{}
	for _, c := range p.Counts {
		found[c.Target] += c.Findings
		lines[c.Target] = append(lines[c.Target], fmt.Sprintf("%s: %d × %s, %s", c.Severity, c.Findings, c.Rule, c.Class))
	}
	var out []amAlert
	for _, target := range slices.Sorted(maps.Keys(found)) {
		text := catalogue.Text(p.Lang, locksteward.NewMessage("notification.first-sweep", target, found[target]))
		a := w.event(map[string]string{"severity": "info", "target": target}, "FirstSweep", text, p.URL, p.Timestamp, now.Add(eventLasts))
		annotate(a, map[string]string{"findings": strings.Join(lines[target], "\n"), "runbook_url": manual + "rules/README.md"})
		out = append(out, a)
	}
	return out
}

// event is an alert about something that happened.
func (w alertWriter) event(labels map[string]string, name, text, link string, starts, ends time.Time) amAlert {
	labels["alertname"] = alertPrefix + name
	return newAlert(labels, map[string]string{"summary": text, "console_url": link}, starts, ends, link)
}

// newAlert leaves out what is empty, as Alertmanager does, and bounds the rest.
func newAlert(labels, annotations map[string]string, starts, ends time.Time, link string) amAlert {
	for _, part := range []struct {
		of    map[string]string
		limit int
	}{{labels, maxLabel}, {annotations, maxAnnotation}} {
		for k, v := range part.of {
			if v = cutBytes(v, part.limit); v == "" {
				delete(part.of, k)
			} else {
				part.of[k] = v
			}
		}
	}
	if ends.Before(starts) {
		ends = starts // an alert that ends before it begins is refused
	}
	return amAlert{Labels: labels, Annotations: annotations, StartsAt: starts.UTC(), EndsAt: ends.UTC(), GeneratorURL: link}
}
