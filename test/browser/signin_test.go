package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testoidc"
)

// withProvider runs an agent whose people sign in at a provider. It returns the
// console's address on localhost: the provider is on 127.0.0.1, which is another
// site to a browser.
func withProvider(t *testing.T, i *testoidc.Issuer) string {
	t.Helper()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "locksteward.yaml")
	text := fmt.Sprintf("targets: [{name: main, url: 'redis://127.0.0.1:1'}]\nmetrics: {listen: '127.0.0.1:0'}\nstore: {dsn: 'sqlite:%s'}\n"+
		"console: {listen: '127.0.0.1:0', users_file: '%s', oidc: {name: ACME, issuer: '%s', client_id: %s, client_secret_file: '%s', "+
		"redirect_url: 'http://localhost:10122%s', roles: {lock-viewers: [viewer]}}}\n",
		filepath.Join(dir, "store.db"), filepath.Join(dir, "users.yaml"), i.URL, testoidc.Client, secret, signin.CallbackPath)
	for name, text := range map[string]string{secret: testoidc.Secret, file: text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := testagent.Run(t, file, agent.Options{})
	home := strings.TrimSuffix(strings.Replace(a.ConsoleURL(), "127.0.0.1", "localhost", 1), "/")
	i.Set(func(i *testoidc.Issuer) { i.Home = home })
	return home
}

// A browser that comes back from a provider keeps the strict cookie back, and so
// does one that follows a link of a chat. Both end where they wanted to go.
func TestStrictCookieAndOtherSites(t *testing.T) {
	t.Parallel()
	browser(t) // before anything else is started for nothing
	i := testoidc.Start(t)
	home := withProvider(t, i)
	b := newTab(t, home)
	b.visit("/targets")
	b.sees("Sign in with ACME")
	b.follow("Sign in with ACME")
	b.follow("Let me in")
	b.await("location.pathname === '/targets'")
	b.seesName("ana@example.org")
	if cookies := js[string](b, "document.cookie"); cookies != "" {
		t.Errorf("a script reads %q", cookies)
	}

	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<!doctype html><title>chat</title><main><a href="%s/findings?rule=ttl/none">the finding</a>
<form method="post" action="%s/sign-out"><button>win</button></form></main>`, home, home)
	}))
	t.Cleanup(chat.Close)
	b.do(chromedp.Navigate(chat.URL))
	b.follow("the finding")
	b.await("location.pathname === '/findings' && location.search === '?rule=ttl/none'")
	b.seesName("ana@example.org")

	b.do(chromedp.Navigate(chat.URL))
	b.press("win")
	b.sees("comes from another web site")
	b.visit("/findings")
	b.seesName("ana@example.org")

	b.signOut()
	b.sees("Sign in with ACME")
	b.visit("/findings")
	b.sees("Sign in with ACME")
}
