package alert

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testam"
)

// openAM opens a receiver of kind alertmanager.
func openAM(t *testing.T, r Receiver) *alertmanager {
	t.Helper()
	r.AllowPrivate = true
	return openAs(t, "alertmanager", r).(*alertmanager)
}

func atURL(text string) Endpoint { return Endpoint{URL: locksteward.Secret(text)} }

// deliver sends the notification of transitions.
func deliver(t *testing.T, out transport, transitions ...locksteward.Transition) {
	t.Helper()
	m, err := writerOf("am").newsOf(transitions...)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.send(t.Context(), newOutgoing(m.ID, m.Body)); err != nil {
		t.Fatal(err)
	}
}

// lately is a transition some time ago by the clock of the machine.
func lately(tr locksteward.Transition, ago time.Duration) locksteward.Transition {
	tr.At = time.Now().Add(-ago)
	tr.Finding.FiredAt = tr.At
	return tr
}

// ending is the resolve of what lately fired.
func ending(fired locksteward.Transition) locksteward.Transition {
	out := fired
	out.EventID += "/end"
	out.Finding.Status, out.Finding.ResolvedAt, out.At = locksteward.StatusResolved, time.Now(), time.Now()
	return out
}

func TestAlertmanagerTakesFindings(t *testing.T) {
	t.Parallel()
	srv := testam.Start(t, testam.Options{RoutePrefix: "/am"})
	out := openAM(t, Receiver{Endpoint: atURL(srv.URL())})
	one := lately(fire("lock:order:1", 1), time.Minute)
	one.Finding.Team, one.Finding.RunbookURL = "checkout", "https://wiki/locks"
	two := lately(fire("lock:order:2", 2), time.Minute)
	two.Finding.Severity = locksteward.SeverityWarning
	deliver(t, out, one, two)
	got := srv.Alerts()
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	a := got[0]
	for label, want := range map[string]string{
		"alertname": "LockstewardTtlNone", "rule": "ttl/none", "severity": "critical", "target": "redis", "db": "0", "class": "orders",
		"key": "lock:order:1", "team": "checkout", "fingerprint": one.Finding.Fingerprint(), "risk": "deadlock",
	} {
		if a.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, a.Labels[label], want)
		}
	}
	for annotation, want := range map[string]string{
		"summary": "never expires", "cause": "a crash between SETNX and EXPIRE", "remedy": "release it", "evidence": "PTTL is -1",
		"runbook_url": "https://wiki/locks",
	} {
		if a.Annotations[annotation] != want {
			t.Errorf("annotation %s is %q, want %q", annotation, a.Annotations[annotation], want)
		}
	}
	if d := time.Until(a.EndsAt); !a.StartsAt.Equal(stamp(one.At)) || d < 4*time.Minute || d > 5*time.Minute {
		t.Errorf("from %s to %s", a.StartsAt, a.EndsAt)
	}

	// Another severity is another alert there: the first one ends.
	worse := two
	worse.EventID, worse.At, worse.Finding.Severity = "worse", time.Now(), locksteward.SeverityCritical
	deliver(t, out, worse)
	if got = srv.Alerts("key", "lock:order:2"); len(got) != 1 || got[0].Labels["severity"] != "critical" || !got[0].StartsAt.Equal(stamp(two.At)) {
		t.Errorf("after the change: %+v", got)
	}
	deliver(t, out, ending(one))
	if got = srv.Alerts(); len(got) != 1 || got[0].Labels["key"] != "lock:order:2" {
		t.Errorf("after the end: %+v", got)
	}
	// A notification may hold a fire and its end.
	three := lately(fire("lock:order:3", 3), time.Second)
	deliver(t, out, three, ending(three), ending(worse))
	if got = srv.Alerts(); len(got) != 0 {
		t.Errorf("after the end of all: %+v", got)
	}
}

// Whatever names hold, Alertmanager takes the alert.
func TestAlertmanagerTakesHostileNames(t *testing.T) {
	t.Parallel()
	srv := testam.Start(t, testam.Options{})
	out := openAM(t, Receiver{Endpoint: atURL(srv.URL())})
	var all []locksteward.Transition
	for i, key := range []string{"\xff\x00\n\"{}", strings.Repeat("锁", 8<<10), "{{ .Labels }}", "\u202ex", "${ENV}", "\u2028</script>"} {
		f := lately(fire(key, uint64(i+1)), time.Second)
		f.Finding.Evidence = []locksteward.Message{locksteward.Literal(strings.Repeat("证", 10<<10))}
		all = append(all, f)
	}
	class := lately(fire("", 9), time.Second)
	class.Finding.Class, class.Finding.Target = "", "a b"
	all = append(all, class)
	deliver(t, out, all...)
	got := srv.Alerts()
	if len(got) != len(all) {
		t.Fatalf("%d alerts, want %d", len(got), len(all))
	}
	for _, a := range got {
		if len(a.Labels["key"]) > maxLabel || len(a.Annotations["evidence"]) > maxAnnotation {
			t.Errorf("key of %d bytes, evidence of %d", len(a.Labels["key"]), len(a.Annotations["evidence"]))
		}
	}
	for i := range all {
		all[i] = ending(all[i])
	}
	deliver(t, out, all...)
	if got := srv.Alerts(); len(got) != 0 {
		t.Errorf("still there: %+v", got)
	}
}

func TestAlertmanagerTakesReleases(t *testing.T) {
	t.Parallel()
	srv := testam.Start(t, testam.Options{})
	out := openAM(t, Receiver{Endpoint: atURL(srv.URL())})
	now := time.Now()
	notice := func(kind string, edit func(*Notice)) {
		t.Helper()
		n := glass()
		n.Kind, n.EventID, n.At, n.Loud = kind, n.Request.ID+"/"+kind, time.Now(), false
		n.Request.State, n.Request.Outcome = locksteward.RequestPending, ""
		n.Request.CreatedAt, n.Request.ExpiresAt, n.Request.FinishedAt = now, now.Add(time.Hour), time.Time{}
		if edit != nil {
			edit(&n)
		}
		m, err := releaseNotification(writerOf("am"), n, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.send(t.Context(), newOutgoing(m.ID, m.Body)); err != nil {
			t.Fatal(err)
		}
	}
	names := func() string {
		var list []string
		for _, a := range srv.Alerts() {
			list = append(list, a.Labels["alertname"])
		}
		return strings.Join(list, " ")
	}
	notice("release.requested", nil)
	notice("release.reminder", nil)
	got := srv.Alerts("alertname", "LockstewardReleaseRequested")
	if len(got) != 1 || got[0].Labels["request"] != "r-1" || got[0].Labels["severity"] != "warning" || got[0].Annotations["requester"] != "ana" ||
		got[0].EndsAt.Sub(now).Round(time.Second) != time.Hour {
		t.Fatalf("got %+v", got)
	}
	notice("release.break_glass", func(n *Notice) { n.Loud = true })
	if got = srv.Alerts("loud", "true"); len(got) != 1 || got[0].Labels["alertname"] != "LockstewardReleaseBreakGlass" || got[0].Labels["severity"] != "critical" {
		t.Errorf("loud: %+v", got)
	}
	notice("release.breaker", func(n *Notice) { n.Request = locksteward.Request{} })
	if got := names(); got != "LockstewardReleaseBreakGlass LockstewardReleaseBreaker LockstewardReleaseReminder LockstewardReleaseRequested" {
		t.Errorf("got %s", got)
	}
	// What was asked is over; what happened stays to be seen.
	notice("release.final", func(n *Notice) { n.Request.State, n.Request.Outcome = locksteward.RequestReleased, "Released." })
	if got := names(); got != "LockstewardReleaseBreakGlass LockstewardReleaseBreaker" {
		t.Errorf("after the end: %s", got)
	}
}

func TestAlertmanagerSendsFirstSweepsAndTests(t *testing.T) {
	t.Parallel()
	srv := testam.Start(t, testam.Options{})
	out := openAM(t, Receiver{Endpoint: atURL(srv.URL())})
	c := composer{writer: writerOf("am")}
	found := eventOfTransition(lately(fire("lock:order:1", 1), 0))
	made := c.message(ReasonFirstSweep, &Group{Key: "first_sweep redis", Labels: map[string]string{"target": "redis"}, Firing: 1}, "", []locksteward.FindingEvent{found})
	if len(made) != 1 {
		t.Fatal(c.err)
	}
	if err := out.send(t.Context(), newOutgoing(made[0].ID, made[0].Body)); err != nil {
		t.Fatal(err)
	}
	m, err := Payload{Version: PayloadVersion, Type: typeTest, Timestamp: stamp(time.Now()), Text: "asked for by ana"}.notification(writerOf("am"), "", "", "test-7")
	if err != nil {
		t.Fatal(err)
	}
	if err := out.send(t.Context(), newOutgoing(m.ID, m.Body)); err != nil {
		t.Fatal(err)
	}
	got := srv.Alerts()
	if len(got) != 2 || got[0].Labels["alertname"] != "LockstewardFirstSweep" || got[0].Labels["target"] != "redis" || got[0].Labels["severity"] != "info" ||
		got[0].Annotations["findings"] != "critical: 1 × ttl/none, orders" || got[1].Labels["alertname"] != "LockstewardTest" ||
		!strings.Contains(got[1].Annotations["summary"], "ana") {
		t.Errorf("got %+v", got)
	}
}

// One instance is enough; none is a failure; one that hangs costs little.
func TestAlertmanagerInstances(t *testing.T) {
	t.Parallel()
	srv := testam.Start(t, testam.Options{})
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(hang.Close)
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(sick.Close)
	urls := func(list ...string) Receiver {
		var c Receiver
		for _, u := range list {
			c.URLs = append(c.URLs, locksteward.Secret(u))
		}
		return c
	}
	out := openAM(t, urls(sick.URL, hang.URL, srv.URL()))
	began := time.Now()
	deliver(t, out, lately(fire("lock:order:1", 1), time.Second))
	if took := time.Since(began); took < stragglerWait || took > 5*time.Second || len(srv.Alerts()) != 1 {
		t.Errorf("took %s, %d alerts", took, len(srv.Alerts()))
	}
	if err := out.resendFiring(t.Context(), []PayloadFinding{writer{lang: "en"}.event(eventOfTransition(lately(fire("lock:order:1", 1), 0)))}); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("who did not take it: %v", err)
	}
	none := openAM(t, urls(sick.URL, sick.URL+"/x"))
	m, err := writerOf("am").newsOf(fire("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	err = none.send(t.Context(), newOutgoing(m.ID, m.Body))
	if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != Reason5xx || !e.Retryable {
		t.Errorf("got %v", err)
	}
}

func TestAlertmanagerLogsIn(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("pa55word"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	srv := testam.Start(t, testam.Options{WebConfig: fmt.Sprintf("basic_auth_users: {ann: %q}\n", hash)})
	in := openAM(t, Receiver{Endpoint: atURL(srv.URL()), Username: "ann", PasswordFile: file(t, "pa55word\n")})
	deliver(t, in, lately(fire("k", 1), 0))
	wrong := openAM(t, Receiver{Endpoint: atURL(srv.URL()), Username: "ann", PasswordFile: file(t, "pa55")})
	m, err := writerOf("am").newsOf(fire("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	err = wrong.send(t.Context(), newOutgoing(m.ID, m.Body))
	if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Status != http.StatusUnauthorized || !e.Retryable {
		t.Errorf("got %v", err)
	}
	quiet(t, err)

	got := make(chan string, 1)
	bearer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	t.Cleanup(bearer.Close)
	deliver(t, openAM(t, Receiver{Endpoint: atURL(bearer.URL), TokenFile: file(t, "t0ken\n")}), fire("k", 1))
	if h := <-got; h != "Bearer t0ken" {
		t.Errorf("authorization %q", h)
	}
}

// A refusal says what Alertmanager does not like; a page of a proxy is no success.
func TestAlertmanagerSaysNo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		head   string
		body   string
		want   Reason
		retry  bool
		says   string
	}{
		"invalid": {400, "application/json", `"bad label s3cr3t-token"`, Reason4xx, false, `status 400: "bad label <secret>"`},
		"page":    {200, "text/html; charset=utf-8", "<html>log in</html>", ReasonRejected, true, "text/html"},
		"no type": {200, "text/plain", "  <!doctype html>", ReasonRejected, true, "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.head)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(srv.Close)
			out := openAM(t, Receiver{Endpoint: atURL(srv.URL), TokenFile: file(t, "s3cr3t-token")})
			m, err := writerOf("am").newsOf(fire("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			err = out.send(t.Context(), newOutgoing(m.ID, m.Body))
			if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != c.want || e.Retryable != c.retry || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			quiet(t, err)
		})
	}
}

func TestAlertmanagerConfig(t *testing.T) {
	t.Parallel()
	err := decode(t, `receivers:
  - {name: a, kind: alertmanager}
  - {name: b, kind: alertmanager, urls: ["http://h", "https://u:s3cr3t@h"], url: "https://h"}
  - {name: c, kind: alertmanager, url: "https://h", username: ann}
  - {name: d, kind: alertmanager, url: "https://h", password_file: /p}
  - {name: e, kind: alertmanager, url: "https://h", username: ann, password_file: /p, token_file: /t, resend: 1ms, resolve_after: 48h}
  - {name: f, kind: alertmanager, url: "https://h", resend: 2m}
`).Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{
		"receivers[0].url_file: is missing", "receivers[1].urls: are given beside url",
		"receivers[1].urls[0]: http://h must be https", "receivers[1].urls[1]: has credentials in it: write them as username and password_file",
		"receivers[2].password_file: is missing", "receivers[3].username: is missing",
		"receivers[4].token_file: \"/t\" is given beside username", "receivers[4].resend: must be at least 1s, got 1ms",
		"receivers[4].resolve_after: must be three times resend (1ms) to 24h", "receivers[5].resolve_after: must be three times resend (2m0s)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the error shows a secret:\n%v", err)
	}
	c := Receiver{Endpoint: atURL("https://h"), Username: "ann", PasswordFile: "/nowhere/p"}
	c.CAFile = "/nowhere/ca"
	if _, err := openAlertmanager(c, &files{}); err == nil || !strings.Contains(err.Error(), "password_file:") || !strings.Contains(err.Error(), "ca_file:") {
		t.Errorf("got %v", err)
	}
}

func TestAlertNames(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"ttl/none": "LockstewardTtlNone", "hold/too-long": "LockstewardHoldTooLong", "custom/old_batch.2": "LockstewardCustomOldBatch2",
		"release.break_glass": "LockstewardReleaseBreakGlass", "锁/x": "LockstewardX",
	} {
		if got := alertName(rule); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
	if got := cutBytes(strings.Repeat("锁", 100), 10); got != "锁锁…" {
		t.Errorf("got %q", got)
	}
}
