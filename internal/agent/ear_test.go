package agent_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

// ear is a webhook receiver on loopback that can be away, and answers as a test
// says.
type ear struct {
	*testagent.Ear
	t   *testing.T
	url string

	mu     sync.Mutex
	answer func(n int, w http.ResponseWriter, r *http.Request)
	all    []received
}

// received is one request that came in full.
type received struct {
	id string
	at time.Time
	alert.Payload
	body string
}

// finding is the key and status of a message about one.
func (h received) finding() string {
	if len(h.Findings) == 0 {
		return h.Type
	}
	return h.Findings[0].Key.Key + " " + h.Status
}

func newEar(t *testing.T) *ear {
	t.Helper()
	e := &ear{t: t}
	e.Ear = testagent.NewEar(t, e.take)
	e.url = e.URL
	return e
}

func (e *ear) take(w http.ResponseWriter, r *http.Request, m testagent.Message) {
	e.mu.Lock()
	e.all = append(e.all, received{id: m.ID, at: m.At, Payload: m.Payload, body: string(m.Body)})
	n, answer := len(e.all), e.answer
	e.mu.Unlock()
	if answer != nil {
		answer(n, w, r)
	}
}

// says changes the answer; nil is 200.
func (e *ear) says(answer func(n int, w http.ResponseWriter, r *http.Request)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// got are the requests so far.
func (e *ear) got() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.all...)
}

// await waits until n requests came, and returns them.
func (e *ear) await(n int) []received {
	e.t.Helper()
	testredis.Eventually(e.t, within, func() bool { return len(e.got()) >= n }, "messages do not come")
	return e.got()
}

// of are the messages of a type, "" for those about findings.
func (e *ear) of(kind string) []received {
	var out []received
	for _, h := range e.got() {
		if h.Type == kind || kind == "" && len(h.Findings) > 0 {
			out = append(out, h)
		}
	}
	return out
}

func (e *ear) awaitOf(kind string) received {
	e.t.Helper()
	testredis.Eventually(e.t, within, func() bool { return len(e.of(kind)) > 0 }, "nobody tells "+kind)
	return e.of(kind)[0]
}

// receivers is the configuration of webhooks by name.
func receivers(pairs ...string) string {
	var text strings.Builder
	// Each finding by itself and at once. An answer that is late must not bring a message again: an attempt, and the time
	// for its answer when the agent ends, take as long as a slow machine needs.
	text.WriteString("\nalert:\n  drain_timeout: 5s\n  first_sweep: fire\n  grouping: {by: [fingerprint], wait: 0s, interval: 0s}\n  receivers:\n")
	for i := 0; i < len(pairs); i += 2 {
		text.WriteString("    - {name: " + pairs[i] + ", kind: webhook, url: '" + pairs[i+1] + "', allow_private: true, timeout: 5s}\n")
	}
	return text.String()
}

// person adds a user and returns their client.
func (b *bed) person(name string, roles ...users.Role) *apiclient.Client {
	b.t.Helper()
	token, err := users.Add(filepath.Join(b.dir, "users.yaml"), name, roles)
	if err != nil {
		b.t.Fatal(err)
	}
	b.tokens[name] = token
	// It takes a moment until the agent runs.
	testredis.Eventually(b.t, within, func() bool { return b.agent.Reload(b.t.Context()) == nil }, "the users are not read again")
	return b.client(token)
}

// deliveries are the messages to a receiver, the oldest first.
func (b *bed) deliveries(receiver string) []api.Notification {
	b.t.Helper()
	list, err := b.ana.Notifications(b.t.Context(), apiclient.NotificationQuery{Receiver: receiver, Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	var out []api.Notification
	for _, d := range list.Notifications {
		out = append([]api.Notification{d}, out...)
	}
	return out
}

// ask is a release of a key.
func ask(key string) api.CreateRequest {
	return api.CreateRequest{Target: "main", Key: api.NewKey(key), Reason: "INC-7"}
}
