package alert

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
)

// The words of a message about what it does not list, and those of kinds.
var (
	leftOut = map[string]*regexp.Regexp{
		"en": regexp.MustCompile(`and (\d+) more((?:[:,] \d+ (?:critical|warning|info|over|notified before))*)`),
		"zh": regexp.MustCompile(`另有 (\d+) 项未列出((?:[：，](?:严重|警告|提示|已恢复|此前已通知) \d+)*)`),
	}
	leftOutOf = map[string]*regexp.Regexp{
		"en": regexp.MustCompile(`(?P<n>\d+) (?P<kind>critical|warning|info|over|notified before)`),
		"zh": regexp.MustCompile(`(?P<kind>严重|警告|提示|已恢复|此前已通知) (?P<n>\d+)`),
	}
)

// toldOf is how many findings of each kind the text of a message lists or counts.
func toldOf(t *testing.T, lang, text string) map[string]int {
	t.Helper()
	text = strings.NewReplacer(noWidth, "", `\u200b`, "").Replace(text) // as it is, and escaped in JSON
	out := map[string]int{}
	for _, severity := range severities {
		out[severity] = strings.Count(text, translate(lang, "firing")+" "+translate(lang, severity)+" · ")
		out[kindResolved] += strings.Count(text, translate(lang, "resolved")+" "+translate(lang, severity)+" · ")
	}
	all := leftOut[lang].FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return out
	}
	said := all[len(all)-1] // others are of the sums above the list
	sum, re := 0, leftOutOf[lang]
	for _, m := range re.FindAllStringSubmatch(said[2], -1) {
		n, err := strconv.Atoi(m[re.SubexpIndex("n")])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
		for _, kind := range []string{"critical", "warning", "info", kindResolved, kindNotified} {
			word := kind
			if w, ok := kindWords[kind]; ok {
				word = w
			}
			if translate(lang, word) == m[re.SubexpIndex("kind")] {
				out[kind] += n
			}
		}
	}
	if fmt.Sprint(sum) != said[1] {
		t.Errorf("%q does not add up", said[0])
	}
	return out
}

// shapes are the texts of a message in the forms of all receivers that people read, and
// of those whose programs show it to them.
func shapes(t *testing.T, p Payload) map[string]string {
	t.Helper()
	page := renderer{lang: p.Lang}.render(p)
	html, err := page.html()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := details(p, page, latest(p.Findings))["text"].(string)
	out := map[string]string{"mail": page.plain(), "mail as HTML": html, "pagerduty": text}
	for _, kind := range peopleKinds {
		out[kind] = string(pageOf(kind, page))
	}
	return out
}

// stormOf has so many findings of each kind, the worst last, in so many classes.
func stormOf(name string, kinds map[string]int, classes int) []locksteward.PendingEvent {
	var out []locksteward.PendingEvent
	n := uint64(0)
	for _, kind := range []string{kindResolved, "info", "warning", "critical"} {
		for range kinds[kind] {
			n++
			tr := fire(fmt.Sprintf("lock:%s:%d", name, n), n)
			tr.Finding = found(tr.Finding.Key, locksteward.SeverityCritical, locksteward.StatusFiring)
			tr.Finding.Class = fmt.Sprint("orders", n%uint64(classes))
			switch kind {
			case kindResolved:
				tr.Finding.Status, tr.Finding.ResolvedAt = locksteward.StatusResolved, sampleTime
			case "info":
				tr.Finding.Severity = locksteward.SeverityInfo
			case "warning":
				tr.Finding.Severity = locksteward.SeverityWarning
			}
			e := eventOfTransition(tr)
			e.Seq = int64(n)
			out = append(out, locksteward.PendingEvent{FindingEvent: e, Known: kind == kindResolved})
		}
	}
	return out
}

// "Drop policy only for non-critical and counted" is what the reference wants of a storm.
// Here nothing is dropped: each change is stored, is on the page of findings, and comes
// to each receiver that programs read. A message for people is a summary that lists the
// worst. What it does not list, for its own cap or for want of room at the service, it
// counts by severity, so that nothing critical goes unsaid, with the link to the list of
// all. Every severity of a storm is listed or counted as what it is, in each form that a
// message has, and the title says the same.
// fault: 84
func TestNothingCriticalIsLeftOutUnsaid(t *testing.T) {
	t.Parallel()
	storm := map[string]int{"critical": 40, "warning": 200, "info": 7, kindResolved: 9}
	fires := map[string]int{"critical": 40, "warning": 200, "info": 7}
	long := strings.Repeat("锁", 900) // the services have no room for ten of these
	for _, lang := range []string{"en", "zh"} {
		due := map[string]struct {
			due  locksteward.DueGroup
			want map[string]int
		}{
			"news":         {locksteward.DueGroup{Group: "g", Now: sampleTime, Firing: 9, Waiting: stormOf("a", storm, 1)}, storm},
			"long names":   {locksteward.DueGroup{Group: "g", Now: sampleTime, Firing: 9, Waiting: stormOf(long, storm, 1)}, storm},
			"many classes": {locksteward.DueGroup{Group: "g", Now: sampleTime, Firing: 9, Waiting: stormOf("b", storm, 120)}, storm}, // more than there are sums in a message
			"only ended":   {locksteward.DueGroup{Group: "g", Now: sampleTime, Firing: 30, Waiting: stormOf("c", map[string]int{kindResolved: 30}, 1)}, map[string]int{kindResolved: 30}},
			"first_sweep":  {locksteward.DueGroup{Group: firstSweepPrefix + "redis", Now: sampleTime, Waiting: stormOf("d", fires, 1)}, fires},
		}
		again := locksteward.DueGroup{Group: "g", Now: sampleTime, LastAt: sampleTime.Add(-DefaultRepeat), Firing: 250}
		for _, w := range stormOf("e", fires, 1) {
			again.FiringEvents = append(again.FiringEvents, w.FindingEvent)
		}
		standing := maps.Clone(fires)
		standing[kindNotified] = 3 // the store did not read them
		due["repeat"] = struct {
			due  locksteward.DueGroup
			want map[string]int
		}{again, standing}
		for name, tc := range due {
			for i := range tc.due.Waiting {
				tc.due.Waiting[i].FirstSweep = name == "first_sweep"
			}
			how := traits{people: true, cap: peopleCap}
			a := newWriter(Config{ConsoleURL: "https://locks.example"}.withDefaults(), Receiver{Name: "ops", Lang: lang, KeyNames: KeyNamesFull}, how, Hooks{})
			c := &composer{writer: a, heldBy: func(locksteward.Finding) string { return "" }}
			_, messages := c.compose([]locksteward.DueGroup{tc.due})
			if len(messages) != 1 {
				t.Fatalf("%s %s: %d messages", lang, name, len(messages))
			}
			p := decoded(messages[0].Body)
			for kind, text := range shapes(t, p) {
				got := toldOf(t, lang, text)
				maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
				if !maps.Equal(got, tc.want) {
					t.Errorf("%s %s, %s: reported %v, want %v:\n%s", lang, name, kind, got, tc.want, text)
				}
				if kind != "pagerduty" && !strings.Contains(text, "https://locks.example/findings") {
					t.Errorf("%s %s, %s: no link to the list", lang, name, kind)
				}
			}
			page := renderer{lang: lang}.render(p)
			if bad := tc.want["critical"] > 0; bad != (page.level == levelCritical) || bad != page.urgent {
				t.Errorf("%s %s: tone %d, urgent %t", lang, name, page.level, page.urgent)
			}
			for _, severity := range severities {
				if n := tc.want[severity]; n > 0 && !strings.Contains(page.title, severityWords(lang, n, severity)) {
					t.Errorf("%s %s: the title %q does not say %d %s", lang, name, page.title, n, severity)
				}
			}
			left := 0
			for _, n := range p.OmittedBy {
				left += n
			}
			if left != p.Omitted || p.Omitted != c.omitted {
				t.Errorf("%s %s: %v of %d are omitted, %d in the counter", lang, name, p.OmittedBy, p.Omitted, c.omitted)
			}
		}
	}
}

// The list that a message leads to has all that the message is about, also where there
// are more classes than it sums up.
// fault: 84
func TestLinkOfAStormLeadsToAll(t *testing.T) {
	t.Parallel()
	waiting := stormOf("a", map[string]int{"critical": 60, "warning": 10}, 1)
	for i := range waiting {
		waiting[i].Finding.Class = fmt.Sprint("c", i)
		if waiting[i].Finding.Severity == locksteward.SeverityWarning { // not among the sums
			waiting[i].Finding.Rule = "hold/too-long"
		}
	}
	for group, want := range map[string]string{
		"target": "https://locks.example/findings?target=redis", "rule": "https://locks.example/findings?rule=ttl%2Fnone", "db": "https://locks.example/findings",
	} {
		a := newWriter(Config{ConsoleURL: "https://locks.example"}.withDefaults(), Receiver{
			Name: "ops", Lang: "en", KeyNames: KeyNamesFull, Grouping: &Regrouping{By: []string{group}},
		}, traits{people: true, cap: peopleCap}, Hooks{})
		c := &composer{writer: a, heldBy: func(locksteward.Finding) string { return "" }}
		mine := waiting
		if group == "rule" {
			mine = waiting[10:]
		}
		_, messages := c.compose([]locksteward.DueGroup{{Group: "g", Now: sampleTime, Waiting: mine}})
		p := decoded(messages[0].Body)
		if len(p.Counts) != maxCounts || p.URL != want {
			t.Errorf("by %s: %d sums, the link is %s, want %s", group, len(p.Counts), p.URL, want)
		}
		for _, n := range p.Counts {
			if n.Severity != "critical" {
				t.Errorf("by %s: %+v stands where something critical does not", group, n)
			}
		}
	}
}

// A template that writes more than a service has room for says nothing of the findings
// in the end: all of them are left out.
func TestTemplateWithoutRoomCountsAll(t *testing.T) {
	t.Parallel()
	s := renderer{lang: "en"}.render(shownSamples("en")["mixed"])
	s.text = "of a template"
	if got := s.bare().more.words("en"); got != "and 3 more: 1 critical, 1 warning, 1 over" {
		t.Errorf("got %q", got)
	}
}
