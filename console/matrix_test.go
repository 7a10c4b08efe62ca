package console

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

// way is a way to say who asks.
type way struct {
	name string
	// ambient is what a browser sends by itself.
	ambient bool
	client  *http.Client
	edit    func(*http.Request)
	csrf    string
}

var pathValue = regexp.MustCompile(`\{[a-z]+\}`)

// address fills in a pattern of the mux.
func address(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	path = strings.ReplaceAll(path, "{$}", "")
	path = strings.NewReplacer("{id}", "r1", "{group}", "ttl", "{name}", "none").Replace(path)
	return method, pathValue.ReplaceAllString(path, "x")
}

// ownConnections are those of this package's clients. Where an httptest.Server is
// closed, it closes connections of http.DefaultTransport, also those of other tests.
var ownConnections = &http.Transport{DisableKeepAlives: true}

func noRedirects(jar http.CookieJar) *http.Client {
	return &http.Client{Transport: ownConnections, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ways are all ways in which the user of a role can say who they are, the proxy's included.
func (b *fixture) ways(role string) []way {
	b.t.Helper()
	proxy := way{name: "proxy", ambient: true, client: noRedirects(nil), edit: header("X-Remote-User", "ext-"+role)}
	proxy.csrf = b.csrf(proxy)
	return append(b.waysOfUser(role), proxy)
}

// waysOfUser are those without a proxy.
func (b *fixture) waysOfUser(role string) []way {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	session := way{name: "session", ambient: true, client: noRedirects(jar)}
	if status, body := b.ask(session, http.MethodPost, "/sign-in", url.Values{"name": {role}, "password": {b.tokens[role]}, "next": {"/"}}, true); status != http.StatusSeeOther {
		b.t.Fatalf("sign-in of %s: status %d: %s", role, status, body)
	}
	session.csrf = b.csrf(session)
	return []way{
		{name: "token", client: noRedirects(nil), edit: header("Authorization", "Bearer "+b.tokens[role])},
		{name: "basic", ambient: true, client: noRedirects(nil), edit: header("Authorization", basic(role, b.tokens[role]))},
		session,
	}
}

var hidden = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf is the token of the forms that a page shows.
func (b *fixture) csrf(w way) string {
	b.t.Helper()
	_, body := b.ask(w, http.MethodGet, "/", nil, true)
	m := hidden.FindStringSubmatch(body)
	if m == nil {
		b.t.Fatalf("%s: no form on the page: %.500s", w.name, body)
	}
	return m[1]
}

// ask sends a form to a page, and an object to what is none.
func (b *fixture) ask(w way, method, path string, form url.Values, page bool) (int, string) {
	b.t.Helper()
	a := b.askAll(w, method, path, form, page)
	return a.status, a.body
}
