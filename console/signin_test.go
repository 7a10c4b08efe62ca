package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/testkit/testoidc"
	"github.com/locksteward/locksteward/internal/users"
)

func (b *fixture) askAll(w way, method, path string, form url.Values, page bool, edits ...func(*http.Request)) answer {
	b.t.Helper()
	var body io.Reader
	mediaType := ""
	switch {
	case method == http.MethodGet:
	case page:
		body, mediaType = strings.NewReader(form.Encode()), "application/x-www-form-urlencoded"
	default:
		body, mediaType = strings.NewReader("{}"), "application/json"
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	if w.edit != nil {
		w.edit(req)
	}
	for _, edit := range edits {
		edit(req)
	}
	return b.exchange(w.client, req)
}

// browser keeps cookies and follows nothing.
func browser(t *testing.T) way {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return way{name: "session", ambient: true, client: noRedirects(jar)}
}

func credentials(name, password, next string) url.Values {
	return url.Values{"name": {name}, "password": {password}, "next": {next}}
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "admin")
	w := browser(t)
	a := b.askAll(w, "GET", "/locks?target=orders", nil, true)
	if a.status != http.StatusSeeOther || a.head.Get("Location") != "/sign-in?next=%2Flocks%3Ftarget%3Dorders" {
		t.Fatalf("status %d to %q", a.status, a.head.Get("Location"))
	}
	a = b.askAll(w, "GET", a.head.Get("Location"), nil, true)
	if a.status != http.StatusOK || !strings.Contains(a.body, `name="next" value="/locks?target=orders"`) || strings.Contains(a.body, "/sign-in/oidc") {
		t.Errorf("the form: status %d: %s", a.status, a.body)
	}
	a = b.askAll(w, "POST", "/sign-in", credentials("viewer", "wrong<script>", "/locks"), true)
	if a.status != http.StatusUnauthorized || !strings.Contains(a.body, "Unknown name, password or API token") || !strings.Contains(a.body, `value="viewer"`) || strings.Contains(a.body, "wrong") || a.head.Get("Set-Cookie") != "" {
		t.Errorf("a wrong password: status %d: %s", a.status, a.body)
	}
	a = b.askAll(w, "POST", "/sign-in", credentials("viewer", b.tokens["viewer"], "/locks?target=orders"), true)
	cookie := a.head.Get("Set-Cookie")
	if a.status != http.StatusSeeOther || a.head.Get("Location") != "/locks?target=orders" {
		t.Fatalf("status %d to %q: %s", a.status, a.head.Get("Location"), a.body)
	}
	for _, want := range []string{"locksteward=", "Path=/", "HttpOnly", "SameSite=Strict"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Secure") || strings.Contains(cookie, "Domain") || strings.Contains(cookie, "Max-Age") || strings.Contains(cookie, "Expires") {
		t.Errorf("the cookie is %q", cookie)
	}
	if a := b.askAll(w, "GET", "/locks?target=orders", nil, true); a.status != http.StatusOK || !strings.Contains(a.body, "signed in as </span><b>viewer</b>") {
		t.Errorf("the page: status %d", a.status)
	}
	if a := b.askAll(w, "GET", "/api/v1/locks", nil, false); a.status != http.StatusOK {
		t.Errorf("the API: status %d", a.status)
	}
	if a := b.askAll(w, "GET", "/sign-in?next=/findings", nil, true); a.status != http.StatusSeeOther || a.head.Get("Location") != "/findings" {
		t.Errorf("the form, signed in: status %d to %q", a.status, a.head.Get("Location"))
	}
	if a := b.askAll(w, "POST", "/sign-out", url.Values{}, true); a.status != http.StatusForbidden {
		t.Errorf("a sign-out without its form: status %d", a.status)
	}
	csrf := url.Values{"csrf": {b.csrf(w)}}
	if a := b.askAll(w, "POST", "/sign-out", csrf, true); a.status != http.StatusSeeOther || !strings.Contains(a.head.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("sign-out: status %d, %q", a.status, a.head.Get("Set-Cookie"))
	}
	value, _, _ := strings.Cut(cookie, ";")
	if a := b.askAll(browser(t), "GET", "/api/v1/locks", nil, false, header("Cookie", value)); a.status != http.StatusUnauthorized {
		t.Errorf("the cookie after the sign-out: status %d", a.status)
	}
	if a := b.askAll(w, "POST", "/sign-out", csrf, true); a.status != http.StatusSeeOther {
		t.Errorf("a second sign-out: status %d", a.status)
	}
	_, id, _ := strings.Cut(value, "=")
	for _, e := range b.logs.All() {
		for _, secret := range []string{id, "wrong<script>", b.tokens["viewer"], csrf.Get("csrf")} {
			if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()), secret) {
				t.Errorf("the log shows %q: %s", secret, e.Message)
			}
		}
	}
	var actions []string
	for _, e := range b.server.deps.Sessions.(*sessionStore).all() {
		actions = append(actions, e.Actor+" "+e.Action)
	}
	if strings.Join(actions, ", ") != "agent signin.failed, viewer signin.ok, viewer signout" {
		t.Errorf("entries %q", actions)
	}
}

// After a sign-in people go to a page of this console, whatever the address says.
func TestNextIsAPageOfOurs(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	for _, next := range []string{"//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/sign-out", "%2F%2Fevil.example"} {
		w := browser(t)
		if a := b.askAll(w, "GET", "/sign-in?next="+url.QueryEscape(next), nil, true); !strings.Contains(a.body, `name="next" value="/"`) {
			t.Errorf("%s: the form: %s", next, a.body)
		}
		a := b.askAll(w, "POST", "/sign-in", credentials("viewer", b.tokens["viewer"], next), true)
		if a.status != http.StatusSeeOther || a.head.Get("Location") != "/" {
			t.Errorf("%s: status %d to %q", next, a.status, a.head.Get("Location"))
		}
	}
}

// A browser keeps the strict cookie back when a link of another site is followed;
// the page is then asked for once more, from here.
func TestLinksFromElsewhereKeepPeopleSignedIn(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	a := b.askAll(browser(t), "GET", "/locks/one?target=orders&key=%22%3E%3Cscript%3E", nil, true, header("Sec-Fetch-Site", "cross-site"))
	if a.status != http.StatusOK || !strings.Contains(a.body, `content="0;url=/locks/one?target=orders&amp;key=%22%3E%3Cscript%3E"`) || strings.Contains(a.body, "<script>") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	for _, from := range []string{"same-origin", "none", ""} {
		if a := b.askAll(browser(t), "GET", "/locks", nil, true, header("Sec-Fetch-Site", from)); a.status != http.StatusSeeOther {
			t.Errorf("%q: status %d", from, a.status)
		}
	}
}

func TestFormsOfOtherSessionsAndSites(t *testing.T) {
	t.Parallel()
	b := setup(t, "admin")
	one, two := browser(t), browser(t)
	for _, w := range []way{one, two} {
		b.askAll(w, "POST", "/sign-in", credentials("admin", b.tokens["admin"], "/"), true)
	}
	own, others := b.csrf(one), b.csrf(two)
	stop := func(csrf string, edits ...func(*http.Request)) int {
		return b.askAll(one, "POST", "/targets/pause", url.Values{"csrf": {csrf}, "target": {"orders"}}, true, edits...).status
	}
	for what, status := range map[string]int{
		"other session": stop(others), "none": stop(""), "another site": stop(own, header("Sec-Fetch-Site", "cross-site")),
		"another origin": stop(own, header("Origin", "https://evil.example")), "the id": stop(own[:len(own)-1]),
	} {
		if status != http.StatusForbidden {
			t.Errorf("%s: status %d", what, status)
		}
	}
	if a := b.askAll(one, "POST", "/sign-in", credentials("admin", b.tokens["admin"], "/"), true, header("Sec-Fetch-Site", "cross-site")); a.status != http.StatusForbidden {
		t.Errorf("a sign-in from another site: status %d", a.status)
	}
	// Signing in again makes forms of before useless, and changes the id.
	b.askAll(one, "POST", "/sign-in", credentials("admin", b.tokens["admin"], "/"), true)
	if status := stop(own); status != http.StatusForbidden {
		t.Errorf("a form of before: status %d", status)
	}
	if len(b.world.pauses) != 0 {
		t.Error("something was changed")
	}
	// The page judges the form itself: it lacks what was shown.
	if status := stop(b.csrf(one)); status != http.StatusConflict {
		t.Errorf("its own form: status %d", status)
	}
}

func TestLockedOutAndBack(t *testing.T) {
	t.Parallel()
	b := setupAs(t, func(c *signin.Config) { c.Lockout.Failures = 3 }, "viewer")
	w := browser(t)
	for range 3 {
		if a := b.askAll(w, "POST", "/sign-in", credentials("viewer", "guess", "/"), true); a.status != http.StatusUnauthorized {
			t.Fatalf("status %d", a.status)
		}
	}
	a := b.askAll(w, "POST", "/sign-in", credentials("viewer", b.tokens["viewer"], "/"), true)
	if a.status != http.StatusTooManyRequests || a.head.Get("Retry-After") != "900" || !strings.Contains(a.body, "too many failed sign-ins") {
		t.Errorf("status %d, after %q: %s", a.status, a.head.Get("Retry-After"), a.body)
	}
	b.ahead.Store(int64(15*time.Minute + time.Second))
	if a := b.askAll(w, "POST", "/sign-in", credentials("viewer", b.tokens["viewer"], "/"), true); a.status != http.StatusSeeOther {
		t.Errorf("later: status %d", a.status)
	}
	b.ahead.Store(int64(15*time.Minute + time.Second + 61*time.Minute))
	if a := b.askAll(w, "GET", "/", nil, true); a.status != http.StatusSeeOther {
		t.Errorf("after an hour without a request: status %d", a.status)
	}
}

func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	b := setupAs(t, func(c *signin.Config) { c.Rate = signin.RateConfig{PerSecond: 1} }, "viewer", "admin")
	for range 2 {
		b.do("viewer", "GET", "/api/v1/locks", "")
	}
	a := b.do("viewer", "GET", "/api/v1/locks", "")
	if p := a.problem(t); p.Status != http.StatusTooManyRequests || string(p.Code) != "too_many" || a.head.Get("Retry-After") != "1" {
		t.Errorf("%+v, after %q", p, a.head.Get("Retry-After"))
	}
	if a := b.do("admin", "GET", "/api/v1/locks", ""); a.status != http.StatusOK {
		t.Errorf("another user: status %d", a.status)
	}
}

func TestForgedProxyHeader(t *testing.T) {
	t.Parallel()
	b := setupAs(t, func(c *signin.Config) {
		c.Proxy = &signin.ProxyConfig{Allow: []string{"192.0.2.1"}, Header: "X-Remote-User"}
	})
	if _, err := users.AddUser(b.file, users.NewUser{Name: "ext", Roles: users.Roles(), External: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.server.ReloadUsers(); err != nil {
		t.Fatal(err)
	}
	a := b.do("", "GET", "/api/v1/locks", "", header("X-Remote-User", "ext"))
	if p := a.problem(t); p.Status != http.StatusForbidden || b.logs.FilterMessageSnippet("console.proxy.allow").Len() != 1 {
		t.Errorf("%+v", p)
	}
}

func TestNobodyCanSignInWithoutUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := browser(t)
	if a := b.askAll(w, "GET", "/sign-in?next=/locks", nil, true); a.status != http.StatusSeeOther || a.head.Get("Location") != "/locks" {
		t.Errorf("status %d to %q", a.status, a.head.Get("Location"))
	}
	if a := b.askAll(w, "POST", "/sign-in", credentials("x", "y", "/"), true); a.status != http.StatusForbidden || !strings.Contains(a.body, "locksteward users add") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if a := b.askAll(w, "GET", "/sign-in/oidc", nil, true); a.status != http.StatusNotFound {
		t.Errorf("status %d", a.status)
	}
}

// All the way to a provider and back, with its real protocol.
func TestSignInAtAProvider(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	file := write(t, "secret", testoidc.Secret)
	b := setupAs(t, func(c *signin.Config) {
		c.OIDC = &signin.OIDCConfig{
			Name: "ACME <b>", Issuer: i.URL, ClientID: testoidc.Client, ClientSecretFile: file,
			RedirectURL: "http://127.0.0.1:10122" + signin.CallbackPath, Roles: map[string][]string{"lock-approvers": {"approver"}}, TeamsClaim: "departments",
		}
	})
	// There are no users, and still the console is closed.
	if a := b.do("", "GET", "/api/v1/locks", ""); a.status != http.StatusUnauthorized {
		t.Errorf("nobody: status %d", a.status)
	}
	w := browser(t)
	if a := b.askAll(w, "GET", "/sign-in?next=/requests", nil, true); !strings.Contains(a.body, `href="/sign-in/oidc?next=%2frequests"`) || strings.Contains(a.body, "ACME <b>") {
		t.Errorf("the form: %s", a.body)
	}
	begin := func(w way) (url.Values, answer) {
		t.Helper()
		a := b.askAll(w, "GET", "/sign-in/oidc?next=/requests", nil, true)
		if a.status != http.StatusSeeOther {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		return i.Authorize(t, a.head.Get("Location")), a
	}
	back, a := begin(w)
	if c := a.head.Get("Set-Cookie"); !strings.Contains(c, "SameSite=Lax") || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "Max-Age=600") {
		t.Errorf("the cookie %q", c)
	}
	// The browser comes from another site.
	a = b.askAll(w, "GET", signin.CallbackPath+"?"+back.Encode(), nil, true, header("Sec-Fetch-Site", "cross-site"))
	if a.status != http.StatusOK || !strings.Contains(a.body, `content="0;url=/requests"`) {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	cookies := strings.Join(a.head.Values("Set-Cookie"), "\n")
	if !strings.Contains(cookies, "SameSite=Strict") || !strings.Contains(cookies, "locksteward-oidc=; Path=/; Max-Age=0") {
		t.Errorf("cookies %s", cookies)
	}
	if a := b.askAll(w, "GET", "/requests", nil, true); a.status != http.StatusOK || !strings.Contains(a.body, "signed in as </span><b>ana@example.org</b>") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	// An approver through the provider, who asks for what an approver may.
	a = b.askAll(w, "POST", "/requests/r1/deny", url.Values{"csrf": {b.csrf(w)}}, true)
	if a.status == http.StatusUnauthorized {
		t.Errorf("a form: status %d", a.status)
	}
	stranger := browser(t)
	for what, c := range map[string]struct {
		query  string
		status int
	}{
		"the same way again":          {back.Encode(), http.StatusBadRequest},
		"a way of another's browser":  {"code=x&state=y", http.StatusBadRequest},
		"a provider's word to nobody": {"error=access_denied", http.StatusBadRequest},
	} {
		if a := b.askAll(stranger, "GET", signin.CallbackPath+"?"+c.query, nil, true); a.status != c.status || !strings.Contains(a.body, `action="/sign-in"`) || strings.Contains(strings.Join(a.head.Values("Set-Cookie"), ""), "Strict") {
			t.Errorf("%s: status %d", what, a.status)
		}
	}
	for what, claims := range map[string]map[string]any{
		"no role": {"groups": []string{"others"}}, "a forged nonce": {"nonce": "n"}, "another client": {"aud": "other"}, "not verified": {"email_verified": false},
		"no name": {"email": "<script>alert(1)</script>@example.org"},
	} {
		w := browser(t)
		i.Set(func(i *testoidc.Issuer) { i.Claims = claims })
		back, _ := begin(w)
		a := b.askAll(w, "GET", signin.CallbackPath+"?"+back.Encode(), nil, true)
		if a.status != http.StatusForbidden || strings.Contains(strings.Join(a.head.Values("Set-Cookie"), ""), "Strict") || strings.Contains(a.body, "<script>alert") {
			t.Errorf("%s: status %d: %s", what, a.status, a.body)
		}
	}
	for _, e := range b.logs.All() {
		for _, secret := range []string{testoidc.Secret, "at-secret", back.Get("code") + "&", back.Get("state")} {
			if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()), secret) {
				t.Errorf("the log shows %q: %s", secret, e.Message)
			}
		}
	}
}

// While the provider is away the page says so, and a token still works.
func TestProviderIsAway(t *testing.T) {
	t.Parallel()
	b := setupAs(t, func(c *signin.Config) {
		c.OIDC = &signin.OIDCConfig{Issuer: "http://127.0.0.1:1", ClientID: "c", RedirectURL: "http://127.0.0.1:10122" + signin.CallbackPath}
	}, "viewer")
	a := b.askAll(browser(t), "GET", "/sign-in/oidc", nil, true)
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "cannot be used now") || !strings.Contains(a.body, `action="/sign-in"`) || strings.Contains(a.body, "127.0.0.1:1") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if a := b.askAll(browser(t), "POST", "/sign-in", credentials("viewer", b.tokens["viewer"], "/"), true); a.status != http.StatusSeeOther {
		t.Errorf("status %d", a.status)
	}
}

// Who comes back from a provider goes on to a page of this console as well.
func TestNextAfterAProviderIsAPageOfOurs(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	file := write(t, "secret", testoidc.Secret)
	b := setupAs(t, func(c *signin.Config) {
		c.OIDC = &signin.OIDCConfig{
			Issuer: i.URL, ClientID: testoidc.Client, ClientSecretFile: file, RedirectURL: "http://127.0.0.1:10122" + signin.CallbackPath,
			Roles: map[string][]string{"lock-approvers": {"approver"}},
		}
	})
	for _, next := range []string{"//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example", "javascript:alert(1)", "/\r\nLocation: //evil.example"} {
		w := browser(t)
		a := b.askAll(w, "GET", "/sign-in/oidc?next="+url.QueryEscape(next), nil, true)
		back := i.Authorize(t, a.head.Get("Location"))
		// The way back has no say in it either.
		back.Set("next", next)
		a = b.askAll(w, "GET", signin.CallbackPath+"?"+back.Encode(), nil, true)
		if a.status != http.StatusOK || !strings.Contains(a.body, `content="0;url=/"`) || strings.Contains(a.body, "evil") || a.head.Get("Location") != "" {
			t.Errorf("%q: status %d: %s", next, a.status, a.body)
		}
	}
}
