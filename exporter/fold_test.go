package exporter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// seriesOf counts the lines of a scrape in text format, as Prometheus does.
func seriesOf(t *testing.T, e *exporter.Exporter) int {
	t.Helper()
	return len(scrape(t, e))
}

func TestSeriesStayBelowTheLimit(t *testing.T) {
	t.Parallel()
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
