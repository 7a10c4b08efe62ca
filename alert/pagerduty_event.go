package alert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Bounds of the Events API v2.
const (
	pdSummary = 1024 // characters
	pdText    = 255  // of source, component, group and class, of which none is documented
	pdBody    = 512_000
	pdLinks   = 20
)

// The actions of an event.
const (
	pdTrigger = "trigger"
	pdResolve = "resolve"
)

// pdEvent is the body of a request to the Events API v2.
type pdEvent struct {
	RoutingKey string     `json:"routing_key"`
	Action     string     `json:"event_action"`
	DedupKey   string     `json:"dedup_key"`
	Client     string     `json:"client,omitempty"`
	ClientURL  string     `json:"client_url,omitempty"`
	Links      []pdLink   `json:"links,omitempty"`
	Payload    *pdPayload `json:"payload,omitempty"`
}

type pdLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

type pdPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp time.Time      `json:"timestamp"`
	Component string         `json:"component,omitempty"`
	Group     string         `json:"group,omitempty"`
	Class     string         `json:"class,omitempty"`
	Details   map[string]any `json:"custom_details,omitempty"`
}

// encode leaves the details out of what would be too large.
func (e pdEvent) encode() ([]byte, error) {
	body, err := json.Marshal(e)
	body = locksteward.EscapeJSON(body)
	if err != nil || len(body) <= pdBody || e.Payload == nil {
		return body, err
	}
	p := *e.Payload
	p.Details = map[string]any{"omitted": fmt.Sprintf("the details of %d bytes are more than PagerDuty takes", len(body))}
	e.Payload, e.Links = &p, nil
	body, err = json.Marshal(e)
	return locksteward.EscapeJSON(body), err
}

// events are the events of a notification.
func (d *pagerDuty) events(p Payload) []pdEvent {
	switch {
	case p.Release != nil:
		return []pdEvent{d.ofRelease(p)}
	case !strings.HasPrefix(p.Type, typeFindings):
		// It shows that the key works, and is resolved at once.
		e := d.trigger(p, "test", "info", "", p.Text)
		return []pdEvent{e, closing(e.DedupKey)}
	case p.Group != nil:
		return []pdEvent{d.ofGroup(p)}
	default:
		return d.ofFindings(p)
	}
}

// ofGroup is one alert for as long as anything of the group fires.
func (d *pagerDuty) ofGroup(p Payload) pdEvent {
	key := "group " + p.Group.Key
	if p.Status != string(locksteward.StatusFiring) && p.Group.Firing == 0 {
		return closing(dedupKey(key))
	}
	t := total(p, latest(p.Findings))
	severity := cmp.Or(t.worst, worstOf(p.Counts), "warning")
	if p.Reason == ReasonFirstSweep {
		severity = "info"
	}
	return d.trigger(p, key, severity, p.Group.Labels["target"], "")
}

func worstOf(counts []Count) string {
	worst := ""
	for _, c := range counts {
		worst = worse(worst, c.Severity)
	}
	return worst
}

// ofFindings is one alert for each finding of a notification that is about no group.
func (d *pagerDuty) ofFindings(p Payload) []pdEvent {
	var out []pdEvent
	for _, e := range latest(p.Findings) {
		key := "finding " + e.Fingerprint
		if e.Status != string(locksteward.StatusFiring) {
			out = append(out, closing(dedupKey(key)))
			continue
		}
		one := p
		one.Findings, one.Counts, one.Omitted, one.OmittedBy, one.URL = []PayloadFinding{e}, nil, 0, nil, e.URL
		out = append(out, d.trigger(one, key, e.Severity, e.Target, ""))
	}
	return out
}

// ofRelease is one alert for a request, until the request ends. An event that somebody has
// to look at stays open until they resolve it there.
func (d *pagerDuty) ofRelease(p Payload) pdEvent {
	key := "event " + p.Release.EventID
	if r := p.Release.Request; r != nil {
		switch p.Type {
		case typeFinal:
			return closing(dedupKey("request " + r.ID))
		case typeRequested, typeReminder, typeSelfApproved, typeAuto:
			key = "request " + r.ID
		}
	}
	return d.trigger(p, key, releaseSeverity(p.Type), p.Release.Target, "")
}

// dedupKey is the same for the same thing, within the bound of 255 characters.
func dedupKey(of string) string {
	sum := sha256.Sum256([]byte(of))
	return "locksteward-" + hex.EncodeToString(sum[:16])
}

func closing(key string) pdEvent { return pdEvent{Action: pdResolve, DedupKey: key} }

// trigger opens or updates the alert of a key.
func (d *pagerDuty) trigger(p Payload, key, severity, source, text string) pdEvent {
	page := d.render(p)
	list := latest(p.Findings)
	summary := page.title
	switch {
	case text != "":
		summary += ": " + tidy(text)
	case len(list) == 1 && p.Omitted == 0:
		summary += ": " + tidy(list[0].Summary)
	case p.Release != nil:
		summary += ": " + tidy(p.Release.Text)
	}
	e := pdEvent{
		Action: pdTrigger, DedupKey: dedupKey(key), Client: "Locksteward", ClientURL: safeLink(p.URL),
		Payload: &pdPayload{
			Summary: cut(summary, pdSummary), Source: cut(cmp.Or(tidy(source), "locksteward"), pdText), Severity: severity, Timestamp: p.Timestamp,
			Details: details(p, page, list),
		},
	}
	if len(list) > 0 {
		e.Payload.Class, e.Payload.Group = cut(list[0].Rule, pdText), cut(tidy(list[0].Class), pdText)
	}
	if len(list) == 1 {
		e.Payload.Component = cut(tidy(list[0].Key.Key), pdText)
	}
	links := page.links
	for _, part := range page.parts {
		for _, l := range part.links {
			links = addLink(links, l.text, l.url)
		}
	}
	for _, l := range links[:min(len(links), pdLinks)] {
		e.Links = append(e.Links, pdLink{Href: l.url, Text: l.text})
	}
	return e
}

// details are the text for people, and figures for event rules.
func details(p Payload, page message, list []PayloadFinding) map[string]any {
	out := map[string]any{"type": p.Type, "text": page.plain()}
	if p.Loud {
		out["loud"] = true
	}
	if p.Group != nil {
		out["group"], out["firing"] = p.Group.Labels, p.Group.Firing
	}
	if p.Omitted > 0 {
		out["omitted"], out["omitted_by"] = p.Omitted, p.OmittedBy
	}
	var findings []map[string]string
	for _, e := range list {
		findings = append(findings, map[string]string{
			"rule": e.Rule, "status": e.Status, "severity": e.Severity, "target": e.Target, "class": e.Class, "key": e.Key.Key,
			"team": e.Team, "fingerprint": e.Fingerprint, "runbook_url": e.RunbookURL, "console_url": e.URL,
		})
	}
	if len(findings) > 0 {
		out["findings"] = findings
	}
	return out
}
