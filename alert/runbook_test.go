package alert

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
)

// everyMessage are messages of all types, of all rules and one of one's own, as a
// receiver gets them of which classes say nothing.
func everyMessage(t *testing.T, to writer) map[string]Payload {
	t.Helper()
	out := map[string]Payload{}
	take := func(name string, m locksteward.Notification, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out[name] = decoded(m.Body)
	}
	c := composer{writer: to}
	for _, rule := range append(documentedRules(t), "custom/old-batch") {
		for _, status := range []locksteward.Status{locksteward.StatusFiring, locksteward.StatusResolved} {
			f := fire("lock:order:42", 1)
			f.Finding.Rule, f.Finding.Status = rule, status
			m, err := to.newsOf(f)
			take(rule+" "+string(status), m, err)
		}
	}
	changes := func() []locksteward.FindingEvent {
		return []locksteward.FindingEvent{eventOfTransition(fire("lock:order:42", 1)), eventOfTransition(fire("lock:order:43", 2))}
	}
	for _, why := range []Reasoning{ReasonFirstSweep, ReasonDigest, ReasonRepeat} {
		made := c.message(why, &Group{Key: "g", Labels: map[string]string{"target": "redis"}}, "", changes())
		if len(made) != 1 {
			t.Fatal(c.err)
		}
		take(string(why), made[0], nil)
	}
	for _, kind := range releaseTypes {
		n := glass()
		n.Kind = kind
		m, err := releaseNotification(to, n, 1)
		take(kind, m, err)
		n.Request = locksteward.Request{}
		m, err = releaseNotification(to, n, 1)
		take(kind+" of no request", m, err)
	}
	m, err := testNotification(to, "ana", sampleTime, 14)
	take(typeTest, m, err)
	return out
}

// runbooksOf are the teams and runbooks of what a message is about.
func runbooksOf(p Payload) (teams, runbooks []string) {
	for _, e := range p.Findings {
		teams, runbooks = append(teams, e.Team), append(runbooks, e.RunbookURL)
	}
	switch {
	case p.Release != nil:
		return []string{p.Release.Team}, []string{p.Release.RunbookURL}
	case p.Type == typeTest:
		return []string{p.Team}, []string{p.RunbookURL}
	}
	return teams, runbooks
}

// documentedRules are the built-in rules: each has a page.
func documentedRules(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("..", "docs", "rules", "*", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err, len(pages))
	}
	var out []string
	for _, page := range pages {
		out = append(out, filepath.Base(filepath.Dir(page))+"/"+strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	return out
}

// Every message has a runbook, whatever is configured, and the team of the
// installation where a class has none: in the fields and in the texts for people.
func TestTeamAndRunbookAreOnEveryMessage(t *testing.T) {
	t.Parallel()
	for _, console := range []links{"", "https://locks.example"} {
		for _, names := range []string{KeyNamesFull, KeyNamesHash} {
			to := writer{name: "ops", lang: "en", grouping: DefaultGrouping(), traits: person(), team: "platform", links: console, keyNames: names}
			for name, p := range everyMessage(t, to) {
				teams, runbooks := runbooksOf(p)
				if len(runbooks) == 0 || slices.Contains(runbooks, "") || slices.Contains(teams, "") {
					t.Errorf("%s: teams %q, runbooks %q", name, teams, runbooks)
				}
				text := (renderer{lang: "en"}).render(p).plain()
				if !strings.Contains(text, "team: platform") || !strings.Contains(text, "runbook: https://") {
					t.Errorf("%s has no team or no runbook:\n%s", name, text)
				}
				for _, a := range (alertWriter{resolveAfter: 5}).alerts(p, sampleTime) {
					if a.Annotations["runbook_url"] == "" {
						t.Errorf("%s: Alertmanager gets no runbook: %+v", name, a)
					}
				}
				for _, e := range (&pagerDuty{chatReceiver: &chatReceiver{}}).events(p) {
					body, err := json.Marshal(e)
					if err != nil || e.Action == pdTrigger && !strings.Contains(string(body), runbooks[0]) {
						t.Errorf("%s: PagerDuty gets no runbook: %s, %v", name, body, err)
					}
				}
			}
		}
	}
}

// That of the class comes first, then the console's page, then the manual's, which is
// there.
func TestRunbooksInTheirOrder(t *testing.T) {
	t.Parallel()
	to := writer{name: "ops", lang: "en", grouping: DefaultGrouping(), traits: person(), keyNames: KeyNamesFull}
	for name, p := range everyMessage(t, to) {
		_, runbooks := runbooksOf(p)
		for _, page := range runbooks {
			path, ok := strings.CutPrefix(page, manual)
			if _, err := os.Stat(filepath.Join("..", "docs", filepath.FromSlash(path))); !ok || err != nil {
				t.Errorf("%s: %s: %v", name, page, err)
			}
		}
	}
	for _, c := range []struct {
		console    links
		rule, own  string
		want, team string
	}{
		{"https://h", "ttl/none", "https://wiki", "https://wiki", "checkout"},
		{"", "ttl/none", "https://wiki", "https://wiki", "checkout"},
		{"https://h", "ttl/none", "", "https://h/rules/ttl/none", ""},
		{"", "ttl/none", "", manual + "rules/ttl/none.md", ""},
		{"https://h", "custom/old-batch", "", manual + "rules/custom.md", ""},
	} {
		to.links = c.console
		f := fire("lock:order:42", 1)
		f.Finding.Rule, f.Finding.RunbookURL, f.Finding.Team = c.rule, c.own, c.team
		m, err := to.newsOf(f)
		if err != nil {
			t.Fatal(err)
		}
		if e := decoded(m.Body).Findings[0]; e.RunbookURL != c.want || e.Team != c.team {
			t.Errorf("%+v: got %q and %q", c, e.RunbookURL, e.Team)
		}
	}
	n := glass()
	n.Team, n.RunbookURL = "checkout", "https://wiki.example/locks"
	m, err := releaseNotification(to, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r := decoded(m.Body).Release; r.Team != "checkout" || r.RunbookURL != "https://wiki.example/locks" {
		t.Errorf("got %+v", r)
	}
}

// The alerts of Prometheus lead to the same manual.
func TestOneManual(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join("..", "grafana", "alerts.yaml"))
	if err != nil || !strings.Contains(string(rules), "runbook_url: "+manual+"runbooks/") {
		t.Errorf("grafana/alerts.yaml does not lead to %s: %v", manual, err)
	}
}
