package agent_test

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/store"
)

// visit is a request of a browser; it returns the answer without its body.
func (b *bed) visit(method, path, cookie string, form url.Values) *http.Response {
	b.t.Helper()
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, strings.TrimSuffix(b.agent.ConsoleURL(), "/")+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// People stay signed in over a restart of the agent, until they are disabled; what
// they did stands in the audit trail.
func TestSessionsOutliveTheAgent(t *testing.T) {
	t.Parallel()
	b := newBed(t, "targets: [{name: a, url: 'redis://127.0.0.1:1'}]")
	file := filepath.Join(b.dir, "users.yaml")
	resp := b.visit("POST", "/sign-in", "", url.Values{"name": {"ana"}, "password": {b.tokens["ana"].Reveal()}})
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign-in: status %d", resp.StatusCode)
	}
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	if b.visit("POST", "/sign-in", "", url.Values{"name": {"ana"}, "password": {"guess"}}).StatusCode != http.StatusUnauthorized {
		t.Error("a guess is let in")
	}
	b.stop()
	b.start()
	if resp := b.visit("GET", "/api/v1/targets", cookie, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("after a restart: status %d", resp.StatusCode)
	}
	if _, err := users.SetDisabled(file, "ana", true); err != nil {
		t.Fatal(err)
	}
	if resp := b.visit("GET", "/api/v1/targets", cookie, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("before the reload: status %d", resp.StatusCode)
	}
	if err := b.agent.Reload(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if resp := b.visit("GET", "/api/v1/targets", cookie, nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("disabled: status %d", resp.StatusCode)
	}
	b.stop()
	s, err := store.Open(t.Context(), b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it was read alone
	var got []string
	for _, action := range []string{"signin.ok", "signin.failed"} {
		entries, err := s.Entries(t.Context(), store.EntryQuery{Action: action})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Actor+" "+e.Action+" "+e.Outcome)
			if text := e.Subject + string(e.Detail) + e.Reason; strings.Contains(text, "lsu_") || strings.Contains(text, "guess") {
				t.Errorf("a secret stands in %s", text)
			}
		}
	}
	if strings.Join(got, ", ") != "ana signin.ok ok, agent signin.failed refused" {
		t.Errorf("entries %q", got)
	}
	if n, err := s.Verify(t.Context()); err != nil || n < 4 {
		t.Errorf("the trail: %d entries, %v", n, err)
	}
}
