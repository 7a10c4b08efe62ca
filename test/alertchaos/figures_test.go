package alertchaos_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

var given = flag.String("alertchaos.program", "", "the program that the figures are about; empty: it is built")

// many is how much waits, or fires, in the figures about a storm.
const many = 100_000

// counter is a webhook receiver that counts, and keeps when it saw a key first.
// It counts what a message lists once, however often the message comes: a receiver
// tells copies by their webhook-id.
type counter struct {
	url string

	mu              sync.Mutex
	first           time.Time
	requests        int
	listed, omitted int
	fires           map[string]time.Time // by key
	ids             map[string]bool      // of messages
}

func newCounter(tb testing.TB) *counter {
	tb.Helper()
	c := &counter{fires: map[string]time.Time{}, ids: map[string]bool{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var p alert.Payload
		if json.Unmarshal(raw, &p) != nil || p.ID == "" {
			p = alert.Payload{} // a service's own format
		}
		_, _ = io.WriteString(w, "ok")
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.requests++; c.requests == 1 {
			c.first = now
		}
		if p.ID != "" && c.ids[p.ID] {
			return
		}
		c.ids[p.ID] = true
		c.listed, c.omitted = c.listed+len(p.Findings), c.omitted+p.Omitted
		for _, f := range p.Findings {
			if _, known := c.fires[f.Key.Key]; !known && f.Status == "firing" {
				c.fires[f.Key.Key] = now
			}
		}
	}))
	tb.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *counter) reported() (requests, listed, omitted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests, c.listed, c.omitted
}

// stage is what the agent of a figure works on.
type stage struct {
	tb       testing.TB
	srv      *testredis.Server
	rdb      *redis.Client
	file, db string
	program  string // empty: the test binary
}

func newStage(tb testing.TB, program, classes, alerts string) *stage {
	tb.Helper()
	dir := tb.TempDir()
	s := &stage{tb: tb, srv: testredis.Start(tb), program: program, file: filepath.Join(dir, "locksteward.yaml"), db: filepath.Join(dir, "store.db")}
	s.rdb = s.srv.Client(tb)
	text := "targets: [{name: main, url: '" + s.srv.URL() + "', pace: {idle: 50%, busy: 50%}}]\n" + classes + `
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '` + dir + `/users.yaml'}
store: {dsn: 'sqlite:` + s.db + "'}\n" + alerts
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return s
}

// agent is the agent of the stage, to be started.
func (s *stage) agent(env ...string) *testagent.Agent {
	s.tb.Helper()
	return testagent.New(s.tb, testagent.Options{Name: "agent", File: s.file, Program: s.program, Env: env, Within: within})
}

// program builds the program, unless one is given.
func program(tb testing.TB) string {
	tb.Helper()
	if *given != "" {
		return *given
	}
	binary := filepath.Join(tb.TempDir(), "locksteward")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", binary, "./cmd/locksteward")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// fill makes locks without TTL.
func (s *stage) fill(n int) {
	s.tb.Helper()
	for from := 0; from < n; from += 1000 {
		pipe := s.rdb.Pipeline()
		for i := from; i < min(n, from+1000); i++ {
			pipe.Set(s.tb.Context(), fmt.Sprint("lock:order:", i), fmt.Sprintf("%032x", i), 0)
		}
		if _, err := pipe.Exec(s.tb.Context()); err != nil {
			s.tb.Fatal(err)
		}
	}
}

// metric is the sum of the series of one name that have a label's value; -1 if there is
// no answer.
func metric(a *testagent.Agent, name, having string) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	all, err := testagent.Scrape(ctx, a.Where().Metrics)
	if err != nil {
		return -1
	}
	sum := 0.0
	for _, one := range all {
		if one.Name == name && strings.Contains(one.Series, having) {
			sum += one.Value
		}
	}
	return sum
}

// BenchmarkAnomalyToWebhook measures from the write that breaks a lock to the arrival
// of its alert, with the watch on and a group wait of 0: at most 100 ms in the median
// and 500 ms in the 99th percentile.
func BenchmarkAnomalyToWebhook(b *testing.B) {
	const anomalies = 400
	c := newCounter(b)
	s := newStage(b, program(b), `classes: [{class: long, match: ["lock:long:*"]}]
rules: [{rule: custom/long, when: "lock.ttl > duration('2h')", severity: warning, summary: s, remedy: r}]`,
		"alert: {grouping: {by: [fingerprint], wait: 0s, interval: 0s}, receivers: [{name: ops, kind: webhook, url: '"+c.url+"', allow_private: true}]}")
	agent := s.agent()
	agent.Start()
	testredis.Eventually(b, within, func() bool {
		return metric(agent, "locksteward_sweep_complete", "main") == 1 && metric(agent, "locksteward_watch_mode", `mode="tracking"`) == 1
	}, "no complete sweep, or no watch")
	for b.Loop() {
		began := map[string]time.Time{}
		for i := range anomalies {
			key := fmt.Sprint("lock:long:", i)
			began[key] = time.Now()
			if err := s.rdb.Set(b.Context(), key, fmt.Sprintf("%032x", i), 3*time.Hour).Err(); err != nil {
				b.Fatal(err)
			}
			pause(time.Duration(20+i%40) * time.Millisecond)
		}
		testredis.Eventually(b, within, func() bool { _, listed, _ := c.reported(); return listed >= anomalies }, "alerts are missing")
		var took []time.Duration
		for key, at := range c.fires {
			took = append(took, at.Sub(began[key]))
		}
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		b.ReportMetric(float64(p50.Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
		b.ReportMetric(0, "ns/op")
		if p50 > 100*time.Millisecond || p99 > 500*time.Millisecond {
			b.Errorf("from the anomaly to the webhook it took %s in the median and %s in the 99th percentile, want at most 100ms and 500ms", p50, p99)
		}
	}
}

// BenchmarkRestart100k measures from the start of the process to the first delivery,
// with 100,000 findings and as many alerts that wait: at most 1 s.
func BenchmarkRestart100k(b *testing.B) {
	for _, tc := range []struct {
		name     string
		groups   int // that changes wait in; 0: messages in the outbox
		ordering int // of the messages
	}{
		{"groups=50", 50, 0}, {"groups=100000", many, 0}, {"messages=100000", 0, many}, {"messages=100000 in 50 orders", 0, 50},
	} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				restart(b, tc.groups, tc.ordering)
			}
		})
	}
}

func restart(b *testing.B, groups, orderings int) {
	b.StopTimer()
	c := newCounter(b)
	s := newStage(b, program(b), `classes: [{class: orders, match: ["lock:order:*"]}]`,
		"alert: {grouping: {by: [class], wait: 0s, interval: 0s}, receivers: [{name: ops, kind: webhook, url: '"+c.url+"', allow_private: true}]}")
	s.fill(many)
	box, err := store.Open(b.Context(), "sqlite:"+s.db)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	findings := make([]locksteward.Finding, many)
	var t store.Outgoing
	for i := range findings {
		f := locksteward.Finding{
			Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: locksteward.StatusFiring, Target: "main", Class: "orders",
			Key: fmt.Sprint("lock:order:", i), Since: now, FiredAt: now, Summary: locksteward.Literal("a lock has no TTL", "锁没有过期时间"),
		}
		findings[i] = f
		id := fmt.Sprint("event-", i)
		if groups > 0 {
			t.Events = append(t.Events, locksteward.FindingEvent{
				ID: id, Number: uint64(i + 1), At: now, Finding: f, To: []locksteward.Recipient{{Receiver: "ops", Group: fmt.Sprint("group ", i%groups)}},
			})
			continue
		}
		body := fmt.Sprintf(`{"version":"1","type":"findings.firing","id":"msg_%d","seq":%d,"status":"firing","findings":[{"event_id":%q,"status":"firing"}]}`, i, i+1, id)
		t.Notifications = append(t.Notifications, locksteward.Notification{
			ID: fmt.Sprint("msg_", i), Receiver: "ops", Ordering: fmt.Sprint("group ", i%orderings), EventID: id, Target: "main", Body: []byte(body),
		})
	}
	if err := box.SaveFindings(b.Context(), "main", slices.Values(findings), t); err != nil {
		b.Fatal(err)
	}
	if err := box.Close(); err != nil {
		b.Fatal(err)
	}
	agent := s.agent()
	b.StartTimer()
	began := time.Now()
	agent.Begin()
	testredis.Eventually(b, within, func() bool { n, _, _ := c.reported(); return n > 0 }, "nothing is reported")
	b.StopTimer()
	c.mu.Lock()
	first := c.first.Sub(began)
	c.mu.Unlock()
	b.ReportMetric(float64(first.Milliseconds()), "ms/first")
	if first > time.Second {
		b.Errorf("the first delivery came %s after the start, want at most 1s", first)
	}
	at := func(n int) float64 {
		testredis.Eventually(b, within, func() bool { _, listed, _ := c.reported(); return listed >= n }, "too little is reported")
		return time.Since(began).Seconds()
	}
	b.ReportMetric(at(1000), "s/1000")
	b.ReportMetric(0, "ns/op")
	agent.Kill()
	b.StartTimer()
}

// BenchmarkStormOfFindings lets one sweep find 100,000 broken locks, and measures the
// agent until all receivers are notified: at most 256 MiB, see docs/alerting.md. What is
// listed, counted and held back must add up.
func BenchmarkStormOfFindings(b *testing.B) {
	for b.Loop() {
		machine, people := newCounter(b), newCounter(b)
		s := newStage(b, program(b), `classes: [{class: orders, match: ["lock:order:*"]}]`, `alert:
  first_sweep: fire
  grouping: {by: [target, class, rule], wait: 0s, interval: 1s}
  receivers:
    - {name: machine, kind: webhook, url: '`+machine.url+`', allow_private: true}
    - {name: people, kind: slack, url: '`+people.url+`', allow_private: true}`)
		s.fill(many)
		began := time.Now()
		agent := s.agent()
		agent.Start()
		testredis.Eventually(b, 5*time.Minute, func() bool {
			_, listed, _ := machine.reported()
			return listed >= many && metric(agent, "locksteward_notifications_queue_length", "") == 0 && people.total() > 0
		}, "not all is reported")
		b.ReportMetric(time.Since(began).Seconds(), "s")
		requests, listed, omitted := machine.reported()
		b.ReportMetric(float64(requests), "messages/machine")
		n, _, _ := people.reported()
		b.ReportMetric(float64(n), "messages/people")
		b.ReportMetric(metric(agent, "locksteward_notifications_omitted_total", "people"), "omitted/people")
		b.ReportMetric(metric(agent, "locksteward_notifications_suppressed_total", ""), "suppressed")
		peak := highWater(b, agent.PID())
		b.ReportMetric(peak, "peak-RSS-MiB")
		b.ReportMetric(0, "ns/op")
		if peak > 256 {
			b.Errorf("the agent had %.0f MiB, want at most 256", peak)
		}
		if listed != many || omitted != 0 {
			b.Errorf("the machine was notified of %d and %d, want %d and none", listed, omitted, many)
		}
		agent.Kill()
	}
}

func (c *counter) total() int {
	n, _, _ := c.reported()
	return n
}

// highWater is the most memory that a process had, in MiB.
func highWater(tb testing.TB, pid int) float64 {
	tb.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Skipf("SKIPPED: the memory of a process is read from /proc: %v", err)
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kib, _ := strconv.Atoi(fields[1])
			return float64(kib) / 1024
		}
	}
	tb.Fatal("no VmHWM")
	return 0
}
