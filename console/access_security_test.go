package console

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

// accessGolden is who gets through the door of which route.
const accessGolden = "testdata/access.golden"

// Every route, by everybody: nobody, each role by token, basic authentication, session and proxy, a session that is
// over, a session and a token of another agent. The table is compared with a file, so that a change of who may do
// what is seen in review. A change by what a browser sends by itself needs the form of the session.
func TestAccessTable(t *testing.T) {
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
	all := slices.DeleteFunc(slices.Concat(b.server.routes(), b.server.pageRoutes()), func(rt route) bool {
		return rt.pattern == "GET /live" // it does not end, and has a test of its own
	})
	table := map[string][]string{}
	fill := func(name string, w way, role users.Role) {
		who := users.User{Roles: []users.Role{role}}
		for _, rt := range all {
			outcome := b.through(w, rt)
			table[rt.pattern] = append(table[rt.pattern], name+" "+outcome)
			isJudged := rt.verb == users.VerbView || rt.verb == users.VerbAdmin || rt.verb == users.VerbSilence
			if role == "" && outcome != "401" && !rt.anybody || role != "" && isJudged && outcome != "401" && (outcome == "in") != who.Can(rt.verb) {
				t.Errorf("%s by %s: %s", rt.pattern, name, outcome)
			}
		}
	}
	fill("nobody", way{client: noRedirects(nil)}, "")
	var session way
	for _, role := range roles {
		for _, w := range b.ways(role) {
			fill(role+" "+w.name, w, users.Role(role))
			b.checkForms(w, all)
			if w.name == "session" && role == "admin" {
				session = w
			}
		}
	}
	// Cookies mind the host and not the port: the browser sends the other agent's.
	other := setupAs(t, func(*signin.Config) {}, "admin")
	for _, w := range other.waysOfUser("admin") {
		if w.name != "basic" { // a wrong password locks out after a few tries: see package signin
			fill("foreign "+w.name, w, "")
		}
	}
	b.ahead.Add(int64(signin.DefaultMaxAge + time.Minute))
	fill("admin session after 12h", session, "")

	var text strings.Builder
	fmt.Fprint(&text, "# Who gets through the door of which route: in, 401 (sign in), 403 (not with this role). Behind the door a release,\n"+
		"# an approval and their like are judged once more, by class: see release.\n"+
		"# Written by: go test ./console -run TestAccessTable -update\n")
	for _, rt := range all {
		fmt.Fprintf(&text, "%s\n", rt.pattern)
		by := map[string][]string{}
		for _, cell := range table[rt.pattern] {
			i := strings.LastIndex(cell, " ")
			by[cell[i+1:]] = append(by[cell[i+1:]], cell[:i])
		}
		for _, outcome := range []string{"in", "403", "401"} {
			if len(by[outcome]) > 0 {
				fmt.Fprintf(&text, "    %-4s %s\n", outcome, strings.Join(by[outcome], ", "))
			}
		}
	}
	if *update {
		if err := os.WriteFile(accessGolden, []byte(text.String()), 0o644); err != nil { //nolint:gosec // A file of the repository.
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(accessGolden)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("who may do what has changed: look at it, then run go test ./console -run TestAccessTable -update\n%s", text.String())
	}
}

// checkForms fails if a page takes a change from a browser that does not have the form of its session.
func (b *fixture) checkForms(w way, all []route) {
	b.t.Helper()
	if !w.ambient || w.name == "basic" {
		return
	}
	for _, rt := range all {
		method, path := address(rt.pattern)
		if !rt.page || method == http.MethodGet {
			continue
		}
		for _, csrf := range []string{"", strings.Repeat("A", len(w.csrf))} {
			status, body := b.ask(w, method, path, url.Values{"csrf": {csrf}}, true)
			if status != http.StatusForbidden || !strings.Contains(body, "this form belongs to another session") {
				b.t.Errorf("%s by %s, with the csrf %q: status %d", rt.pattern, w.name, csrf, status)
			}
		}
	}
}

// through says what the door of a route made of a request.
func (b *fixture) through(w way, rt route) string {
	b.t.Helper()
	method, path := address(rt.pattern)
	form := url.Values{}
	if w.csrf != "" {
		form.Set("csrf", w.csrf)
	}
	a := b.askAll(w, method, path, form, rt.page)
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusSeeOther && strings.HasPrefix(a.head.Get("Location"), "/sign-in"):
		return "401"
	case a.status == http.StatusForbidden:
		return "403"
	case a.status == http.StatusTooManyRequests:
		b.t.Errorf("%s by %s: status 429: %s", rt.pattern, w.name, a.body)
		fallthrough
	default:
		return "in"
	}
}
