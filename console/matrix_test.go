package console

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
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

// Every route, every role, every way to say who asks: what the door lets through.
// The verbs behind it are judged by Releases, which are another's test.
func TestDoorOfEveryRoute(t *testing.T) {
	t.Parallel()
	var roles []string
	for _, r := range users.Roles() {
		roles = append(roles, string(r))
	}
	b := setupAs(t, func(c *signin.Config) {
		c.Proxy = &signin.ProxyConfig{Allow: []string{"127.0.0.1"}, Header: "X-Remote-User"}
	}, roles...)
	for _, r := range roles {
		if _, err := users.AddUser(b.file, users.NewUser{Name: "ext-" + r, Roles: []users.Role{users.Role(r)}, External: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.server.ReloadUsers(); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(b.server.routes(), b.server.pageRoutes())
	if len(all) == 0 {
		t.Fatal("no routes")
	}
	tried := 0
	for _, role := range roles {
		for _, w := range b.ways(role) {
			for _, rt := range all {
				if rt.pattern == "GET /live" {
					continue // it does not end: see the test of it
				}
				method, path := address(rt.pattern)
				who := users.User{Roles: []users.Role{users.Role(role)}}
				change := method != http.MethodGet
				form := url.Values{}
				if w.csrf != "" {
					form.Set("csrf", w.csrf)
				}
				status, body := b.ask(w, method, path, form, rt.page)
				tried++
				what := fmt.Sprintf("%s by %s: %s %s: status %d", role, w.name, method, path, status)
				switch judged := rt.verb == users.VerbView || rt.verb == users.VerbAdmin || rt.verb == users.VerbSilence; {
				case change && w.ambient && !rt.page, change && w.name == "basic":
					if status != http.StatusUnauthorized {
						t.Error(what)
					}
				case judged && !who.Can(rt.verb):
					if status != http.StatusForbidden {
						t.Error(what)
					}
				case status == http.StatusUnauthorized || status == http.StatusTooManyRequests || judged && status == http.StatusForbidden:
					t.Errorf("%s: %.300s", what, body)
				}
				if !change || !rt.page || !w.ambient || w.name == "basic" {
					continue
				}
				// The same without the session's form.
				for _, csrf := range []string{"", strings.Repeat("A", len(w.csrf))} {
					status, body := b.ask(w, method, path, url.Values{"csrf": {csrf}}, true)
					if status != http.StatusForbidden || !strings.Contains(body, "belongs to another session") {
						t.Errorf("%s, with the csrf %q: status %d", what, csrf, status)
					}
				}
			}
		}
	}
	for _, rt := range all {
		method, path := address(rt.pattern)
		status, body := b.ask(way{client: noRedirects(nil)}, method, path, url.Values{}, rt.page)
		want := http.StatusUnauthorized
		if rt.page && method != http.MethodGet && !strings.Contains(body, "sign in at /sign-in") {
			t.Errorf("nobody: %s %s: %s", method, path, body)
		}
		if rt.page && method == http.MethodGet {
			want = http.StatusSeeOther
		}
		if status != want {
			t.Errorf("nobody: %s %s: status %d", method, path, status)
		}
	}
	t.Logf("%d requests through the door of %d routes", tried, len(all))
}

func noRedirects(jar http.CookieJar) *http.Client {
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ways are all ways in which the user of a role can say who they are.
func (b *fixture) ways(role string) []way {
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
	proxy := way{name: "proxy", ambient: true, client: noRedirects(nil), edit: header("X-Remote-User", "ext-"+role)}
	proxy.csrf = b.csrf(proxy)
	return []way{
		{name: "token", client: noRedirects(nil), edit: header("Authorization", "Bearer "+b.tokens[role])},
		{name: "basic", ambient: true, client: noRedirects(nil), edit: header("Authorization", basic(role, b.tokens[role]))},
		session, proxy,
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
