package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/lock"
)

// pair is two replicas: near works on the target, far is asked.
type pair struct {
	far, near          *bed
	ana, bo, gus, root *apiclient.Client // of far: requester, approver, break-glass, admin
	rdb                *redis.Client
	locks              *lock.Client // of the host app-7
	last               int          // number of the last lock that was made
}

// newPair has two replicas on a target with one lock of which a finding fires, one that
// is waited for, and one request.
func newPair(t *testing.T) *pair {
	t.Helper()
	srv := testredis.Start(t)
	s := &pair{rdb: srv.Client(t)}
	client, err := lock.New(s.rdb, lock.Options{App: "checkout", Host: "app-7"})
	if err != nil {
		t.Fatal(err)
	}
	s.locks = client
	set(t, s.rdb, "lock:order:still", token, 0)
	s.queue(t)
	e := newEar(t)
	// A lease that a busy machine does not lose: the target must stay where it is.
	beds := newBeds(t, 2, target(srv.URL())+orders+receivers("ops", e.url)+"cluster: {lease: 15s}\n", testpg.Start(t).DSN())
	testredis.Eventually(t, back, func() bool {
		for i, b := range beds {
			if len(b.leads()) == 1 {
				s.near, s.far = b, beds[1-i]
			}
		}
		return s.near != nil && len(s.far.leads()) == 0 && len(s.near.leads()) == 1
	}, "nobody works on the target")
	s.gus, s.root = s.far.person("gus", users.RoleBreakGlass), s.far.person("root", users.RoleAdmin)
	s.near.tokens["gus"] = s.far.tokens["gus"]
	if err := s.near.agent.Reload(t.Context()); err != nil { // it has the people too
		t.Fatal(err)
	}
	s.ana, s.bo = s.far.ana, s.far.bo
	s.near.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} 1`)
	return s
}

// queue has one hold lock:order:held and another one wait for it.
func (s *pair) queue(t *testing.T) {
	t.Helper()
	ctx := lock.WithSession(t.Context())
	if _, err := s.locks.Acquire(ctx, "lock:order:held", lock.Lease{TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := s.locks.Acquire(lock.WithSession(t.Context()), "lock:order:held", lock.Lease{TTL: time.Hour})
		waits <- err
	}()
	t.Cleanup(func() { // the test's context is over
		if err := <-waits; err == nil {
			t.Error("two hold one lock")
		}
		_ = s.locks.Close() // the server may be gone
	})
}

// lock makes a lock and returns its key.
func (s *pair) lock(t *testing.T) string {
	t.Helper()
	s.last++
	key := fmt.Sprintf("lock:order:%d", s.last)
	set(t, s.rdb, key, token, time.Hour)
	return key
}

// there says whether a lock stands with the holder's token.
func (s *pair) there(t *testing.T, key string) bool {
	t.Helper()
	got, err := s.rdb.Get(t.Context(), key).Result()
	return err == nil && got == token
}

// request asks the far replica for the release of a new lock.
func (s *pair) request(t *testing.T, change func(*api.CreateRequest)) api.Request {
	t.Helper()
	in := ask(s.lock(t))
	if change != nil {
		change(&in)
	}
	r, err := s.ana.CreateRequest(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// word is a decision on what was shown.
func word(hash string) api.Decide { return api.Decide{Reason: "looked", EvidenceHash: hash} }

// takenOver is a request that took a lock over.
func (s *pair) takenOver(t *testing.T) api.Request {
	t.Helper()
	r := s.request(t, func(in *api.CreateRequest) { in.TakeOverMs = time.Hour.Milliseconds() })
	r, err := s.bo.Approve(t.Context(), r.ID, word(r.EvidenceHash))
	if err != nil || r.State != "released" {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// bundle asks the far replica for the release of two locks of a host.
func (s *pair) bundle(t *testing.T) api.Bundle {
	t.Helper()
	in := api.CreateBundle{Target: "main", Host: "app-7", Reason: "INC-8"}
	for range 2 {
		s.last++
		key := fmt.Sprintf("lock:order:%d", s.last)
		if _, err := s.locks.Acquire(t.Context(), key, lock.Lease{TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		in.Keys = append(in.Keys, api.NewKey(key))
	}
	out, err := s.ana.CreateBundle(t.Context(), in)
	if err != nil || len(out.Requests) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	return out
}

// audited wants the person's name on what they did, in the trail that both show.
func (s *pair) audited(t *testing.T, who, action, subject string) {
	t.Helper()
	for _, b := range []*bed{s.far, s.near} {
		list, err := b.ana.Audit(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range list.Entries {
			found = found || e.Actor == who && e.Action == action && (subject == "" || e.Subject == subject)
		}
		if !found {
			t.Errorf("the trail does not say that %s did %s of %q", who, action, subject)
		}
	}
}

// done wants a request to have been carried out by the near replica and in the state on
// both.
func (s *pair) done(t *testing.T, id, state string) {
	t.Helper()
	over := func(b *bed) bool {
		for _, e := range b.logs.FilterMessage("release request is over").All() {
			if e.ContextMap()["request_id"] == id {
				return true
			}
		}
		return false
	}
	if !over(s.near) || over(s.far) {
		t.Errorf("request %s: the replica with the target ended it: %v, the other: %v", id, over(s.near), over(s.far))
	}
	for name, b := range map[string]*bed{"far": s.far, "near": s.near} {
		if r, err := b.ana.Request(t.Context(), id); err != nil || r.State != state {
			t.Errorf("request %s is %q on the %s replica, %v; want %s", id, r.State, name, err, state)
		}
	}
}

// call sends a person's request and returns the body of what is answered with success.
func (b *bed) call(t *testing.T, who, method, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(b.agent.ConsoleURL(), "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.tokens[who].Reveal())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", method, path, resp.StatusCode, raw)
	}
	return string(raw)
}

// moving are fields that are other ones a moment later.
func moving(name string) bool {
	for _, end := range []string{"_ms", "until", "counter_evidence", "_at", "at", "_seen", "_beat", "beat", "looks", "since", "renewed", "etag", "generated"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// still is an answer without what moves.
func still(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, in := range v {
				if moving(name) {
					delete(v, name)
				} else {
					strip(in)
				}
			}
		case []any:
			for _, in := range v {
				strip(in)
			}
		}
	}
	strip(v)
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return counted.ReplaceAllString(string(raw), "some $1")
}

// counted is what grows in sentences: the evidence of a finding is as old as the store's.
var counted = regexp.MustCompile(`[0-9hms.]+ (ago|looks?)`)

// same wants the far replica to answer as the near one does, and the answer to have
// words in it. What the one tells the other takes a second.
func same(path string, words ...string) place {
	return place{ask: func(t *testing.T, s *pair) { s.same(t, path, words...) }}
}

func (s *pair) same(t *testing.T, path string, words ...string) {
	t.Helper()
	var far, near string
	defer func() {
		if t.Failed() {
			t.Logf("the far replica: %s\nthe near one: %s", far, near)
		}
	}()
	testredis.Eventually(t, within, func() bool {
		near, far = still(t, s.near.call(t, "ana", http.MethodGet, path)), still(t, s.far.call(t, "ana", http.MethodGet, path))
		for _, w := range words {
			if !strings.Contains(far, w) {
				return false
			}
		}
		return far == near
	}, path+": the replicas do not say the same")
}

// routesOfTheContract are all of docs/openapi.yaml, which are those that are served
// (TestOpenAPIIsTheRoutes in console).
func routesOfTheContract(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var out []string
	for path, ops := range doc.Paths {
		for method := range ops {
			switch method {
			case "get", "post", "put", "patch", "delete":
				out = append(out, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return out
}
