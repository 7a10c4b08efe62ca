package exporter_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
)

// t0 is the server time of the first sweep in tests.
var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newExporter returns an exporter for classes a, b, ... of those names.
func newExporter(t testing.TB, cfg exporter.Config, names ...string) *exporter.Exporter {
	t.Helper()
	var classes []class.Class
	for _, name := range names {
		classes = append(classes, class.Class{Name: name, Match: []string{name + ":*"}, Team: "team-" + name})
	}
	return newExporterOf(t, cfg, classes...)
}

// newExporterClasses returns classes of those names.
func newExporterClasses(t testing.TB, names ...string) *class.Set {
	t.Helper()
	var classes []class.Class
	for _, name := range names {
		classes = append(classes, class.Class{Name: name, Match: []string{name + ":*"}})
	}
	set, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newExporterOf(t testing.TB, cfg exporter.Config, classes ...class.Class) *exporter.Exporter {
	t.Helper()
	set, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	e, err := exporter.New(cfg, set, exporter.BuildInfo{Version: "1.2.3", Revision: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// setFindings gives e the findings of a target.
func setFindings(e *exporter.Exporter, target string, all []locksteward.Finding) {
	e.SetFindings(target, slices.Values(all))
}

// scrape returns every series of ours by its text form "name{labels}".
func scrape(t testing.TB, e *exporter.Exporter) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(scrapeText(t, e)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		out[line[:at]] = v
	}
	return out
}

func scrapeText(t testing.TB, e *exporter.Exporter) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(e.Gatherer(), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// want fails for every series that is not as given; a negative value stands for
// "absent".
func want(t testing.TB, e *exporter.Exporter, series map[string]float64) {
	t.Helper()
	got := scrape(t, e)
	for name, value := range series {
		v, ok := got["locksteward_"+name]
		switch {
		case value < 0 && ok:
			t.Errorf("%s = %v, want it absent", name, v)
		case value >= 0 && !ok:
			t.Errorf("%s is absent, want %v", name, value)
		case value >= 0 && v != value:
			t.Errorf("%s = %v, want %v", name, v, value)
		}
	}
}

const absent = -1

// lock returns a lock of target "m" on node "n1", first and last seen at t0.
func lock(class, key string, edit ...func(*locksteward.Lock)) locksteward.Lock {
	l := locksteward.Lock{
		Observation: locksteward.Observation{
			Target: "m", Node: "n1", Key: key, Type: "string", At: t0, TTL: time.Minute, Idle: -1,
			ExpireAt: t0.Add(time.Minute).UnixMilli(), Kind: locksteward.KindLock, Class: class,
			Library: "token", TokenDigest: "hmac-sha256:" + key, Waiters: -1, Count: 1,
		},
		History: locksteward.History{FirstSeen: t0, LastSeen: t0, Looks: 1},
	}
	for _, f := range edit {
		f(&l)
	}
	return l
}

// claimed makes a lock one of ours.
func claimed(id string, acquired time.Time, c locksteward.Claim) func(*locksteward.Lock) {
	return func(l *locksteward.Lock) {
		c.ID, c.Acquired = id, acquired
		l.Claim = &c
		l.Library, l.Waiters = "locksteward", 0
		l.TokenDigest = "hmac-sha256:" + id
	}
}

// at makes it a look at a later time.
func at(when time.Time) func(*locksteward.Lock) {
	return func(l *locksteward.Lock) { l.At, l.History.LastSeen = when, when }
}

// heldSince begins another hold.
func heldSince(when time.Time) func(*locksteward.Lock) {
	return func(l *locksteward.Lock) { l.History.FirstSeen = when }
}

// sweep is a complete sweep of node n1 of target m, n times 30 s after t0.
func sweep(n int, locks ...locksteward.Lock) locksteward.Sweep {
	return locksteward.Sweep{
		Target: "m", Started: t0.Add(time.Duration(n) * 30 * time.Second), At: later(n), Duration: 250 * time.Millisecond,
		Masters: []locksteward.MasterPass{{Node: "n1", Complete: true, Keys: 100}},
		Locks:   locks,
	}
}

func later(n int) time.Time { return t0.Add(time.Duration(n) * 30 * time.Second) }

func finding(class, rule string, s locksteward.Severity, key string) locksteward.Finding {
	f := locksteward.Finding{
		Rule: rule, Severity: s, Status: locksteward.StatusFiring, Target: "m", Class: class, Key: key,
	}
	if rule == "ttl/none" || rule == "hold/too-long" {
		f.Risk = locksteward.RiskDeadlock
	}
	return f
}

func many(class string, n int) []locksteward.Lock {
	out := make([]locksteward.Lock, n)
	for i := range out {
		out[i] = lock(class, fmt.Sprintf("%s:%d", class, i))
	}
	return out
}
