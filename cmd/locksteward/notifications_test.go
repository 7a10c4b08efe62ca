package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// hooks are the webhook receivers of all scripts, by URL.
type hooks struct {
	mu  sync.Mutex
	all map[string]*hook
}

// hook is a webhook receiver.
type hook struct {
	status int
	bodies []string
}

// command is `hook start NAME`, which sets $NAME to the URL of a receiver that
// takes everything, `hook says NAME STATUS`, which changes its answer (of 3xx, with
// another place), `hook await
// NAME TEXT...`, which waits for a message with all of these, and `hook lacks NAME
// TEXT...`, which fails if there was one.
func (h *hooks) command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[0] != "start" && len(args) < 3 {
		ts.Fatalf("usage: hook start NAME | hook says NAME STATUS | hook await|lacks NAME TEXT...")
	}
	if args[0] == "start" {
		mine := &hook{status: http.StatusOK}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			h.mu.Lock()
			defer h.mu.Unlock()
			if err == nil && mine.status == http.StatusOK {
				mine.bodies = append(mine.bodies, string(raw))
			}
			if mine.status/100 == 3 {
				w.Header().Set("Location", "https://elsewhere.example.com/hook/moved?token=moved")
			}
			w.WriteHeader(mine.status)
		}))
		ts.Defer(server.Close)
		ts.Setenv(args[1], server.URL)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all[server.URL] = mine
		return
	}
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if h.turn(ts, args) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v: no such message within 30s", args)
		}
	}
}

func (h *hooks) turn(ts *testscript.TestScript, args []string) (done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := h.all[ts.Getenv(args[1])]
	if args[0] == "says" {
		status, err := strconv.Atoi(args[2])
		ts.Check(err)
		mine.status = status
		return true
	}
	got := slices.ContainsFunc(mine.bodies, func(body string) bool {
		return !slices.ContainsFunc(args[2:], func(text string) bool { return !strings.Contains(body, text) })
	})
	if args[0] == "lacks" && got {
		ts.Fatalf("%v: there is such a message", args)
	}
	return got || args[0] == "lacks"
}

func newHooks() *hooks { return &hooks{all: map[string]*hook{}} }
