package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
)

const pdKey = "0123456789abcdef0123456789abcdef"

// pdServer is a service of PagerDuty: it keeps which alerts are open.
type pdServer struct {
	t   *testing.T
	url string

	mu     sync.Mutex
	open   map[string]pdEvent
	events []pdEvent
	raw    []string
	answer func(n int, w http.ResponseWriter) bool
}

func newPD(t *testing.T) *pdServer {
	t.Helper()
	s := &pdServer{t: t, open: map[string]pdEvent{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// ServeHTTP checks what the Events API v2 checks: routing key, action, the keys that
// are required, and the bounds.
func (s *pdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	var e pdEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		s.t.Errorf("%v in %s", err, raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.raw = append(s.events, e), append(s.raw, string(raw))
	w.Header().Set("Content-Type", "application/json")
	if s.answer != nil && s.answer(len(s.events), w) {
		return
	}
	var problems []string
	bad := func(is bool, what string) {
		if is {
			problems = append(problems, what)
		}
	}
	bad(len(e.RoutingKey) != 32, "Length of 'routing_key' is incorrect (should be 32 characters)")
	bad(e.Action != pdTrigger && e.Action != pdResolve, "event_action")
	bad(e.DedupKey == "" || len(e.DedupKey) > 255, "dedup_key")
	bad(len(raw) > 512_000, "size")
	if e.Action == pdTrigger {
		p := e.Payload
		bad(p == nil || p.Summary == "" || utf8.RuneCountInString(p.Summary) > 1024 || p.Source == "", "summary or source")
		bad(p != nil && p.Severity != "critical" && p.Severity != "error" && p.Severity != "warning" && p.Severity != "info", "severity")
	}
	if len(problems) > 0 {
		s.t.Errorf("not an event: %v: %.300s", problems, raw)
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "invalid event", "message": "Event object is invalid", "errors": problems})
		return
	}
	if e.Action == pdTrigger {
		s.open[e.DedupKey] = e
	} else {
		delete(s.open, e.DedupKey)
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(w, `{"status":"success","message":"Event processed","dedup_key":%q}`, e.DedupKey)
}

func (s *pdServer) last() pdEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[len(s.events)-1]
}

func (s *pdServer) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *pdServer) out(lang string) *pagerDuty {
	s.t.Helper()
	at := Endpoint{URL: locksteward.Secret(s.url), AllowPrivate: true}
	return openAs(s.t, "pagerduty", Receiver{Lang: lang, Endpoint: at, RoutingKeyFile: file(s.t, pdKey+"\n")}).(*pagerDuty)
}

// pdOf is a receiver of that kind, in whose name notifications are made.
func pdOf(cfg Config) writer {
	return newWriter(cfg, Receiver{Name: "pd"}.withDefaults(), pagerDutyKind.traits, Hooks{})
}

// groupNotification makes the notification of a group of which so many fire afterwards.
func (a writer) groupNotification(t *testing.T, firing int, transitions ...locksteward.Transition) locksteward.Notification {
	t.Helper()
	var changes []locksteward.FindingEvent
	for _, tr := range transitions {
		changes = append(changes, eventOfTransition(tr))
	}
	c := composer{writer: a}
	f := changes[0].Finding
	made := c.message(ReasonNews, &Group{Key: a.grouping.key(f), Labels: a.grouping.labels(f), Firing: firing}, "", changes)
	if len(made) != 1 {
		t.Fatal(c.err)
	}
	return made[0]
}

func sendAll(t *testing.T, out transport, list ...locksteward.Notification) {
	t.Helper()
	for _, m := range list {
		if err := out.send(t.Context(), newOutgoing(m.ID, m.Body)); err != nil {
			t.Fatal(err)
		}
	}
}

// A group is one alert there, from its first finding to its last.
func TestPagerDutyHasOneAlertOfAGroup(t *testing.T) {
	t.Parallel()
	s := newPD(t)
	out, a := s.out("en"), pdOf(Config{Grouping: DefaultGrouping(), ConsoleURL: "https://locks.example.com"})
	one, two := fire("lock:order:1", 1), fire("lock:order:2", 2)
	one.Finding.RunbookURL = "https://wiki/locks"
	sendAll(t, out, a.groupNotification(t, 1, one))
	e := s.last()
	p := e.Payload
	if e.RoutingKey != pdKey || e.Action != pdTrigger || p.Severity != "critical" || p.Source != "redis" || p.Component != "lock:order:1" || p.Class != "ttl/none" ||
		p.Group != "orders" || !strings.Contains(p.Summary, "lock:order:1") || !strings.Contains(p.Summary, "never expires") || e.Client != "Locksteward" {
		t.Errorf("got %s", s.raw[0])
	}
	if !p.Timestamp.Equal(one.At) || len(e.Links) == 0 || !strings.Contains(fmt.Sprint(e.Links), "https://wiki/locks") {
		t.Errorf("got %s", s.raw[0])
	}
	sendAll(t, out, a.groupNotification(t, 2, two), a.groupNotification(t, 1, resolve("lock:order:1", 3)))
	if got := s.last(); s.opened() != 1 || got.Action != pdTrigger || got.DedupKey != e.DedupKey {
		t.Errorf("%d open, the last is %+v", s.opened(), got)
	}
	sendAll(t, out, a.groupNotification(t, 0, resolve("lock:order:2", 4)))
	if got := s.last(); s.opened() != 0 || got.Action != pdResolve || got.DedupKey != e.DedupKey || got.Payload != nil {
		t.Errorf("%d open, the last is %+v", s.opened(), got)
	}
	other := fire("lock:order:1", 5)
	other.Finding.Class = "jobs"
	other.Finding.Severity = locksteward.SeverityWarning
	sendAll(t, out, a.groupNotification(t, 1, other))
	if got := s.last(); got.DedupKey == e.DedupKey || got.Payload.Severity != "warning" {
		t.Errorf("another group: %+v", got)
	}
}

// Grouped by fingerprint each finding is an alert of its own.
func TestPagerDutyHasAlertsOfFindings(t *testing.T) {
	t.Parallel()
	s := newPD(t)
	out, a := s.out("en"), pdOf(Config{Grouping: Grouping{By: []string{"fingerprint"}}})
	sendAll(t, out, a.groupNotification(t, 1, fire("a", 1)), a.groupNotification(t, 1, fire("b", 2)), a.groupNotification(t, 0, resolve("a", 3)))
	if s.opened() != 1 {
		t.Errorf("%d open", s.opened())
	}
	// A notification that is about no group, too.
	p, err := payloadOf(a.groupNotification(t, 2, fire("c", 4), fire("d", 5), resolve("c", 6)).Body)
	if err != nil {
		t.Fatal(err)
	}
	p.Group = nil
	m, err := p.notification(a, "*", "redis", "x")
	if err != nil {
		t.Fatal(err)
	}
	sendAll(t, out, m, m)
	if s.opened() != 2 || len(s.events) != 3+4 {
		t.Errorf("%d open after %d events", s.opened(), len(s.events))
	}
}

func TestPagerDutyHearsOfReleases(t *testing.T) {
	t.Parallel()
	s := newPD(t)
	out, a := s.out("zh"), pdOf(Config{Grouping: DefaultGrouping()})
	say := func(kind string) pdEvent {
		t.Helper()
		n := glass()
		n.Kind, n.EventID = kind, n.Request.ID+"/"+kind
		m, err := releaseNotification(a, n, 1)
		if err != nil {
			t.Fatal(err)
		}
		sendAll(t, out, m)
		return s.last()
	}
	asked := say("release.requested")
	if asked.Payload.Severity != "warning" || !strings.Contains(asked.Payload.Summary, "lock:order:") {
		t.Errorf("got %+v", asked.Payload)
	}
	if say("release.reminder").DedupKey != asked.DedupKey || s.opened() != 1 {
		t.Errorf("%d open", s.opened())
	}
	if e := say("release.break_glass"); e.Payload.Severity != "critical" || e.Payload.Details["loud"] != true || s.opened() != 2 {
		t.Errorf("got %+v, %d open", e.Payload, s.opened())
	}
	if e := say("release.final"); e.Action != pdResolve || e.DedupKey != asked.DedupKey || s.opened() != 1 {
		t.Errorf("got %+v, %d open", e, s.opened())
	}
	m, err := testNotification(a, "ana", time.Now(), 9)
	if err != nil {
		t.Fatal(err)
	}
	sendAll(t, out, m)
	if n := len(s.events); s.opened() != 1 || s.events[n-2].Action != pdTrigger || s.events[n-2].Payload.Severity != "info" {
		t.Errorf("a test leaves %d open", s.opened())
	}
}

// Whatever names and texts hold, an event is within the bounds.
func TestPagerDutyTakesHostileNames(t *testing.T) {
	t.Parallel()
	s := newPD(t)
	out, a := s.out("en"), pdOf(Config{Grouping: DefaultGrouping()})
	var many []locksteward.Transition
	for i := range uint64(pagerDutyCap) {
		f := fire(strings.Repeat("\xff\n锁", 8<<10)+fmt.Sprint(i), i)
		f.Finding.Summary = locksteward.Literal(strings.Repeat("长", 4000))
		f.Finding.Cause = locksteward.Literal(strings.Repeat("x", 20_000))
		f.Finding.RunbookURL = "javascript:alert(1)"
		many = append(many, f)
	}
	sendAll(t, out, a.groupNotification(t, 1, many[0]), a.groupNotification(t, len(many), many...))
	e := s.last()
	if _, left := e.Payload.Details["omitted"]; !left || len(e.Links) > 0 || len(s.raw[1]) > pdBody {
		t.Errorf("%d bytes, links %v, details %.100v", len(s.raw[1]), e.Links, e.Payload.Details)
	}
	if p := s.events[0].Payload; strings.ContainsAny(p.Summary+p.Component, "\n\x00") || utf8.RuneCountInString(p.Component) > pdText {
		t.Errorf("component of %d characters", utf8.RuneCountInString(p.Component))
	}
}

func TestPagerDutySaysNo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   Reason
		retry  bool
		says   string
	}{
		"accepted":        {202, `{"status":"success","message":"Event processed","dedup_key":"x"}`, ReasonOK, false, ""},
		"throttled":       {429, `{"status":"throttle exceeded","message":"Requests for this integration key are arriving too quickly"}`, Reason429, true, "too quickly"},
		"down":            {503, "<html>", Reason5xx, true, "503"},
		"invalid":         {400, `{"status":"invalid event","message":"Event object is invalid","errors":["'payload.summary' is missing or blank"]}`, Reason4xx, false, "summary"},
		"key":             {400, `{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect, got ` + pdKey + `"]}`, Reason4xx, true, "<secret>"},
		"no with success": {202, `{"status":"invalid event","message":"no"}`, ReasonRejected, false, "invalid event"},
		"page":            {200, "<html>log in</html>", ReasonRejected, true, "proxy"},
		"empty":           {202, "", ReasonRejected, true, "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPD(t)
			s.answer = func(_ int, w http.ResponseWriter) bool {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
				return true
			}
			m := pdOf(Config{Grouping: DefaultGrouping()}).groupNotification(t, 1, fire("k", 1))
			err := s.out("en").send(t.Context(), newOutgoing(m.ID, m.Body))
			if c.want == ReasonOK {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*DeliveryError](err)
			if !ok || e.Reason != c.want || e.Retryable != c.retry || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), pdKey) {
				t.Errorf("got %+v: %v", e, err)
			}
		})
	}
}

func TestPagerDutyConfig(t *testing.T) {
	t.Parallel()
	err := decode(t, `receivers:
  - {name: a, kind: pagerduty}
  - {name: b, kind: pagerduty, routing_key_file: /k, url: "http://h", timeout: 1h}
`).Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{
		"receivers[0].routing_key_file: is missing", "receivers[1].url: http://h must be https", "receivers[1].timeout: must be",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	pd := Receiver{Kind: "pagerduty", RoutingKeyFile: file(t, "s3cr3t"), Endpoint: Endpoint{CAFile: "/nowhere"}}.withDefaults()
	_, err = pd.opened()
	if err == nil || !strings.Contains(err.Error(), "routing_key_file:") || !strings.Contains(err.Error(), "32 letters") || !strings.Contains(err.Error(), "ca_file:") ||
		strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("got %v", err)
	}
	if pd.URL != DefaultPagerDutyURL {
		t.Errorf("goes to %s", pd.URL.Reveal())
	}
}
