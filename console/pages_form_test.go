package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// send sends a form as the user, and does not follow where it leads..
func (b *fixture) send(user, path string, pairs ...string) answer {
	b.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	req, err := http.NewRequestWithContext(b.t.Context(), "POST", b.url+path, strings.NewReader(values.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+b.tokens[user])
	return b.exchange(noRedirects(nil), req)
}

// hidden is the value of a hidden field of a page.
func (a answer) hidden(t *testing.T, name string) string {
	t.Helper()
	m := regexp.MustCompile(`<input type="hidden" name="` + name + `" value="([^"]*)">`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("no hidden field %s in\n%s", name, a.body)
	}
	return m[1]
}

const lockPath = "/locks/one?target=orders&key=lock:order:43"

func TestRequestForm(t *testing.T) {
	t.Parallel()
	b := setup(t, "requester", "viewer", "break-glass")
	page := b.do("requester", "GET", lockPath, "")
	mark := page.hidden(t, "mark")
	lock := []string{"target", "orders", "db", "0", "key", "lock:order:43", "mark", mark}
	with := func(pairs ...string) []string { return append(append([]string{}, lock...), pairs...) }

	a := b.send("requester", "/requests", with("reason", "stuck\r\nsince noon", "do", "request", "act", "take-over", "take_over", "10m", "holder_alive", "yes")...)
	if a.status != http.StatusSeeOther || a.head.Get("Location") != "/requests/r1" {
		t.Errorf("status %d to %s: %s", a.status, a.head.Get("Location"), a.body)
	}
	in := b.world.inputs[len(b.world.inputs)-1]
	if in.Reason != "stuck\nsince noon" || in.TakeOver != 10*time.Minute || !in.HolderAlive || in.Key != "lock:order:43" || in.LockDelay != nil {
		t.Errorf("asked for %+v", in)
	}
	if a := b.send("requester", "/requests?lang=zh", with("reason", "x", "do", "request", "lock_delay", "30s")...); a.head.Get("Location") != "/requests/r1?lang=zh" {
		t.Errorf("it leads to %s", a.head.Get("Location"))
	}
	if in := b.world.inputs[len(b.world.inputs)-1]; in.LockDelay == nil || *in.LockDelay != 30*time.Second {
		t.Errorf("asked for %+v", in)
	}
	asked := len(b.world.inputs)
	for name, c := range map[string]struct {
		user, path string
		pairs      []string
		status     int
		want       string
	}{
		"not a duration":   {"requester", "/requests", with("reason", "because", "do", "request", "lock_delay", "soon"), 400, "write a duration such as 30s"},
		"no duration":      {"requester", "/requests", with("reason", "because", "do", "request", "act", "take-over"), 400, "say for how long"},
		"unknown field":    {"requester", "/requests", with("reason", "because", "colour", "red"), 400, "colour: unknown field of this form"},
		"twice":            {"requester", "/requests", with("reason", "because", "reason", "of"), 400, "reason: is given 2 times"},
		"in the address":   {"requester", "/requests?reason=because", lock, 400, "belongs in the form"},
		"no such act":      {"requester", "/requests", with("reason", "because", "act", "explode"), 400, "act: must be release, take-over"},
		"an old form":      {"requester", "/requests", with("reason", "because", "do", "request")[:6], 409, "this form was already sent"},
		"another mark":     {"requester", "/requests", append(lock[:6:6], "mark", "0000", "reason", "because", "do", "request"), 409, "It changed nothing"},
		"no target":        {"requester", "/requests", []string{"key", "k"}, 400, "target: is missing"},
		"no such lock":     {"requester", "/requests", []string{"target", "orders", "key", "lock:none", "reason", "because", "do", "request"}, 404, "There is no lock with this name"},
		"a viewer":         {"viewer", "/requests", with("reason", "because", "do", "request"), 403, "does not have the role requester"},
		"glass, unticked":  {"break-glass", "/requests", with("reason", "because", "do", "break-glass"), 400, "all receivers are notified"},
		"glass, by anyone": {"requester", "/requests", with("reason", "because", "do", "break-glass", "confirm_break_glass", "yes"), 403, "does not have the role"},
	} {
		a := b.send(c.user, c.path, c.pairs...)
		if a.status != c.status || !strings.Contains(a.body, c.want) || a.head.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: status %d, want %d and %q: %s", name, a.status, c.status, c.want, a.body)
		}
		// What was typed is there to be corrected; the lock is gone in one case.
		if c.user == "requester" && strings.Contains(fmt.Sprint(c.pairs), "because") && c.status != 404 && name != "twice" && name != "unknown field" && name != "in the address" && !strings.Contains(a.body, ">because</textarea>") {
			t.Errorf("%s: what was typed is gone", name)
		}
		if !strings.Contains(a.body, `data-live="off"`) {
			t.Errorf("%s: the script would load the form's address", name)
		}
	}
	if len(b.world.inputs) != asked {
		t.Errorf("%d requests were made", len(b.world.inputs)-asked)
	}
	if a := b.send("requester", "/requests", with("reason", "", "do", "preview")...); a.status != http.StatusOK || !strings.Contains(a.body, "What would happen") || !strings.Contains(a.body, "return 1") {
		t.Errorf("dry run: status %d: %s", a.status, a.body)
	}
	if a := b.send("break-glass", "/requests", with("reason", "fire", "do", "break-glass", "confirm_break_glass", "yes")...); a.status != http.StatusSeeOther {
		t.Errorf("glass: status %d: %s", a.status, a.body)
	}
	if a := b.do("requester", "POST", "/requests", "{}"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("JSON: status %d", a.status)
	}
	if a := b.send("requester", "/requests", with("reason", strings.Repeat("x", 2<<20))...); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MB: status %d", a.status)
	}
}

// TestWeakIdentityIsMarked: a constant value is confirmed, with a TTL too, and the page
// and the API say so; the same bytes of no known form are not.
func TestWeakIdentityIsMarked(t *testing.T) {
	t.Parallel()
	b := setup(t, "approver")
	e := &b.world.requests[0].Evidence
	e.Identity, e.SharedToken = locksteward.IdentityLineage, true
	for _, weak := range []bool{true, false} {
		e.SharedToken = weak
		page, answer := b.do("approver", "GET", "/requests/r1", "").body, b.do("approver", "GET", "/api/v1/requests/r1", "").body
		for what, in := range map[string]bool{
			"the tag": strings.Contains(page, ">weak identity<"), "the box": strings.Contains(page, "from the next one</b> but by its expiry"),
			"the field": strings.Contains(answer, `"weak_identity": true`) || strings.Contains(answer, `"weak_identity":true`),
		} {
			if in != weak {
				t.Errorf("%s is there: %t, want %t", what, in, weak)
			}
		}
	}
}

// TestManyIsMarked: the page and the API say that one approval more is needed.
func TestManyIsMarked(t *testing.T) {
	t.Parallel()
	b := setup(t, "approver")
	for _, beyond := range []int{0, 20} {
		b.world.requests[0].Evidence.BeyondPerMinute = beyond
		page, answer := b.do("approver", "GET", "/requests/r1", "").body, b.do("approver", "GET", "/api/v1/requests/r1", "").body
		if strings.Contains(page, ">one approval more<") != (beyond > 0) || strings.Contains(answer, `"beyond_per_minute":`) != (beyond > 0) {
			t.Errorf("beyond %d: %s\n%s", beyond, page, answer)
		}
	}
}

func TestDecisionForms(t *testing.T) {
	t.Parallel()
	b := setup(t, "approver", "viewer")
	b.world.requests[0].Evidence.Identity = locksteward.IdentityNone
	page := b.do("approver", "GET", "/requests/r1", "")
	for _, want := range []string{`value="sha256:e1"`, "confirm_no_identity", ">Approve", ">Deny", "queue is stuck"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	a := b.send("approver", "/requests/r1/approve", "reason", "checked", "evidence_hash", page.hidden(t, "evidence_hash"), "confirm_no_identity", "yes")
	if a.status != http.StatusSeeOther || a.head.Get("Location") != "/requests/r1" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if w := b.world.words[0]; w.Reason != "checked" || w.EvidenceHash != "sha256:e1" || !w.ConfirmNoIdentity || w.ConfirmHolderAlive {
		t.Errorf("said %+v", w)
	}
	if a := b.send("viewer", "/requests/r1/approve", "reason", "checked"); a.status != http.StatusForbidden || !strings.Contains(a.body, "does not have the role approver") {
		t.Errorf("viewer: status %d: %s", a.status, a.body)
	}
	if a := b.send("approver", "/requests/r9/approve", "reason", "x"); a.status != http.StatusNotFound {
		t.Errorf("unknown: status %d", a.status)
	}
	b.world.fail = fmt.Errorf("%w: request r1 is released already, which is final", locksteward.ErrConflict)
	if a := b.send("approver", "/requests/r1/deny", "reason", "a long thought"); a.status != http.StatusConflict || !strings.Contains(a.body, "which is final") {
		t.Errorf("conflict: status %d: %s", a.status, a.body)
	}
	b.world.fail = errors.New("disk full: /var/lib/secret")
	if a := b.send("approver", "/requests/r1/deny", "reason", "x"); a.status != http.StatusInternalServerError || strings.Contains(a.body, "secret") {
		t.Errorf("internal: status %d: %s", a.status, a.body)
	}
	b.world.fail = nil
	for _, act := range []string{"undo", "lift"} {
		if a := b.send("approver", "/requests/r0/"+act, "reason", "x", "mark", "old"); a.status != http.StatusConflict || !strings.Contains(a.body, "this form was already sent") {
			t.Errorf("%s: status %d: %s", act, a.status, a.body)
		}
	}
}

func TestAdminForms(t *testing.T) {
	t.Parallel()
	b := setup(t, "admin", "viewer")
	seen := b.do("admin", "GET", "/targets", "").hidden(t, "mark")
	if a := b.send("admin", "/targets/pause", "target", "orders", "do", "pause", "for", "30m", "mark", seen); a.status != http.StatusSeeOther || len(b.world.pauses) != 1 {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if p := b.world.pauses[0]; p.Until.Sub(p.Since) != 30*time.Minute || p.By != "admin" {
		t.Errorf("paused %+v", p)
	}
	for name, pairs := range map[string][]string{
		"old":  {"target", "orders", "do", "pause", "mark", "old"},
		"long": {"target", "orders", "do", "pause", "for", "9999h", "mark", seen},
	} {
		if a := b.send("admin", "/targets/pause", pairs...); a.status != http.StatusConflict && a.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", name, a.status)
		}
	}
	if a := b.send("viewer", "/targets/pause", "target", "orders", "do", "pause", "mark", seen); a.status != http.StatusForbidden || len(b.world.pauses) != 1 {
		t.Errorf("viewer: status %d", a.status)
	}
	seen = b.do("admin", "GET", "/release-pause", "").hidden(t, "mark")
	for name, c := range map[string]struct {
		pairs  []string
		status int
	}{
		"no time":  {[]string{"do", "pause", "scope", "automatic", "for", "0s", "reason", "x", "mark", seen}, 400},
		"no scope": {[]string{"do", "pause", "reason", "x", "mark", seen}, 400},
		"no act":   {[]string{"scope", "all", "reason", "x", "mark", seen}, 400},
		"replayed": {[]string{"do", "pause", "scope", "all", "reason", "x", "mark", "old"}, 409},
	} {
		if a := b.send("admin", "/release-pause", c.pairs...); a.status != c.status {
			t.Errorf("%s: status %d: %s", name, a.status, a.body)
		}
	}
	if a := b.send("admin", "/release-pause", "do", "pause", "scope", "all", "reason", "drill", "mark", seen); a.status != http.StatusSeeOther || a.head.Get("Location") != "/release-pause" {
		t.Errorf("pause: status %d: %s", a.status, a.body)
	}
	if a := b.do("admin", "GET", "/", ""); !strings.Contains(a.body, "All releases are paused") {
		t.Error("the overview does not say that nothing is released")
	}
	if a := b.send("viewer", "/release-pause", "do", "resume", "scope", "all", "reason", "x", "mark", b.do("viewer", "GET", "/release-pause", "").body[:0]); a.status != http.StatusForbidden && a.status != http.StatusConflict {
		t.Errorf("viewer: status %d", a.status)
	}
}

// A finding that an alert led to and that is over says so.
func TestFindingThatIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := aFinding("lock:order:7")
	gone.Status, gone.ResolvedAt = locksteward.StatusResolved, time.Now().Add(-time.Minute)
	b.world.advice.resolved = map[string]locksteward.Finding{gone.Fingerprint(): gone}
	if a := b.do("", "GET", "/findings/"+gone.Fingerprint(), ""); a.status != http.StatusOK || !strings.Contains(a.body, "That is over since") || !strings.Contains(a.body, "lock:order:7") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if a := b.do("", "GET", "/findings/00", ""); a.status != http.StatusNotFound || !strings.Contains(a.body, "This finding is over") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	there := aFinding("lock:order:42")
	if a := b.do("", "GET", "/findings/"+there.Fingerprint(), ""); a.status != http.StatusOK || !strings.Contains(a.body, "PTTL is -1") || !strings.Contains(a.body, "<details id=\"d-"+there.Fingerprint()+"\" open>") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

// Problems are pages to browsers and JSON to programs.
func TestProblemPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, status := range map[string]int{"/nothing": 404, "/locks?colour=red": 400, "/requests/none": 404, "/rules/no/such": 404, "/locks/one?target=orders": 400, "/locks/one?target=none&key=k": 404} {
		a := b.do("", "GET", path, "", header("Accept", "text/html,application/xhtml+xml"))
		if a.status != status || a.head.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("%s: status %d: %s", path, a.status, a.body)
		}
	}
	if p := b.do("", "GET", "/nothing", "").problem(t); p.Status != http.StatusNotFound {
		t.Errorf("%+v", p)
	}
	if a := b.do("", "POST", "/locks", "", header("Accept", "text/html")); a.status != http.StatusMethodNotAllowed || a.head.Get("Allow") == "" {
		t.Errorf("status %d", a.status)
	}
}

// All locks of a lost host are asked for on its finding, and decided on together.
func TestBundlePages(t *testing.T) {
	t.Parallel()
	b := setup(t, "all", "viewer")
	lost := aFinding("")
	lost.Rule, lost.Class, lost.Subject = ruleHostLost, "", "web-3"
	b.world.findings = append(b.world.findings, lost)
	page := "/findings/" + lost.Fingerprint()
	if a := b.do("all", "GET", page, ""); !strings.Contains(a.body, `action="/bundles"`) || a.hidden(t, "host") != "web-3" || a.hidden(t, "target") != "orders" {
		t.Errorf("the finding has no form: %s", a.body)
	}
	if a := b.do("viewer", "GET", page, ""); strings.Contains(a.body, `action="/bundles"`) {
		t.Error("a viewer is offered to ask")
	}
	a := b.send("all", "/bundles", "target", "orders", "host", "web-3", "reason", "power is off")
	if a.status != http.StatusOK || !strings.Contains(a.body, "Left out") || !strings.Contains(a.body, "lock:order:9") || !strings.Contains(a.body, `data-live="off"`) {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	where := "/bundles/b1"
	shown := b.do("all", "GET", where, "")
	if shown.status != http.StatusOK || !strings.Contains(shown.body, "Approve all") {
		t.Fatalf("status %d: %s", shown.status, shown.body)
	}
	hash := shown.hidden(t, "evidence_hash")
	if a := b.send("viewer", where+"/approve", "reason", "x", "evidence_hash", hash); a.status != http.StatusForbidden {
		t.Errorf("viewer: status %d: %s", a.status, a.body)
	}
	if a := b.send("all", where+"/approve", "reason", "checked", "evidence_hash", hash); a.status != http.StatusSeeOther || a.head.Get("Location") != where {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if a := b.send("all", where+"/deny", "reason", "x", "colour", "red"); a.status != http.StatusBadRequest {
		t.Errorf("unknown field: status %d", a.status)
	}
	if a := b.send("all", "/bundles/none/deny", "reason", "x"); a.status != http.StatusNotFound {
		t.Errorf("unknown bundle: status %d", a.status)
	}
}

// A request that waits is not lost behind fifty that are over.
func TestOpenRequestsComeFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.world.requests[0]
	b.world.requests = nil
	for n := range 120 {
		r := old
		r.ID, r.State = fmt.Sprintf("done-%03d", n), locksteward.RequestReleased
		r.CreatedAt = old.CreatedAt.Add(time.Hour - time.Duration(n)*time.Second)
		b.world.requests = append(b.world.requests, r)
	}
	b.world.requests = append(b.world.requests, old)
	body := b.do("", "GET", "/requests", "").body
	if i, j := strings.Index(body, `href="/requests/r1"`), strings.Index(body, "done-000"); i < 0 || j < i || strings.Contains(body, "done-049") || !strings.Contains(body, "done-048") {
		t.Errorf("the open one is at %d, the newest at %d", i, j)
	}
	next := regexp.MustCompile(`href="(/requests\?cursor=[^"]*)"`).FindStringSubmatch(body)
	if next == nil {
		t.Fatal("there are no older ones")
	}
	if body := b.do("", "GET", next[1], "").body; !strings.Contains(body, "done-049") || !strings.Contains(body, "Newest") {
		t.Error("the next page does not go on where the first one ended")
	}
}
