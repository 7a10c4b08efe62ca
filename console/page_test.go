package console

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// untimed is a page without the elements around its times.
func untimed(body string) string { return timeTags.ReplaceAllString(body, "") }

var timeTags = regexp.MustCompile(`</?time[^>]*>`)

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", `\u0000`).Replace(s) + `"`
}

func TestPageShowsWhatMatters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, wants := range map[string][]string{
		"/": {
			"The lock never expires", "lock:order:42", "a crash between SETNX and EXPIRE", "request its release", "PTTL is -1", "seen for 1m only",
			"deadlock risk", "read only: no users are configured", "1 more finding is", `<meta name="viewport"`, `lang="en"`,
			"Releases that wait for a decision", "queue is stuck", `href="/requests/r1"`, `href="/rules/ttl/none"`,
			`href="/locks/one?db=0&amp;key=lock%3Aorder%3A42&amp;target=orders"`, `aria-current="page"`,
		},
		"/locks":         {"<th scope=\"col\">Library</th>", `<b class="warn">none</b>`, "≥ 1h 0m", `<span class="tag firing">firing</span>`, "2 of 2 locks"},
		"/requests":      {"Released; 0 waiters woken.", "waits for a decision", `<a href="/requests/r0"><code>r0</code></a>`, "queue is stuck"},
		"/targets":       {"with approval", "10 % of a server that nobody else uses", "complete"},
		"/classes":       {"lock:order:*", "team checkout", "https://wiki/locks", "1 approval", "30s"},
		"/rules":         {"ttl/none", "a lock has no TTL", "1 firing", `href="/rules/ttl/none"`},
		"/findings":      {"The lock never expires", "PTTL is -1", "2 findings"},
		"/audit":         {"release: request", "queue is stuck", "lock:order:42"},
		"/graph":         {"<h1>Who waits for whom</h1>"},
		"/release-pause": {"All releases", "Automatic releases"},
		"/notifications": {"it accepts nothing", "given up", "status 503", "release: break glass", "the oldest for 1m 30s", "status 410"},
		"/silences":      {"team=checkout", "the queue is rebuilt, INC-11", "Include ended ones"},
	} {
		a := b.do("", "GET", path, "")
		if a.status != http.StatusOK || a.head.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: status %d, %s: %s", path, a.status, a.head.Get("Content-Type"), a.body)
		}
		for _, want := range wants {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s: %q is missing", path, want)
			}
		}
		if strings.Contains(a.body, "http-equiv") {
			t.Errorf("%s refreshes unasked", path)
		}
	}
	locks := b.do("", "GET", "/locks", "").body
	if i, j := strings.Index(locks, `<code class="key">lock:order:42`), strings.LastIndex(locks, `<code class="key">lock:order:43`); i < 0 || j < i {
		t.Error("locks are not sorted by age")
	}
	zh := b.do("", "GET", "/?lang=zh", "").body
	if !strings.Contains(zh, "锁永不过期") || !strings.Contains(zh, "PTTL 为 -1") || !strings.Contains(zh, `href="/locks?lang=zh"`) {
		t.Error("lang=zh has no Chinese text, or is lost by links")
	}
	if r := b.do("", "GET", "/?refresh=10", ""); !strings.Contains(r.body, `http-equiv="refresh" content="10"`) {
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
		Budget: &api.Budget{Idle: 0.1, Busy: 0.02, Degraded: []string{"PEXPIRETIME is refused"}},
	})
	body := b.do("", "GET", "/targets", "").body
	for _, want := range []string{
		"the servers report each change (client tracking); changes may have gone unseen for 1.2s since the start", "10 % of a server that nobody else uses, 1 % of one in full use", "10.0.0.1:6379: 2.5 %, others use 50 %", "waited 5.4s in all, mostly because others use the server",
		`<b class="warn">3 changes missed</b>`, "CLIENT TRACKING is refused: grant &#43;client|tracking", "PEXPIRETIME is refused",
		"<b>paused</b> by ann",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// What is reported in place of an inhibited finding stands on it, behind those that
// people are notified of.
func TestPageSaysWhatInhibits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	host := aFinding("")
	host.Rule, host.Severity, host.Class, host.Subject = "host/lost", locksteward.SeverityWarning, "", "web-3"
	host.Summary = locksteward.Literal("host web-3 is lost")
	one := aFinding("lock:order:42")
	one.InhibitedBy = host.Fingerprint()
	other := aFinding("lock:order:43")
	other.InhibitedBy = "0123456789abcdef0123456789abcdef"
	b.world.findings = []locksteward.Finding{one, host, other}
	body := b.do("", "GET", "/", "").body
	for _, want := range []string{
		"<title>(1) Overview · Locksteward</title>", "not notified: covered by <b>host/lost of web-3</b>",
		"not notified: covered by <b>finding 0123456789abcdef0123456789abcdef</b>",
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
	body := untimed(b.do("", "GET", "/locks", "").body)
	for _, want := range []string{
		`token <small class="dim">read</small>`, "its value says 2026-03-01 11:00:00 UTC", "≥ 1h 0m",
		"its value says 2026-03-01 13:00:00 UTC, not counted: it lies in the future", "≥ 1m 0s",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestPagesAreInert(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	l := aLock(hostile, time.Minute)
	l.Class, l.Library = hostile, hostile
	l.Holder = locksteward.Holder{App: hostile, Host: hostile, Session: hostile, Instance: hostile}
	f := aFinding(hostile)
	f.Class, f.Team, f.Target, f.RunbookURL = hostile, hostile, "orders", "javascript:alert(1)"
	f.Summary, f.Cause, f.Remedy = locksteward.Literal(hostile), locksteward.Literal(hostile), locksteward.Literal(hostile)
	f.Evidence, f.CounterEvidence = []locksteward.Message{locksteward.Literal(hostile, hostile)}, []locksteward.Message{locksteward.Literal(hostile)}
	l.Mode, l.Acquired, l.Node, l.TokenKind, l.SharedToken = hostile, at.Add(time.Hour), hostile, hostile, true
	f.InhibitedBy = hostile
	r := pending()
	r.ID, r.Reason, r.Requester, r.Evidence.Key = "r1", hostile, hostile, hostile
	r.Evidence.Findings, r.Evidence.Holder, r.Evidence.ClaimID, r.Evidence.Library = []string{hostile}, l.Holder, hostile, hostile
	r.Decisions = []locksteward.Decision{{By: hostile, Reason: hostile}}
	key := api.LockKey{Target: "orders", Key: hostile}
	w := b.world
	w.locks, w.findings, w.requests = []locksteward.Lock{l}, []locksteward.Finding{f}, []locksteward.Request{r}
	w.past = map[api.LockKey][]api.LockEvent{key: {
		{At: at, Kind: "firing", Rule: hostile, Severity: hostile, Summary: hostile}, {At: at.Add(-time.Hour), Kind: hostile, TokenDigest: hostile, RequestID: hostile},
	}}
	w.entries = []locksteward.Entry{{Seq: 1, At: at, Actor: hostile, Action: hostile, Target: hostile, Key: hostile, Subject: hostile, Reason: hostile, Outcome: hostile}}
	w.targets = append(w.targets, api.Target{Name: hostile, Reason: hostile, Mode: hostile}, api.Target{
		Name: hostile, Up: true, LastSweep: &api.Swept{Incomplete: []api.Incomplete{{Node: hostile, Reason: hostile}}},
		Paused: &api.Pause{By: hostile}, Nodes: []api.Node{{Addr: hostile, Version: hostile}},
		Watch: &api.Watch{Mode: hostile, Reason: hostile, Classes: []api.ClassWatch{{Class: hostile, Coverage: hostile, Reason: hostile}}},
	})
	w.hushed.list = []api.Silence{{ID: hostile, Matchers: []string{"class=" + hostile}, Reason: hostile, CreatedBy: hostile, State: api.SilenceActive, EndsAt: at}}
	w.advice.possible = Possible{NoPlaceholder: hostile, NoUndo: hostile}
	w.graph = &api.Graph{
		Nodes: []api.GraphNode{
			{ID: hostile, Kind: api.NodeLock, Lock: &api.GraphLock{Target: "orders", Key: api.NewKey(hostile), Class: hostile, Waiters: 1}},
			{ID: "s" + hostile, Kind: api.NodeSession, Session: &api.GraphSession{Session: hostile, Purpose: hostile, Holder: api.Holder{App: hostile}}},
		},
		Edges:  []api.GraphEdge{{From: "s" + hostile, To: hostile, Kind: api.EdgeHolds, Cycle: true}, {From: "s" + hostile, To: hostile, Kind: api.EdgeWaitsFor}},
		Cycles: []api.GraphCycle{{Nodes: []string{"s" + hostile, hostile}, Victim: "s" + hostile}},
	}
	q := "?target=orders&db=0&key_b64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(hostile)))
	for _, path := range []string{
		"/", "/locks", "/locks?q=" + url.QueryEscape(hostile), "/locks/one" + q, "/findings", "/findings?rule=" + url.QueryEscape(hostile),
		"/findings/" + f.Fingerprint(), "/findings/" + url.PathEscape(hostile), "/graph", "/requests", "/requests?requester=" + url.QueryEscape(hostile),
		"/requests/r1", "/requests/" + url.PathEscape(hostile), "/bundles/b-1", "/audit", "/audit" + strings.Replace(q, "db=0&", "", 1),
		"/audit?q=" + url.QueryEscape(hostile), "/targets", "/classes", "/rules", "/rules/ttl/none", "/rules/x/" + url.PathEscape(hostile), "/release-pause", "/silences", "/silences?all=true", "/notifications",
		"/nothing/" + url.PathEscape(hostile), "/locks?" + url.QueryEscape(hostile) + "=1",
	} {
		a := b.do("all", "GET", path, "", header("Accept", "text/html"))
		if a.head.Get("Content-Type") != "text/html; charset=utf-8" || a.status >= http.StatusInternalServerError {
			t.Errorf("%s: status %d, %s: %s", path, a.status, a.head.Get("Content-Type"), a.body)
		}
		for _, bad := range []string{"<script>", "javascript:", "\x00", "\u202e", "\xff", "alert(1)</", "style=", "<style"} {
			if i := strings.Index(a.body, bad); i >= 0 {
				t.Errorf("%s has %q: %q", path, bad, a.body[max(0, i-80):i+10])
			}
		}
		for _, tag := range regexp.MustCompile(`<[a-z][^>]*\son[a-z]+=`).FindAllString(a.body, -1) {
			t.Errorf("%s has %s", path, tag)
		}
		if n := strings.Count(a.body, "<script"); n != 1 {
			t.Errorf("%s has %d scripts", path, n)
		}
		csp := a.head.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
			if a.head.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, a.head.Get(name))
			}
		}
	}
	if body := b.do("all", "GET", "/locks/one"+q, "").body; !strings.Contains(body, `lock:\xff\n`) || !strings.Contains(body, "&lt;script&gt;") {
		t.Error("the key is not shown")
	}
}

func TestPageSaysWhyItIsEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		targets []api.Target
		want    []string
		not     []string
	}{
		"no targets": {nil, []string{"No targets are configured."}, []string{"Nothing needs attention"}},
		"quiet":      {newWorld().targets, []string{"Nothing needs attention now."}, nil},
		"down": {
			[]api.Target{{Name: "orders", Reason: "connection refused: start it", LastSweep: &api.Swept{At: at}}},
			[]string{"Target orders", "connection refused: start it"},
			[]string{"Nothing needs attention"},
		},
		"first sweep": {
			[]api.Target{{Name: "orders", Up: true, Sweeping: firstSweepOf(4000, 20_000)}},
			[]string{"Target orders:</b> its first sweep is under way: 20 % of 20000 keys scanned", "0 of 1"},
			[]string{"Nothing needs attention", "critical"},
		},
		"not contacted": {
			[]api.Target{{Name: "orders", Reason: "not contacted yet"}},
			[]string{"its first sweep is about to begin"},
			[]string{"Nothing needs attention", "critical", "not contacted yet"},
		},
		"not complete": {
			[]api.Target{{Name: "orders", Up: true, LastSweep: &api.Swept{At: at}}},
			[]string{"orders had no complete sweep"},
			[]string{"Nothing needs attention"},
		},
		"back, and read for the first time": {
			[]api.Target{{Name: "orders", Up: true, LastSweep: &api.Swept{At: at}, Sweeping: firstSweepOf(4000, 20_000)}},
			[]string{"its first sweep is under way: 20 %"},
			[]string{"Nothing needs attention", "critical"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.world.locks, b.world.findings, b.world.requests, b.world.targets = nil, nil, nil, c.targets
			body := b.do("", "GET", "/", "").body
			for _, want := range c.want {
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

func sweepOf(keys, of int64) *api.Sweeping {
	return &api.Sweeping{Started: at, Keys: keys, OfKeys: &of, Percent: new(int(keys * 100 / of))}
}

func firstSweepOf(keys, of int64) *api.Sweeping {
	out := sweepOf(keys, of)
	out.First = true
	return out
}

// Lists that are empty say why, and what to do.
func TestListsSayWhyTheyAreEmpty(t *testing.T) {
	t.Parallel()
	down := []api.Target{{Name: "orders", Reason: "connection refused: start it", LastSweep: &api.Swept{At: at}}}
	partly := []api.Target{{Name: "orders", Up: true, LastSweep: &api.Swept{At: at}}}
	young := []api.Target{{Name: "orders", Up: true, Sweeping: firstSweepOf(4000, 20_000)}}
	later := []api.Target{{Name: "orders", Up: true, LastSweep: &api.Swept{At: at, Complete: true}, Sweeping: sweepOf(4000, 20_000)}}
	for name, c := range map[string]struct {
		targets []api.Target
		path    string
		want    string
	}{
		"no targets":       {nil, "/locks", "Locks appear here once a store is watched: add one under"},
		"no locks":         {newWorld().targets, "/locks", "No locks are held."},
		"filtered":         {newWorld().targets, "/locks?q=x", "No lock matches."},
		"down":             {down, "/locks", "No locks are known now: orders is down"},
		"not complete":     {partly, "/locks", "orders had no complete sweep"},
		"first sweep":      {young, "/locks", "its first sweep is under way: 20 % of 20000 keys scanned"},
		"and filtered":     {young, "/locks?q=x", "No lock is like that so far."},
		"filtered, down":   {down, "/locks?q=x", "Target orders is down:</b> connection refused: start it."},
		"findings, down":   {down, "/findings?rule=x", "Target orders is down:</b> connection refused: start it."},
		"no requests":      {down, "/requests", "No release was requested"},
		"no such request":  {down, "/requests?state=denied", "No request matches."},
		"no findings":      {newWorld().targets, "/findings", "No rule fires on any lock."},
		"unseen":           {partly, "/findings", "a target is down or had no complete sweep"},
		"first findings":   {young, "/findings", "its first sweep is under way: 20 % of 20000 keys scanned"},
		"no such finding":  {partly, "/findings?rule=x", "No finding matches."},
		"young target":     {young, "/targets", "its first sweep is under way: 20 %"},
		"later sweep":      {later, "/targets", "20 % of 20000 keys scanned in"},
		"down target":      {down, "/targets", "connection refused: start it"},
		"no target at all": {nil, "/targets", "No targets are configured."},
		"nobody waits":     {down, "/graph", "Nobody waits for a lock"},
		"no entries":       {down, "/audit", "No entries yet"},
		"no notification":  {down, "/notifications?receiver=none", "No notification matches."},
		"no such entry":    {down, "/audit?q=x", "No entry matches."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := b.world
			w.locks, w.findings, w.requests, w.entries, w.targets, w.graph = nil, nil, nil, nil, c.targets, &api.Graph{}
			if body := b.do("", "GET", c.path, "").body; !strings.Contains(body, c.want) {
				t.Errorf("%s does not say %q", c.path, c.want)
			}
		})
	}
}

// A list that may be short of a target says so beside what it has.
func TestListsSayWhatTheyLack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.world.targets = append(b.world.targets, api.Target{Name: "stock", Reason: "no replica works on it", LastSweep: &api.Swept{At: at}})
	for path, want := range map[string]bool{"/locks": true, "/findings": true, "/locks?target=stock": true, "/locks?target=orders": false, "/findings?target=orders": false} {
		body := b.do("", "GET", path, "").body
		if got := strings.Contains(body, "Target stock is down:</b> no replica works on it. Its entries in this list are old or missing."); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// The worst that keys, reasons and rules can be, and much of it: each page stays
// within 100 KB and says what it leaves out.
func TestPagesStaySmall(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	w := b.world
	w.locks, w.findings, w.requests, w.entries, w.graph = nil, nil, nil, nil, &api.Graph{}
	nasty := strings.Repeat("<\xff\"&", LongKey/4)[:LongKey-8]
	for n := range 320 {
		key := fmt.Sprintf("%07d:%s", n, nasty)
		if n >= 200 {
			key = fmt.Sprintf("lock:order:%d:%s", n, strings.Repeat("x", 40))
		}
		w.locks = append(w.locks, aLock(key, time.Duration(320-n)*time.Second))
		f := aFinding(key)
		f.Evidence = slices.Repeat([]locksteward.Message{locksteward.Literal(strings.Repeat("because ", 20))}, 5)
		w.findings = append(w.findings, f)
		if n < 300 {
			r := pending()
			r.ID, r.Evidence.Key, r.Reason = fmt.Sprintf("r%d", n), key, strings.Repeat("reason ", 100)
			w.requests = append(w.requests, r)
			w.entries = append(w.entries, locksteward.Entry{Seq: int64(n), Key: key, Reason: r.Reason, Actor: "ann", Action: "release.request"})
			lock := api.GraphNode{ID: "l" + key, Kind: api.NodeLock, Lock: &api.GraphLock{Target: "orders", Key: api.NewKey(key), Waiters: 3}}
			who := api.GraphNode{ID: "s" + key, Kind: api.NodeSession, Session: &api.GraphSession{Session: key, Holder: api.Holder{App: "billing", Host: "web-3", PID: n}}}
			w.graph.Nodes = append(w.graph.Nodes, lock, who)
			w.graph.Edges = append(w.graph.Edges, api.GraphEdge{From: who.ID, To: lock.ID, Kind: api.EdgeHolds})
		}
	}
	w.locks[0].Key = strings.Repeat("k", 1<<20)
	events := make([]api.LockEvent, 500)
	for n := range events {
		events[n] = api.LockEvent{At: at.Add(-time.Duration(n) * time.Minute), Kind: []string{"released", "acquired"}[n%2], HeldMs: 60_000, TokenDigest: "hmac-sha256:0123456789abcdef"}
	}
	key := w.locks[1].Key
	w.past = map[api.LockKey][]api.LockEvent{{Target: "orders", Key: key}: events}
	one := "/locks/one?target=orders&key_b64=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key)))
	for path, want := range map[string]string{
		"/": "320 locks in class orders", "/locks": "50 of 320 locks", "/findings": "20 findings of 320", "/requests": "50 requests", "/audit": "Older", "/graph": "are not drawn",
		one: "100 events", "/requests/r7": "Decide", "/targets": "", "/classes": "", "/rules": "", "/rules/ttl/none": "What to do",
	} {
		a := b.do("all", "GET", path, "")
		if len(a.body) > 100<<10 || a.status != http.StatusOK {
			t.Errorf("%s: status %d, %d bytes", path, a.status, len(a.body))
		}
		if !strings.Contains(a.body, want) {
			t.Errorf("%s does not say %q", path, want)
		}
		t.Logf("%s: %d bytes", path, len(a.body))
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	for path, c := range map[string]struct {
		mediaType string
		most      int
		wants     []string
	}{
		"/console.css": {"text/css; charset=utf-8", 24 << 10, []string{"light-dark(", "max-width: 62rem", ":focus-visible", "prefers-reduced-motion", "forced-colors"}},
		"/console.js":  {"text/javascript; charset=utf-8", 16 << 10, []string{"EventSource", "use strict"}},
		"/console.svg": {"image/svg+xml", 1 << 10, []string{"<svg"}},
	} {
		a := b.do("", "GET", path, "")
		if a.status != http.StatusOK || a.head.Get("Content-Type") != c.mediaType || len(a.body) > c.most {
			t.Errorf("%s: status %d, %s, %d bytes", path, a.status, a.head.Get("Content-Type"), len(a.body))
		}
		for _, want := range c.wants {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s has no %s", path, want)
			}
		}
		for _, bad := range []string{"url(", "@import", "eval(", "http://", "https://"} {
			if bad != "http://" && strings.Contains(a.body, bad) {
				t.Errorf("%s loads something: %s", path, bad)
			}
		}
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
