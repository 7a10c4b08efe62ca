package exporter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/faults"
)

// seriesOf counts the lines of a scrape in text format, as Prometheus does.
func seriesOf(t testing.TB, e *exporter.Exporter) int {
	t.Helper()
	return len(scrape(t, e))
}

func TestSeriesStayBelowTheLimit(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 56)
	for _, limit := range []int{200, 300, 500, 2000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			var names []string
			for n := range 150 {
				names = append(names, fmt.Sprintf("c%03d", n))
			}
			e := newExporter(t, exporter.Config{MaxSeries: limit}, names...)
			for _, target := range []string{"m", "m2"} {
				for n := range 3 {
					s := sweep(n)
					s.Target = target
					for i, name := range names {
						s.Locks = append(s.Locks, many(name, 1+i%3)...)
						l := lock(name, name+":claimed", claimed(name, t0, locksteward.Claim{}), at(later(n)))
						s.Locks = append(s.Locks, l)
						s.Endings = append(s.Endings, locksteward.Ending{Lock: l, How: locksteward.EndedReleased})
					}
					e.ObserveSweep(s)
				}
			}
			e.SetFindings("m", []locksteward.Finding{
				finding("c149", "ttl/none", locksteward.SeverityCritical, "k"),
				finding("c140", "hold/too-long", locksteward.SeverityWarning, "k"),
				finding("c130", "ttl/too-long", locksteward.SeverityInfo, "k"),
				finding("c130", "ttl/too-long", locksteward.SeverityInfo, "k2"),
			})
			n := seriesOf(t, e)
			if n > limit {
				t.Errorf("%d series, the limit is %d", n, limit)
			}
			// A class has about 60 here: the limit must be used, not only held.
			if n < limit-80 {
				t.Errorf("only %d series of %d: more classes could be shown", n, limit)
			}
			got := scrape(t, e)
			folded := got[`locksteward_classes_folded{target="m"}`]
			shown := 0
			all := 0.0
			for name, v := range got {
				if strings.HasPrefix(name, "locksteward_class_info{") {
					shown++
				}
				if strings.HasPrefix(name, "locksteward_locks{") && strings.HasSuffix(name, `target="m2"}`) {
					all += v
				}
			}
			if shown+int(folded) != len(names)+1 {
				t.Errorf("%d classes shown, %v folded, of %d", shown, folded, len(names)+1)
			}
			if all != 450 { // 150 × (1, 2 or 3, and one claimed)
				t.Errorf("locks of m2 over all classes = %v, want 450: folding lost some", all)
			}
			if limit >= 300 {
				want(t, e, map[string]float64{ // critical stays
					`findings{class="c149",risk="deadlock",rule="ttl/none",severity="critical",target="m"}`: 1,
				})
			}
			if limit < 2000 {
				want(t, e, map[string]float64{ // info goes first
					`findings{class="_other",risk="",rule="ttl/too-long",severity="info",target="m"}`: 2,
				})
			}
		})
	}
}

func TestFoldingKeepsTheFirstOfTheConfiguration(t *testing.T) {
	t.Parallel()
	var names []string
	for n := range 40 {
		names = append(names, fmt.Sprintf("c%02d", n))
	}
	e := newExporter(t, exporter.Config{MaxSeries: 250}, names...)
	s := sweep(0)
	for _, name := range names {
		s.Locks = append(s.Locks, many(name, 1)...)
	}
	e.ObserveSweep(s)
	want(t, e, map[string]float64{
		`locks{class="c00",dialect="token",target="m"}`: 1,
		`locks{class="c39",dialect="token",target="m"}`: absent,
	})
	// Events of a folded class count into the other one, and stay there when the
	// class is shown again.
	s = sweep(1)
	s.Endings = []locksteward.Ending{{Lock: lock("c39", "c39:0"), How: locksteward.EndedExpired}}
	e.ObserveSweep(s)
	e.SetFindings("m", []locksteward.Finding{finding("c39", "ttl/none", locksteward.SeverityCritical, "c39:1")})
	e.ObserveSweep(sweep(2, lock("c39", "c39:1")))
	want(t, e, map[string]float64{
		`locks{class="c39",dialect="token",target="m"}`:  1,
		`locks_expired_total{class="_other",target="m"}`: 1,
		`locks_expired_total{class="c39",target="m"}`:    0,
	})
}

// huge has so many classes with findings of 4 rules each, of 200 in all, on 2 targets, and 400
// receivers that failed for every reason.
func huge(t testing.TB, classes int) *exporter.Exporter {
	t.Helper()
	var names []string
	for n := range classes {
		names = append(names, fmt.Sprintf("class%05d", n))
	}
	e := newExporter(t, exporter.Config{TopLocks: 50}, names...)
	var all []locksteward.Finding
	for i, name := range names {
		for rule := range 4 {
			all = append(all, finding(name, fmt.Sprintf("custom/%d", rule+4*(i%50)), locksteward.Severity(1+i%3), "k"))
		}
	}
	for _, target := range []string{"m", "m2"} {
		s := sweep(0)
		s.Target = target
		for _, name := range names {
			s.Locks = append(s.Locks, lock(name, name+":1", at(later(1))))
		}
		e.ObserveSweep(s)
		e.SetFindings(target, all)
	}
	for n := range 400 {
		for reason := range 20 {
			e.CountDelivery(fmt.Sprintf("receiver%03d", n), "retried", fmt.Sprintf("reason%d", reason))
			e.CountDelivery(fmt.Sprintf("receiver%03d", n), "dropped", fmt.Sprintf("reason%d", reason))
		}
	}
	return e
}

// TestSeriesStayBelowTheLimitOfEverything has more of everything that a
// configuration or custom rules can bring than there is room for.
func TestSeriesStayBelowTheLimitOfEverything(t *testing.T) {
	t.Parallel()
	const classes = 2000
	e := huge(t, classes)
	got := scrape(t, e)
	if n := len(got); n > exporter.DefaultMaxSeries || n < 500 {
		t.Errorf("%d series, want at most %d and some hundred at least", n, exporter.DefaultMaxSeries)
	}
	failed, firing := 0.0, 0.0
	for name, v := range got {
		if strings.HasPrefix(name, "locksteward_notifications_total{") {
			failed += v
		}
		if strings.HasPrefix(name, "locksteward_findings{") && strings.Contains(name, `target="m2"`) {
			firing += v
		}
	}
	if failed != 400*20*2 || firing != classes*4 {
		t.Errorf("%v failed deliveries and %v findings in all, want 16000 and 8000: folding lost some", failed, firing)
	}
	want(t, e, map[string]float64{
		`notifications_total{outcome="retried",reason="_other",receiver="receiver000"}`: 20,
	})
	if got[`locksteward_notifications_total{outcome="retried",reason="_other",receiver="_other"}`] == 0 {
		t.Error("400 receivers are shown one by one")
	}
}
