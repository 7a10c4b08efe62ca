package exporter_test

import (
	"fmt"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// crowded is a scrape of three classes on two targets with n locks and findings each.
func crowded(t *testing.T, n int) map[string]float64 {
	names := []string{"a", "b", "gone"}
	e := newExporter(t, exporter.Config{}, names[:2]...)
	for _, target := range []string{"m", "m2"} {
		var all []locksteward.Finding
		for k := range 3 {
			s := sweep(k)
			s.Target = target
			for _, name := range names {
				s.Locks = append(s.Locks, many(name, n)...)
				l := lock(name, name+":claimed", claimed(name, t0, locksteward.Claim{}), at(later(k)))
				s.Locks = append(s.Locks, l)
				s.Endings = append(s.Endings, locksteward.Ending{Lock: l, How: locksteward.EndedReleased})
			}
			e.ObserveSweep(s)
		}
		for _, name := range names {
			for k := range n {
				all = append(all, finding(name, "ttl/none", locksteward.SeverityCritical, fmt.Sprint("k", k)))
			}
		}
		setFindings(e, target, all)
	}
	return scrape(t, e)
}

// fault: 56
func TestSeriesDoNotGrowWithLocks(t *testing.T) {
	t.Parallel()
	few, lots := crowded(t, 1), crowded(t, 1000)
	for name := range lots {
		if _, ok := few[name]; !ok {
			t.Errorf("%s is there with many locks alone", name)
		}
	}
	const other = `locksteward_findings{class="_other",risk="deadlock",rule="ttl/none",severity="critical",target="m2"}`
	if lots[other] != 1000 {
		t.Errorf("%v findings of a class that is not configured, want 1000", lots[other])
	}
}
