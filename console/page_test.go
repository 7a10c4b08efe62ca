package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", `\u0000`).Replace(s) + `"`
}

func TestPageShowsWhatMatters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.do("", "GET", "/", "")
	if a.status != http.StatusOK || a.head.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("status %d, %s", a.status, a.head.Get("Content-Type"))
	}
	for _, want := range []string{
		"The lock never expires", "lock:order:42", "a crash between SETNX and EXPIRE", "request its release", "PTTL is -1", "seen for 1m only",
		"deadlock risk", "<th scope=\"col\">Library</th>", `<b class="warn">none</b>`, "≥ 1h 0m", "read only: no users are configured", "1 more finding is",
		"waits for an approver", "Released; 0 waiters woken.", "with approval", `<meta name="viewport"`, `lang="en"`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if i, j := strings.Index(a.body, `<code class="key">lock:order:42`), strings.LastIndex(a.body, `<code class="key">lock:order:43`); i < 0 || j < i {
		t.Error("locks are not sorted by age")
	}
	if zh := b.do("", "GET", "/?lang=zh", ""); !strings.Contains(zh.body, "锁永不过期") {
		t.Error("lang=zh has no Chinese text")
	}
	if r := b.do("", "GET", "/?refresh=10", ""); !strings.Contains(r.body, `http-equiv="refresh" content="10"`) || strings.Contains(a.body, "http-equiv") {
		t.Error("refresh is not as asked for")
	}
}

// The targets' table says how each is watched, what was missed, what looking may
// cost and who paused it.
func TestPageShowsTheWatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.targets = append(b.world.targets, api.Target{
		Name: "old", Up: true, Paused: &api.Pause{By: "ann", Since: at},
		Watch:  &api.Watch{Mode: "sweep", Reason: "CLIENT TRACKING is refused: grant +client|tracking", Missed: 3},
		Budget: &api.Budget{MaxServerShare: 1, Degraded: []string{"PEXPIRETIME is refused"}},
	})
	body := b.do("", "GET", "/", "").body
	for _, want := range []string{
		"tracking, blind for 1.2s", "2 % of a server", "waited 5.4s, mostly for share",
		`<b class="warn">3 missed</b>`, "CLIENT TRACKING is refused: grant &#43;client|tracking", "no limit", "PEXPIRETIME is refused",
		"<b>paused</b> by ann",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// What is told in place of an inhibited finding stands on it, behind those that
// people are told of.
func TestPageSaysWhatInhibits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	host := aFinding("")
	host.Rule, host.Severity, host.Class, host.Subject = "host/lost", locksteward.SeverityWarning, "", "web-3"
	host.Summary.EN = "host web-3 is lost"
	one := aFinding("lock:order:42")
	one.InhibitedBy = host.Fingerprint()
	other := aFinding("lock:order:43")
	other.InhibitedBy = "0123456789abcdef0123456789abcdef"
	b.world.findings = []locksteward.Finding{one, host, other}
	body := b.do("", "GET", "/", "").body
	for _, want := range []string{
		"<title>(1) Locksteward</title>", "<b>host/lost of web-3</b> is told in its place",
		"<b>finding 0123456789abcdef0123456789abcdef</b> is told in its place",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Index(body, "host web-3 is lost") > strings.Index(body, "The lock never expires") {
		t.Error("what explains the others does not come first")
	}
}

// A lock's mode and the time in its value are shown beside what was observed.
func TestPageShowsWhatTheValueSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := aLock("lock:job", time.Minute)
	l.Acquired, l.Mode = at.Add(-time.Hour), "read"
	early := aLock("lock:early", time.Minute)
	early.Acquired = at.Add(time.Hour)
	b.world.locks = []locksteward.Lock{l, early}
	body := b.do("", "GET", "/", "").body
	for _, want := range []string{
		`token <small class="dim">read</small>`, "its value says 2026-03-01 11:00:00 UTC", "≥ 1h 0m",
		"its value says 2026-03-01 13:00:00 UTC, not counted: it lies in the future", "≥ 1m 0s",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestPageIsInert(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := aLock(hostile, time.Minute)
	l.Class, l.Dialect = hostile, hostile
	l.Holder = locksteward.Holder{App: hostile, Host: hostile}
	f := aFinding(hostile)
	f.Class, f.Team, f.Target, f.RunbookURL = hostile, hostile, hostile, "javascript:alert(1)"
	f.Summary, f.Cause, f.Remedy = locksteward.Text{EN: hostile}, locksteward.Text{EN: hostile}, locksteward.Text{EN: hostile}
	f.Evidence, f.CounterEvidence = []string{hostile}, []string{hostile}
	l.Mode, l.Acquired = hostile, at.Add(time.Hour)
	f.InhibitedBy = hostile
	r := pending()
	r.ID, r.Reason, r.Requester, r.Evidence.Key = hostile, hostile, hostile, hostile
	r.Decisions = []locksteward.Decision{{By: hostile}}
	b.world.locks, b.world.findings, b.world.requests = []locksteward.Lock{l}, []locksteward.Finding{f}, []locksteward.Request{r}
	b.world.targets = append(b.world.targets, api.Target{Name: hostile, Reason: hostile}, api.Target{
		Name: hostile, Up: true, LastSweep: &api.Swept{Incomplete: []api.Incomplete{{Node: hostile, Reason: hostile}}},
	})
	a := b.do("", "GET", "/", "")
	if a.status != http.StatusOK {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	for _, bad := range []string{"<script", "javascript:", "\x00", "\u202e", "\xff"} {
		if strings.Contains(a.body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(a.body, `lock:\xff\n`) || !strings.Contains(a.body, "&lt;script&gt;") {
		t.Error("the key is not shown")
	}
	if csp := a.head.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src") {
		t.Errorf("policy %q", csp)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
		if a.head.Get(name) != want {
			t.Errorf("%s is %q", name, a.head.Get(name))
		}
	}
	if strings.Contains(a.body, "style=") || strings.Contains(a.body, "<style") || strings.Contains(strings.ToLower(a.body), " onclick") {
		t.Error("the page has what its policy forbids")
	}
}

func TestPageSaysWhyItIsEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		targets []api.Target
		want    []string
		not     []string
	}{
		"no targets": {nil, []string{"No targets are configured. Add one"}, []string{"Nothing needs a person"}},
		"quiet":      {newWorld().targets, []string{"Nothing needs a person now.", "No locks are held."}, nil},
		"down": {
			[]api.Target{{Name: "orders", Reason: "connection refused: start it"}},
			[]string{"Target orders", "connection refused: start it", "No locks were seen yet: orders is down"},
			[]string{"Nothing needs a person"},
		},
		"first sweep": {
			[]api.Target{{Name: "orders", Up: true}},
			[]string{"orders had no complete sweep", "none yet"},
			[]string{"Nothing needs a person", "No locks are held"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.world.locks, b.world.findings, b.world.requests, b.world.targets = nil, nil, nil, c.targets
			body := b.do("", "GET", "/", "").body
			for _, want := range append(c.want, "Nobody has asked for a release") {
				if !strings.Contains(body, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(body, not) {
					t.Errorf("%q is there", not)
				}
			}
		})
	}
}

func TestPageStaysSmall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.locks, b.world.findings = nil, nil
	for n := range 20_000 {
		key := fmt.Sprintf("lock:order:%d:%s", n, strings.Repeat("x", 40))
		b.world.locks = append(b.world.locks, aLock(key, time.Duration(n)*time.Second))
		b.world.findings = append(b.world.findings, aFinding(key))
	}
	b.world.locks[0].Key = strings.Repeat("k", 1<<20)
	body := b.do("", "GET", "/", "").body
	if len(body) > 100<<10 {
		t.Errorf("the page is %d bytes", len(body))
	}
	if !strings.Contains(body, "19975 more") || !strings.Contains(body, "The first 100 of 20000") {
		t.Error("the page does not say what it leaves out")
	}
}

func TestStylesheet(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	a := b.do("", "GET", "/console.css", "")
	if a.status != http.StatusOK || a.head.Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(a.body, "light-dark(") || !strings.Contains(a.body, "max-width: 46rem") {
		t.Errorf("status %d, %s", a.status, a.head.Get("Content-Type"))
	}
	if strings.Contains(a.body, "url(") || strings.Contains(a.body, "@import") {
		t.Error("the sheet loads something")
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", 1500 * time.Microsecond: "1ms", 1250 * time.Millisecond: "1.2s", 59999 * time.Millisecond: "59.9s", time.Minute: "1m 0s",
		2*time.Hour + 5*time.Minute: "2h 5m", 49 * time.Hour: "2d 1h", -time.Second: "0s",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}
