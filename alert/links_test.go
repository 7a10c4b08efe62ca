package alert

import (
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

func TestLinksLeadToTheConsole(t *testing.T) {
	t.Parallel()
	event := func(rule, target, class, runbook string) Event {
		return Event{Finding: api.Finding{Rule: rule, Target: target, Class: class, Fingerprint: "0f5d", RunbookURL: runbook}}
	}
	p := Payload{Type: "findings.firing", Findings: []Event{event("ttl/none", "redis", "orders", ""), event("ttl/none", "cache", "orders", "https://wiki")}}
	links("https://h/console/").fill(&p)
	if e := p.Findings[0]; e.URL != "https://h/console/findings/0f5d" || e.RunbookURL != "https://h/console/rules/ttl/none" {
		t.Errorf("got %+v", e)
	}
	if e := p.Findings[1]; e.RunbookURL != "https://wiki" {
		t.Errorf("the runbook of the class was replaced: %+v", e)
	}
	if p.URL != "https://h/console/findings?class=orders&rule=ttl%2Fnone" {
		t.Errorf("got %s", p.URL)
	}
	for name, c := range map[string]struct {
		p    Payload
		want string
	}{
		"one":      {Payload{Findings: []Event{event("ttl/none", "r", "c", "")}}, "https://h/findings/0f5d"},
		"one of 5": {Payload{Findings: []Event{event("ttl/none", "r", "a&b", "")}, Omitted: 4}, "https://h/findings?class=a%26b&rule=ttl%2Fnone&target=r"},
		"digest":   {Payload{Counts: []Count{{Rule: "a/b", Target: "x", Class: "c"}, {Rule: "d/e", Target: "y", Class: "f"}}}, "https://h/findings"},
		"request":  {Payload{Release: &ReleaseEvent{Request: &ReleaseRequest{ID: "r-1/../x"}}}, "https://h/requests/r-1%2F..%2Fx"},
		"stop":     {Payload{Release: &ReleaseEvent{}}, "https://h/release-pause"},
		"test":     {Payload{Type: typeTest}, "https://h/"},
	} {
		links("https://h").fill(&c.p)
		if c.p.URL != c.want {
			t.Errorf("%s: got %q, want %q", name, c.p.URL, c.want)
		}
		if c.p.Release != nil && c.p.Release.Request != nil && c.p.Release.Request.URL != c.want {
			t.Errorf("%s: the request's is %q", name, c.p.Release.Request.URL)
		}
	}
}

func TestRequestsHaveTheRunbookOfTheirRule(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"": "https://h/rules/ttl/none", "https://wiki": "https://wiki"} {
		p := Payload{Release: &ReleaseEvent{RunbookURL: own, Request: &ReleaseRequest{ID: "r-1", Findings: []string{"ttl/none", "holder/dead"}}}}
		links("https://h").fill(&p)
		if p.Release.RunbookURL != want {
			t.Errorf("got %q, want %q", p.Release.RunbookURL, want)
		}
	}
}

func TestNoLinksWithoutAConsole(t *testing.T) {
	t.Parallel()
	p := Payload{Findings: []Event{eventOf(found("k", locksteward.SeverityWarning, locksteward.StatusFiring), 1, "en")}}
	links("").fill(&p)
	if p.URL != "" || p.Findings[0].URL != "" {
		t.Errorf("got %+v", p)
	}
}

// Rules of one's own have no page in the console.
func TestCustomRulesHaveNoPage(t *testing.T) {
	t.Parallel()
	if got := links("https://h").rule("custom/old-batch"); got != "" {
		t.Errorf("got %q", got)
	}
}
