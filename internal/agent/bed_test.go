package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

func TestMain(m *testing.M) {
	if is, code := testagent.Child(); is {
		os.Exit(code)
	}
	goleak.VerifyTestMain(testredis.Settled{M: m, SideBySide: 4})
}

// within is how long an event may take on a loaded machine.
const within = 20 * time.Second

// bed is a running agent with two people.
type bed struct {
	t     *testing.T
	dir   string
	file  string
	logs  *observer.ObservedLogs
	agent *agent.Agent
	dsn   string // of the store
	keys  string // more keys of it

	tokens map[string]locksteward.Secret
	ana    *apiclient.Client // requester
	bo     *apiclient.Client // approver
	stop   func()
	ended  func() error // waits for an agent that ends by itself
}

// newBed writes the configuration and runs the agent on it until the test ends.
// The text lacks listeners, store and users, which are private to the bed.
func newBed(t *testing.T, text string) *bed {
	t.Helper()
	return newBedOn(t, text, "")
}

// newBedOn is newBed with another store than a file of its own.
func newBedOn(t *testing.T, text, dsn string) *bed {
	t.Helper()
	b := layBed(t, text, dsn)
	b.start()
	return b
}

// layBed writes all that an agent needs and runs none.
func layBed(t *testing.T, text, dsn string) *bed {
	t.Helper()
	b := &bed{t: t, dir: t.TempDir(), tokens: map[string]locksteward.Secret{}}
	b.file = filepath.Join(b.dir, "locksteward.yaml")
	if b.dsn = dsn; dsn == "" {
		b.dsn = "sqlite:" + filepath.Join(b.dir, "store.db")
	}
	usersFile := filepath.Join(b.dir, "users.yaml")
	for name, role := range map[string]users.Role{"ana": users.RoleRequester, "bo": users.RoleApprover} {
		token, err := users.Add(usersFile, name, []users.Role{role})
		if err != nil {
			t.Fatal(err)
		}
		b.tokens[name] = token
	}
	b.write(text)
	return b
}

func (b *bed) write(text string) {
	b.t.Helper()
	text += "\nmetrics: {listen: '127.0.0.1:0'}\nconsole: {listen: '127.0.0.1:0', users_file: '" + filepath.Join(b.dir, "users.yaml") +
		"', rate: {per_second: 10000}}\nstore: {dsn: '" + b.dsn + "'" + b.keys + "}\n"
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) start() {
	b.t.Helper()
	cfg, err := config.Load(b.file)
	if err != nil {
		b.t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	b.logs = logs
	b.t.Cleanup(func() {
		for _, e := range logs.All() {
			if b.t.Failed() && e.Level > zapcore.DebugLevel {
				b.t.Log(e.Time.Format("15:04:05.000"), e.Message, e.ContextMap())
			}
		}
	})
	b.agent, err = agent.New(b.t.Context(), zap.New(core), cfg, agent.Options{
		Load:      func() (config.Config, error) { return config.Load(b.file) },
		LookEvery: 100 * time.Millisecond,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.agent.Run(ctx) }()
	ended := sync.OnceValue(func() error { return <-done })
	var awaited atomic.Bool
	b.ended = func() error { awaited.Store(true); return ended() }
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := ended(); err != nil && !awaited.Load() {
			b.t.Errorf("the agent ended with: %v", err)
		}
	})
	b.t.Cleanup(b.stop)
	b.ana, b.bo = b.client(b.tokens["ana"]), b.client(b.tokens["bo"])
}

func (b *bed) client(token locksteward.Secret) *apiclient.Client {
	b.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	c, err := apiclient.New(b.agent.ConsoleURL(), token, &http.Client{Transport: transport, Timeout: within})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// requests are all releases that were asked for.
func (b *bed) requests() []api.Request {
	b.t.Helper()
	list, err := b.bo.Requests(b.t.Context(), apiclient.RequestsQuery{})
	if err != nil {
		b.t.Error(err)
	}
	return list.Requests
}

// metrics returns one scrape.
func (b *bed) metrics() string { return get("http://" + b.agent.MetricsAddr().String() + "/metrics") }

func get(url string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	resp, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// awaitMetric waits until a scrape has text.
func (b *bed) awaitMetric(text string) {
	b.t.Helper()
	testredis.Eventually(b.t, within, func() bool { return strings.Contains(b.metrics(), text) }, "no metric "+text)
}

// everything is all that the agent let out: logs, metrics, store.
func (b *bed) everything() string {
	b.t.Helper()
	var out strings.Builder
	for _, e := range b.logs.All() {
		raw, err := json.Marshal(e.ContextMap())
		if err != nil {
			b.t.Fatal(err)
		}
		out.WriteString(e.Message + string(raw) + "\n")
	}
	out.WriteString(b.metrics())
	for _, name := range []string{"store.db", "store.db-wal"} {
		raw, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil && !os.IsNotExist(err) {
			b.t.Fatal(err)
		}
		out.Write(raw)
	}
	return out.String()
}

// sink is a webhook receiver.
type sink struct {
	url string

	mu     sync.Mutex
	bodies []string
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read webhook: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, string(raw))
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// got returns the messages so far.
func (s *sink) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// awaitDrained waits until n messages to a receiver arrived and its worker has seen
// that nothing else waits: only then is it reported from memory what the store does not
// take.
func (b *bed) awaitDrained(receiver string, n int) {
	b.t.Helper()
	testredis.Eventually(b.t, within, func() bool {
		arrived, drained := 0, false
		for _, e := range b.logs.All() {
			if e.ContextMap()["receiver"] != receiver {
				continue
			}
			switch e.Message {
			case "notification delivered":
				arrived, drained = arrived+1, false
			case "the outbox is empty: notifications that the store does not take are sent from memory":
				drained = true
			}
		}
		return arrived == n && drained
	}, "messages are not delivered")
}
