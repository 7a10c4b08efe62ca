package exporter_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/testkit/testprom"
)

// traceparent is what the lock library writes of the trace of an acquire.
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// full returns an exporter that shows every metric of the table.
func full(t testing.TB) *exporter.Exporter {
	t.Helper()
	e := newExporterOf(t, exporter.Config{TopLocks: 3}, class.Class{
		Name: "orders", Match: []string{"lock:order:*"}, Expect: 5 * time.Second, Team: "checkout",
	})
	e.SetTarget(locksteward.TargetState{
		Target: locksteward.Target{Name: "m", Source: "redis"}, Up: true,
		Nodes: []locksteward.NodeState{{Addr: "10.0.0.1:6379", MaxClients: 1, MemoryMax: 1}},
	})
	ours := lock("orders", "lock:order:1", claimed("c1", t0.Add(-time.Minute), locksteward.Claim{Trace: traceparent}))
	e.ObserveSweep(sweep(0, ours, lock("orders", "lock:order:2", noTTL)))
	s := sweep(1, lock("orders", "lock:order:2", noTTL))
	s.Endings = []locksteward.Ending{{Lock: ours, How: locksteward.EndedExpired, At: later(1)}}
	s.Losses = []locksteward.Loss{{Target: "m", Key: "lock:order:1", Class: "orders", Claim: *ours.Claim}}
	s.Locks = append(s.Locks, lock("orders", "lock:order:3", claimed("c3", later(1), locksteward.Claim{}), at(later(1))))
	e.ObserveSweep(s)
	setFindings(e, "m", []locksteward.Finding{finding("orders", "ttl/none", locksteward.SeverityCritical, "lock:order:2")})
	e.AddThrottled("m", "duty", time.Second)
	e.SetPace("m", 0.1)
	e.SetReleaseEnabled("m", true)
	e.SetRequests(nil)
	e.CountRelease("m", "orders", "released")
	e.SetLeader("m", true, time.Time{})
	e.SetUnsaved("m", 0)
	e.SetRefused("m", []string{"info"})
	e.SetReplicas(2)
	e.SetHeartbeat(time.Now())
	e.SetStore(exporter.Store{Errors: map[string]int64{"full": 1}, Damaged: true, NeedsRepair: true})
	e.SetSweepStale(map[string]bool{"m": false})
	e.SetTargetSources([]exporter.TargetSource{{Name: "_redis._tcp.example.org", Up: true}})
	e.SetCredentials([]exporter.Credential{{Use: "target", Target: "m", File: "cert_file", Expires: time.Now().Add(time.Hour), Refused: true}})
	e.SetReceivers("ops")
	e.CountDelivery("ops", "delivered", "")
	e.CountSuppressed("ops", exporter.SuppressedBySilence, 2)
	e.CountOmitted("ops", 1)
	e.SetAlertGroups("ops", 1)
	e.SetOutbox([]exporter.Backlog{{Receiver: "ops"}})
	e.SetReload(true)
	e.SetConsoleURL("https://locks.example")
	e.SetWatch("m", exporter.Watch{Mode: "tracking", Classes: map[string]bool{"orders": true}})
	return e
}

func TestEveryMetricOfTheTableIsShown(t *testing.T) {
	t.Parallel()
	families, err := full(t).Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	for i, f := range families {
		shown[f.GetName()] = i
	}
	table := exporter.Metrics()
	for _, m := range table {
		i, ok := shown[m.Name]
		if !ok {
			t.Errorf("%s stands in the table and is never shown", m.Name)
			continue
		}
		f := families[i]
		if got := strings.ToLower(f.GetType().String()); got != string(m.Type) {
			t.Errorf("%s is a %s, the table says %s", m.Name, got, m.Type)
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if wantLabels := slices.Sorted(slices.Values(m.Labels)); !slices.Equal(labels, wantLabels) {
			t.Errorf("%s has labels %v, the table says %v", m.Name, labels, wantLabels)
		}
	}
	for name := range shown {
		if strings.HasPrefix(name, "locksteward_") && !slices.ContainsFunc(table, func(m exporter.Metric) bool { return m.Name == name }) {
			t.Errorf("%s is shown and not in the table", name)
		}
	}
}

func TestPromlint(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(full(t).Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestPromtoolTakesTheScrape gives what a scraper gets, the metrics of runtime and
// handler with it, to the linter of Prometheus itself.
func TestPromtoolTakesTheScrape(t *testing.T) {
	t.Parallel()
	promtool := testprom.Program(t, "promtool")
	_, body := ask(t, newClient(t, nil), "GET", "http://"+serve(t, exporter.Config{}, full(t), readyNow)+"/metrics")
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	if strings.Count(body, "# TYPE locksteward_") != len(exporter.Metrics()) {
		t.Error("the scrape does not have all metrics, so the check shows nothing")
	}
}

// TestHostileLabelValues shows that no name can break a scrape or pose as
// another series.
func TestHostileLabelValues(t *testing.T) {
	t.Parallel()
	e := newExporterOf(t, exporter.Config{}, class.Class{Name: "a", Match: []string{"a"}, Team: `q"uo\te`})
	e.SetTarget(locksteward.TargetState{
		Target: locksteward.Target{Name: "m"}, Up: true,
		Nodes: []locksteward.NodeState{{Addr: "/run/\xff\n\"redis\".sock"}, {Addr: "/run/\xfe\n\"redis\".sock"}},
	})
	hostile := "}\n\x00\xffevil 1\n"
	s := sweep(0, lock(hostile, "k"), lock("a", "k2", func(l *locksteward.Lock) { l.Library = hostile }))
	s.Masters[0].Node = hostile
	e.ObserveSweep(s)
	setFindings(e, "m", []locksteward.Finding{finding(hostile, hostile, locksteward.SeverityInfo, "k")})
	e.AddThrottled("m", hostile, time.Second)
	e.CountDelivery(hostile, hostile, hostile)
	e.SetOutbox([]exporter.Backlog{{Receiver: hostile, Waiting: 1}})
	e.CountRelease(hostile, hostile, hostile)
	text := scrapeText(t, e) // fails on any error of the registry
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "evil") {
			t.Errorf("a name became a line: %q", line)
		}
	}
	want(t, e, map[string]float64{
		`locks{class="_other",library="token",target="m"}`:  1, // a class that no configuration knows
		`class_info{class="a",runbook="",team="q\"uo\\te"}`: 1,
	})
}

// TestNoKeyOrTokenInAScrape gives every text field of a lock a canary.
func TestNoKeyOrTokenInAScrape(t *testing.T) {
	t.Parallel()
	const canary = "CANARY"
	e := newExporter(t, exporter.Config{}, "a")
	l := lock("a", "a:"+canary, claimed(canary, t0, locksteward.Claim{Class: canary, Purpose: canary, Trace: canary}))
	l.TokenKind = canary
	l.Holder = locksteward.Holder{App: canary, Host: canary, Session: canary, Instance: canary}
	e.ObserveSweep(sweep(0, l))
	s := sweep(1)
	s.Endings = []locksteward.Ending{{Lock: l, How: locksteward.EndedDeleted}}
	s.Losses = []locksteward.Loss{{Key: canary, Class: "a", Claim: *l.Claim, Holder: l.Holder}}
	e.ObserveSweep(s)
	f := finding("a", "ttl/none", locksteward.SeverityCritical, canary)
	f.Subject, f.Evidence = canary, []locksteward.Message{locksteward.Literal(canary, canary)}
	setFindings(e, "m", []locksteward.Finding{f})
	e.SetTarget(locksteward.TargetState{Target: locksteward.Target{Name: "m"}, Reason: canary})
	if strings.Contains(scrapeText(t, e), canary) {
		t.Error("a scrape shows a key, a token, a holder or a reason")
	}
}

const (
	tableBegin = "<!-- metrics: written by go test ./exporter -run TestDocumentation -update -->\n"
	tableEnd   = "<!-- end of metrics -->\n"
)

func TestDocumentation(t *testing.T) {
	t.Parallel()
	const file = "../docs/metrics.md"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part between %q and %q", file, tableBegin, tableEnd)
	}
	var b strings.Builder
	b.WriteString("| metric | labels | meaning |\n| --- | --- | --- |\n")
	for _, m := range exporter.Metrics() {
		if isCounter := strings.HasSuffix(m.Name, "_total"); m.Type == exporter.Histogram != (m.Name == "locksteward_lock_hold_seconds") || m.Type == exporter.Counter != isCounter {
			t.Errorf("%s is a %s, which the page does not say", m.Name, m.Type)
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, labels, m.Help)
	}
	wantText := before + tableBegin + b.String() + tableEnd + after
	if *update {
		if err := os.WriteFile(file, []byte(wantText), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != wantText {
		t.Errorf("%s is not what the table says; run: go test ./exporter -run TestDocumentation -update", file)
	}
}
