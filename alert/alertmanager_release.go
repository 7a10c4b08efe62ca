package alert

import (
	"strconv"
	"time"
)

// The types of notifications about releases, as package release names them, and what
// Alertmanager is to make of them.
const (
	typeRequested    = "release.requested"
	typeReminder     = "release.reminder"
	typeSelfApproved = "release.self_approved"
	typeAuto         = "release.auto"
	typeBreakGlass   = "release.break_glass"
	typeFinal        = "release.final"
	typeUnknown      = "release.unknown"
	typeResurrected  = "release.resurrected"
	typePaused       = "release.paused"
	typeBreaker      = "release.breaker"
)

// releaseSeverity is how urgent an event is for people.
func releaseSeverity(kind string) string {
	switch kind {
	case typeBreakGlass, typeUnknown, typeResurrected, typeBreaker:
		return "critical"
	case typeAuto, typeFinal:
		return "info"
	default:
		return "warning"
	}
}

// needsDecision reports whether somebody must decide: the alert of such an event ends with its
// request.
func needsDecision(kind string) bool { return kind == typeRequested || kind == typeReminder }

// release is an alert for each event. One that asks for a decision ends with the request;
// the others last for a time, so that they are seen however soon the request ends.
func (w alertWriter) release(p Payload, now time.Time) []amAlert {
	if p.Type != typeFinal || p.Release.Request == nil {
		return []amAlert{w.releaseAlert(p, p.Type, now)}
	}
	// With the outcome, for the notification of its end.
	out := make([]amAlert, 0, 2)
	for _, kind := range []string{typeRequested, typeReminder} {
		a := w.releaseAlert(p, kind, now)
		if created := p.Release.Request.CreatedAt; !created.IsZero() && created.Before(a.StartsAt) {
			a.StartsAt = created
		}
		a.EndsAt = p.Release.At
		out = append(out, a)
	}
	return out
}

// releaseAlert is the alert of an event of the given kind. What does not belong to
// the request alone stays out of the labels of what ends with it.
func (w alertWriter) releaseAlert(p Payload, kind string, now time.Time) amAlert {
	e := p.Release
	labels := map[string]string{"severity": releaseSeverity(kind), "target": e.Target, "team": e.Team}
	if p.Loud && !needsDecision(kind) {
		labels["loud"] = "true"
	}
	ends := now.Add(eventLasts)
	if !needsDecision(kind) {
		labels["event"] = e.EventID
	}
	r := e.Request
	if r == nil {
		a := w.event(labels, alertName(kind)[len(alertPrefix):], e.Text, p.URL, e.At, ends)
		annotate(a, map[string]string{"actor": e.Actor, "runbook_url": e.RunbookURL})
		return a
	}
	labels["target"], labels["db"], labels["class"], labels["key"] = r.Target, strconv.Itoa(r.DB), r.Class, r.Key.Key
	labels["request"] = r.ID
	if needsDecision(kind) && !r.ExpiresAt.IsZero() {
		ends = r.ExpiresAt
	}
	link := r.URL
	if link == "" {
		link = p.URL
	}
	a := w.event(labels, alertName(kind)[len(alertPrefix):], e.Text, link, e.At, ends)
	annotate(a, map[string]string{
		"actor": e.Actor, "act": r.Act, "requester": r.Requester, "reason": r.Reason, "state": r.State, "outcome": r.Outcome,
		"runbook_url": e.RunbookURL,
	})
	return a
}

func annotate(a amAlert, more map[string]string) {
	for k, v := range more {
		if v != "" {
			a.Annotations[k] = cutBytes(v, maxAnnotation)
		}
	}
}
