package console

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/api"
)

// answer is a response that was read.
type answer struct {
	status int
	head   http.Header
	body   string
}

func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	if a.head.Get("Content-Type") != api.ProblemType {
		t.Fatalf("status %d, content type %q: %s", a.status, a.head.Get("Content-Type"), a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != a.status || p.Detail == "" || p.Title == "" || p.Type != "urn:locksteward:problem:"+string(p.Code) {
		t.Errorf("status %d, problem %+v", a.status, p)
	}
	return p
}

// do sends a request as the user ("" is nobody); edits change it before.
func (b *fixture) do(user, method, path, body string, edits ...func(*http.Request)) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if user != "" {
		req.Header.Set("Authorization", "Bearer "+b.tokens[user])
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(req)
	}
	a := b.exchange(&http.Client{Transport: ownConnections}, req)
	holds(b.t, req, body, a)
	return a
}

// exchange sends a request and reads the whole answer.
func (b *fixture) exchange(c *http.Client, req *http.Request) answer {
	b.t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// get decodes the answer of a GET by a nobody or a viewer.
func get[T any](b *fixture, user, path string) T {
	b.t.Helper()
	var out T
	a := b.do(user, http.MethodGet, path, "")
	dec := json.NewDecoder(bytes.NewReader([]byte(a.body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil || a.status != http.StatusOK {
		b.t.Fatalf("GET %s: status %d, %v: %s", path, a.status, err, a.body)
	}
	return out
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
