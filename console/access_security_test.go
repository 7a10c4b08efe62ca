package console

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
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

// Every route, by everybody: nobody, each role by session and by API token, a session
// that is over, one of another agent, a token of another agent. The table is
// compared with a file, so that a change of who may do what is seen in review.
func TestAccessTable(t *testing.T) {
	t.Parallel()
	var roles []string
	for _, r := range users.Roles() {
		roles = append(roles, string(r))
	}
	none := func(*signin.Config) {}
	b, other := setupAs(t, none, roles...), setupAs(t, none, roles...)
	asks := []struct {
		name string
		way  way
	}{{"nobody", way{client: noRedirects(nil)}}}
	sessions := map[string]way{}
	add := func(name string, w way) {
		asks = append(asks, struct {
			name string
			way  way
		}{name, w})
	}
	for _, role := range roles {
		token, session := plainWays(b, role)
		sessions[role] = session
		add(role, session)
		add(role+" token", token)
	}
	foreignToken, foreignSession := plainWays(other, "admin")
	// Cookies mind the host and not the port: the browser sends the other agent's.
	add("foreign session", foreignSession)
	add("foreign token", foreignToken)

	all := slices.Concat(b.server.routes(), b.server.pageRoutes())
	table := map[string][]string{}
	fill := func(name string, w way) {
		for _, rt := range all {
			if rt.pattern == "GET /live" {
				continue // it does not end; TestDoorOfEveryRoute and its own test have it
			}
			table[rt.pattern] = append(table[rt.pattern], name+" "+b.through(w, rt))
		}
	}
	for _, one := range asks {
		fill(one.name, one.way)
	}
	b.ahead.Add(int64(signin.DefaultMaxAge + time.Minute))
	fill("admin after 12h", sessions["admin"])

	var text strings.Builder
	fmt.Fprint(&text, "# Who gets through the door of which route: in, 401 (sign in), 403 (not with this role). Behind the door a release,\n"+
		"# an approval and their like are judged once more, by class: see release.\n"+
		"# Written by: go test ./console -run TestAccessTable -update\n")
	for _, rt := range all {
		row := table[rt.pattern]
		if row == nil {
			continue
		}
		fmt.Fprintf(&text, "%s\n", rt.pattern)
		by := map[string][]string{}
		for _, cell := range row {
			i := strings.LastIndex(cell, " ")
			by[cell[i+1:]] = append(by[cell[i+1:]], cell[:i])
		}
		for _, outcome := range []string{"in", "403", "401"} {
			if len(by[outcome]) > 0 {
				fmt.Fprintf(&text, "    %-4s %s\n", outcome, strings.Join(by[outcome], ", "))
			}
		}
		for _, cell := range row {
			name, outcome := cell[:strings.LastIndex(cell, " ")], cell[strings.LastIndex(cell, " ")+1:]
			outsider := name == "nobody" || strings.HasPrefix(name, "foreign") || strings.HasSuffix(name, "12h")
			if outsider && outcome != "401" && !rt.anybody {
				t.Errorf("%s by %s: %s", rt.pattern, name, outcome)
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
	t.Logf("%d routes, %d ways to ask", len(table), len(asks)+1)
}

// plainWays are a token and a session.
func plainWays(b *fixture, role string) (token, session way) {
	b.t.Helper()
	for _, w := range b.waysWithoutProxy(role) {
		if w.ambient {
			session = w
		} else {
			token = w
		}
	}
	return token, session
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
	default:
		return "in"
	}
}

// waysWithoutProxy are those of a console that no proxy is in front of.
func (b *fixture) waysWithoutProxy(role string) []way {
	b.t.Helper()
	session := way{name: "session", ambient: true, client: noRedirects(newJar(b.t))}
	if status, body := b.ask(session, http.MethodPost, "/sign-in", url.Values{"name": {role}, "password": {b.tokens[role]}, "next": {"/"}}, true); status != http.StatusSeeOther {
		b.t.Fatalf("sign-in of %s: status %d: %s", role, status, body)
	}
	session.csrf = b.csrf(session)
	return []way{{name: "token", client: noRedirects(nil), edit: header("Authorization", "Bearer "+b.tokens[role])}, session}
}

func newJar(t *testing.T) http.CookieJar {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return jar
}
