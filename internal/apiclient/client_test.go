package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent returns a client of a server that answers with h.
func agent(t *testing.T, token locksteward.Secret, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(srv.URL+"/", token, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url   string
		token locksteward.Secret
	}{
		"empty": {"", ""}, "no scheme": {"127.0.0.1:10122", ""}, "other scheme": {"unix:///x", ""},
		"credentials": {"http://ann:pa55@127.0.0.1", ""}, "token in clear": {"http://10.0.0.1:10122", "lsu_t"}, "control": {"http://\x7f", ""},
	} {
		if _, err := New(c.url, c.token, nil); !errors.Is(err, locksteward.ErrInvalid) || strings.Contains(err.Error(), "pa55") || strings.Contains(err.Error(), "lsu_t") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, u := range []string{"http://127.0.0.1:10122", "http://localhost", "http://[::1]:1/", "https://agent.internal"} {
		if _, err := New(u, "lsu_t", nil); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func TestProblemsKeepTheirSentinels(t *testing.T) {
	t.Parallel()
	for code, sentinel := range map[api.Code]error{
		api.CodeInvalid: locksteward.ErrInvalid, api.CodeRefused: locksteward.ErrRefused, api.CodeNotFound: locksteward.ErrNotFound,
		api.CodeConflict: locksteward.ErrConflict, api.CodeUnauthenticated: locksteward.ErrRefused, api.CodeTooLarge: locksteward.ErrInvalid,
	} {
		c := agent(t, "lsu_secret", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(api.NewProblem(code, "").Status)
			fmt.Fprintf(w, `{"status":1,"code":%q,"detail":"this agent cannot delete","new_field":1}`, code)
		})
		_, err := c.Approve(t.Context(), "r1", api.Decide{})
		if !errors.Is(err, sentinel) || err.Error() != "this agent cannot delete" {
			t.Errorf("%s: got %v", code, err)
		}
	}
}

func TestNoAgentSaysWhatToDo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := New(url, "lsu_secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Lock(t.Context(), "orders", nil, "lock:personal", "")
	for _, want := range []string{"no agent at " + url, "locksteward run", "--agent"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "lsu_secret") || strings.Contains(err.Error(), "personal") {
		t.Errorf("the error tells too much: %v", err)
	}
}

func TestStrangersAreRecognised(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"html": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"broken json": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
		},
		"bare 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"odd problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(500)
			fmt.Fprint(w, "{}")
		},
	} {
		c := agent(t, "", h)
		if _, err := c.Targets(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer like a Locksteward agent") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRequestsAreEncoded(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	c := agent(t, "lsu_secret", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
		got <- r.Clone(context.WithoutCancel(r.Context()))
	})
	if _, err := c.Locks(t.Context(), LocksQuery{Class: "a&b", Limit: 5}); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.URL.RawQuery != "class=a%26b&limit=5" || r.Header.Get("Authorization") != "Bearer lsu_secret" || r.Header.Get("Content-Type") != "" {
		t.Errorf("got %s, %v", r.URL, r.Header)
	}
	if _, err := c.Lock(t.Context(), "orders", new(3), "k\xff", "zh"); err != nil {
		t.Fatal(err)
	}
	if q := (<-got).URL.Query(); q.Get("key_b64") != "a/8=" || q.Has("key") || q.Get("db") != "3" || q.Get("lang") != "zh" {
		t.Errorf("got %v", q)
	}
	if _, err := c.Request(t.Context(), "../audit?x"); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.URL.EscapedPath() != "/api/v1/requests/..%2Faudit%3Fx" {
		t.Errorf("got %s", r.URL.EscapedPath())
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Method != "POST" || r.URL.Path != "/-/reload" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s %s", r.Method, r.URL)
	}
}

func TestContextEndsTheCall(t *testing.T) {
	t.Parallel()
	c := agent(t, "", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := c.Targets(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// A list of many pages may be more than an agent answers in a second: a GET waits
// for its turn, a change does not.
func TestBusyAgentIsAskedAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	c := agent(t, "", func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.Method == http.MethodPost || asked < 3 {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"status":429,"code":"too_many","detail":"too many requests: try again in 1s"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"total":7}`)
	})
	if list, err := c.Locks(t.Context(), LocksQuery{}); err != nil || list.Total != 7 || asked != 3 {
		t.Errorf("asked %d times: %+v, %v", asked, list, err)
	}
	if _, err := c.Approve(t.Context(), "r1", api.Decide{}); !errors.Is(err, locksteward.ErrRefused) || asked != 4 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
