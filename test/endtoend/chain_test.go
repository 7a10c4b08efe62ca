package endtoend_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testam"
	"github.com/locksteward/locksteward/internal/testkit/testprom"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

// within is how long one step of the chain may take on a loaded machine.
const within = 30 * time.Second

// fixture is an agent with one target, the receivers of its notifications, and two people
// who use its API.
type fixture struct {
	t     *testing.T
	dir   string
	agent *agent.Agent
	sink  *sink
	ana   *apiclient.Client // requester
	bo    *apiclient.Client // approver
}

// newFixture starts an agent. Target is an element of targets without its name and schedule,
// pattern that of the class orders, receivers are elements of alert.receivers beside the webhook.
func newFixture(t *testing.T, target, pattern, receivers string) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), sink: newSink(t)}
	file := f.write("locksteward.yaml", `
targets: [{name: main, schedule: '@every 1s', `+target+`}]
classes: [{class: orders, match: ['`+pattern+`'], team: checkout, release: approve}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '`+filepath.Join(f.dir, "users.yaml")+`'}
store: {dsn: 'sqlite:`+filepath.Join(f.dir, "store.db")+`'}
alert:
  grouping: {by: [target, class, rule], wait: 0s, interval: 0s}
  receivers:
    - {name: hook, kind: webhook, url: '`+f.sink.url+`', allow_private: true, secret_files: ['`+f.write("secret", f.sink.secret)+`']}
`+receivers)
	tokens := map[string]locksteward.Secret{}
	for name, role := range map[string]users.Role{"ana": users.RoleRequester, "bo": users.RoleApprover} {
		token, err := users.Add(filepath.Join(f.dir, "users.yaml"), name, []users.Role{role})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token
	}
	f.agent = testagent.Run(t, file, agent.Options{})
	client := func(name string) *apiclient.Client {
		out, err := apiclient.New(f.agent.ConsoleURL(), tokens[name], &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	f.ana, f.bo = client("ana"), client("bo")
	return f
}

// write writes a file of the test and returns its path.
func (f *fixture) write(name, text string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// await waits until ok, and logs how long that took.
func (f *fixture) await(limit time.Duration, what string, ok func() bool) {
	f.t.Helper()
	began := time.Now()
	testredis.Eventually(f.t, limit, ok, what)
	f.t.Logf("%-52s after %s", what, time.Since(began).Round(10*time.Millisecond))
}

// awaitSweep waits until the agent has swept its target: the findings of the first sweep are one
// digest, later ones are notifications of their own.
func (f *fixture) awaitSweep() {
	f.t.Helper()
	f.await(within, "the agent has swept the target", func() bool {
		list, err := f.ana.Targets(f.t.Context())
		return err == nil && len(list.Targets) == 1 && list.Targets[0].Up && list.Targets[0].LastSweep != nil
	})
}

// chain is an agent that watches a Redis, with all servers that its alerts go through.
type chain struct {
	*fixture
	redis *testredis.Server
	prom  *testprom.Server
	am    *testam.Server
}

func newChain(t *testing.T) *chain {
	t.Helper()
	c := &chain{redis: testredis.Start(t), am: testam.Start(t, testam.Options{})}
	c.fixture = newFixture(t, `url: '`+c.redis.URL()+`', pace: {idle: 50%, busy: 50%}, release_credentials: {}`, "lock:order:*",
		`    - {name: am, kind: alertmanager, url: '`+c.am.URL()+`', allow_private: true}
`)
	var rules []string
	for _, name := range []string{"alerts.yaml", "recording.yaml"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "grafana", name))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, c.write(name, strings.ReplaceAll(string(raw), "[2m]", "[5s]")))
	}
	c.prom = testprom.Start(t, testprom.Options{
		Targets: []string{c.agent.MetricsAddr().String()}, RuleFiles: rules, Alertmanagers: []string{strings.TrimPrefix(c.am.URL(), "http://")},
	})
	return c
}

// inPrometheus are the names of the alerts that fire or are about to, with their
// severities.
func (c *chain) inPrometheus() string {
	var answer struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	if err := c.prom.Get(c.t.Context(), "/api/v1/alerts", nil, &answer); err != nil {
		return err.Error()
	}
	var out []string
	for _, a := range answer.Alerts {
		out = append(out, a.Labels["alertname"]+" "+a.State)
	}
	return strings.Join(out, ", ")
}

// inAlertmanager are the names of the alerts that fire there, by the way they came:
// of Prometheus, or of the agent.
func (c *chain) inAlertmanager() (prometheus, agents []string) {
	for _, a := range c.am.Alerts("class", "orders") {
		if a.Labels["fingerprint"] == "" {
			prometheus = append(prometheus, a.Labels["alertname"]+" "+a.Labels["severity"])
		} else {
			agents = append(agents, a.Labels["rule"]+" "+a.Labels["key"]+" "+a.Labels["team"])
		}
	}
	return prometheus, agents
}

// A lock without TTL becomes an alert everywhere, and none when it was released.
func TestBrokenLockThroughTheWholeChain(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	rdb := c.redis.Client(t)
	const key = "lock:order:4711"
	await := func(what string, ok func() bool) {
		t.Helper()
		c.await(within, what, ok)
	}
	c.awaitSweep()
	if err := rdb.SetNX(t.Context(), key, "2c8d1c0e0b1f4f6a9a6c3f0d5b7e9a11", 0).Err(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await("the webhook has a signed message", func() bool { return len(c.sink.of("firing")) > 0 })
	await("the agent's alert is in Alertmanager", func() bool { _, agents := c.inAlertmanager(); return len(agents) > 0 })
	await("the alert fires in Prometheus", func() bool { return strings.Contains(c.inPrometheus(), "LockstewardDeadlockRisk firing") })
	await("Prometheus's alert is in Alertmanager", func() bool { alerts, _ := c.inAlertmanager(); return len(alerts) > 1 })
	t.Logf("all of it %s after SETNX", time.Since(began).Round(10*time.Millisecond))
	if e := c.sink.of("firing"); len(e) != 1 || e[0].Rule != "ttl/none" || e[0].Key.Key != key || e[0].Team != "checkout" {
		t.Errorf("reported: %+v", e)
	}
	byPrometheus, byAgent := c.inAlertmanager()
	if got, want := fmt.Sprint(byPrometheus), "[LockstewardDeadlockRisk critical LockstewardLockWithoutTTL info]"; got != want {
		t.Errorf("alerts of Prometheus: %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(byAgent), "[ttl/none "+key+" checkout]"; got != want {
		t.Errorf("alerts of the agent: %s, want %s", got, want)
	}

	r, err := c.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey(key), Reason: "its pod is gone"})
	if err != nil {
		t.Fatal(err)
	}
	r, err = c.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
	if err != nil || r.State != string(locksteward.RequestReleased) {
		t.Fatalf("approve: %s %q, %v", r.State, r.Outcome, err)
	}
	if n := rdb.Exists(t.Context(), key).Val(); n != 0 {
		t.Error("the lock is still there")
	}
	began = time.Now()
	await("the webhook is notified of the end", func() bool { return len(c.sink.of("resolved")) > 0 })
	await("the agent's alert is gone from Alertmanager", func() bool { _, agents := c.inAlertmanager(); return len(agents) == 0 })
	await("the alert is gone from Prometheus", func() bool { return c.inPrometheus() == "" })
	await("Prometheus's alert is gone from Alertmanager", func() bool { alerts, _ := c.inAlertmanager(); return len(alerts) == 0 })
	t.Logf("all of it %s after the release", time.Since(began).Round(10*time.Millisecond))
	fired, ended := c.sink.of("firing"), c.sink.of("resolved")
	if len(fired) != 1 || len(ended) != 1 || ended[0].Fingerprint != fired[0].Fingerprint || ended[0].Seq <= fired[0].Seq {
		t.Errorf("reported: %+v, then %+v", fired, ended)
	}
}
