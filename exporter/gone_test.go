package exporter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// counters are the series of ours whose metric only grows, by their text form.
func counters(t *testing.T, e *exporter.Exporter) map[string]float64 {
	t.Helper()
	grows := map[string]bool{}
	for _, m := range exporter.Metrics() {
		switch m.Type {
		case exporter.Counter:
			grows[m.Name] = true
		case exporter.Histogram:
			grows[m.Name+"_sum"], grows[m.Name+"_count"], grows[m.Name+"_bucket"] = true, true, true
		}
	}
	out := map[string]float64{}
	for series, v := range scrape(t, e) {
		name, _, _ := strings.Cut(series, "{")
		if grows[name] {
			out[strings.TrimPrefix(series, "locksteward_")] = v
		}
	}
	return out
}

// work has a target count all that is counted of targets: once as it would be counted
// after its first sweep, with the numbers that a watch has after its begin.
func work(e *exporter.Exporter, n int) {
	held := lock("a", "a:held")
	e.ObserveSweep(sweep(2*n, held))
	ended := sweep(2*n + 1)
	held.At, held.History.LastSeen, held.History.Looks = ended.At, ended.At, 2
	ended.Endings = []locksteward.Ending{{Lock: held, How: locksteward.EndedExpired, At: ended.At}}
	ended.Losses = []locksteward.Loss{{Target: "m", Node: "n1", Key: "a:lost", Class: "a", How: locksteward.EndedExpired, At: ended.At, Claim: locksteward.Claim{ID: fmt.Sprint(n)}}}
	later := ended.At
	ended.Locks = append(ended.Locks, lock("a", "a:new", func(l *locksteward.Lock) {
		l.At, l.History.FirstSeen, l.History.LastSeen = later, later, later
		l.Claim = &locksteward.Claim{ID: "x", Acquired: later, Renewals: 3, RenewFailures: 2}
	}))
	e.ObserveSweep(ended)
	e.SetWatch("m", exporter.Watch{Mode: "tracking", Blind: 1500 * time.Millisecond, Missed: 2})
	e.AddThrottled("m", "share", time.Second)
	e.CountRelease("m", "a", "released")
}

// TestCountersGoOnWhenATargetComesBack: a replica gives a target away and takes it back,
// a reload takes something out and the next one puts it in again. No counter falls.
func TestCountersGoOnWhenATargetComesBack(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.SetReceivers("ops")
	e.CountDelivery("ops", "delivered", "")
	e.CountSuppressed("ops", exporter.SuppressedBySilence, 3)
	e.CountOmitted("ops", 2)
	e.CountTemplateFailure("ops")
	work(e, 0)
	before := counters(t, e)
	for _, name := range []string{
		`locks_expired_total{class="a",target="m"}`, `lock_renewals_total{class="a",target="m"}`, `locks_lost_total{class="a",target="m"}`,
		`watch_blind_seconds_total{target="m"}`, `watch_missed_total{target="m"}`,
		`lock_renewal_failures_total{class="a",target="m"}`, `lock_acquires_total{class="a",target="m"}`, `sweep_keys_total{target="m"}`,
		`budget_throttled_seconds_total{reason="share",target="m"}`, `releases_total{class="a",outcome="released",target="m"}`,
		`lock_hold_seconds_count{class="a",target="m"}`, `notifications_suppressed_total{reason="silence",receiver="ops"}`, `notifications_omitted_total{receiver="ops"}`,
	} {
		if before[name] <= 0 {
			t.Errorf("%s counted nothing: %v", name, before)
		}
	}
	for round := 1; round <= 3; round++ {
		e.RemoveTarget("m")
		e.SetReceivers()
		e.SetClasses(newExporterClasses(t, "b"))
		for series := range counters(t, e) {
			if strings.Contains(series, `target="m"`) || strings.Contains(series, `receiver="ops"`) {
				t.Errorf("%s is shown of what is gone", series)
			}
		}
		e.SetClasses(newExporterClasses(t, "a"))
		e.SetReceivers("ops")
		e.SetWatch("m", exporter.Watch{Mode: "sweep"}) // what the first second of a take-over says
		for series, v := range counters(t, e) {
			if v < before[series] {
				t.Errorf("%s fell from %v to %v", series, before[series], v)
			}
		}
		work(e, round)
		now := counters(t, e)
		for series, v := range before {
			if now[series] < v {
				t.Errorf("round %d: %s fell from %v to %v", round, series, v, now[series])
			}
		}
		for _, series := range []string{`watch_blind_seconds_total{target="m"}`, `locks_expired_total{class="a",target="m"}`, `releases_total{class="a",outcome="released",target="m"}`} {
			if now[series] <= before[series] {
				t.Errorf("round %d: %s does not go on: %v after %v", round, series, now[series], before[series])
			}
		}
		before = now
	}
}

// TestWhatIsGoneIsNotRememberedForEver: names of targets may come from a directory.
func TestWhatIsGoneIsNotRememberedForEver(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	one := func(name string) float64 {
		s := sweep(0, lock("a", "a:1"))
		s.Target = name
		e.ObserveSweep(s)
		keys := counters(t, e)[`sweep_keys_total{target="`+name+`"}`]
		e.RemoveTarget(name)
		return keys
	}
	first := one("first")
	if again := one("first"); again != 2*first || first == 0 {
		t.Errorf("%v keys, then %v", first, again)
	}
	for i := range 300 {
		one(fmt.Sprint("other", i))
	}
	if again := one("first"); again != first {
		t.Errorf("%v keys after 300 other targets, want %v", again, first)
	}
}
