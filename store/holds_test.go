package store_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/report"
)

func holdRow(target, class string, slot time.Time, n int) report.Row {
	r := report.Row{Target: target, Class: class, Slot: slot}
	for i := range n {
		r.Add(report.Hold{Class: class, Key: fmt.Sprint("lock:\xff", i), How: locksteward.EndedExpired, EndedAt: slot, Low: time.Second, Lease: time.Minute})
	}
	return r
}

func TestHoldsRoundTrip(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		before, now := holdRow("a", "orders", noon.Add(-time.Hour), 2), holdRow("a", "orders", noon, 1)
		if err := s.SaveHolds(t.Context(), []report.Row{before, now, holdRow("b", "orders", noon, 5)}); err != nil {
			t.Fatal(err)
		}
		// A row takes the place of the one before it.
		now = holdRow("a", "orders", noon, 9)
		if err := s.SaveHolds(t.Context(), []report.Row{now}); err != nil {
			t.Fatal(err)
		}
		if err := s.SaveHolds(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = p.open(t)
		got, err := s.LoadHolds(t.Context(), "a", noon.Add(-2*time.Hour))
		if err != nil || !reflect.DeepEqual(got, []report.Row{before, now}) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err = s.LoadHolds(t.Context(), "a", noon); err != nil || len(got) != 1 || got[0].Holds() != 9 {
			t.Errorf("since noon: %+v, %v", got, err)
		}
		if n, err := s.PruneHolds(t.Context(), noon); err != nil || n != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if got, err = s.LoadHolds(t.Context(), "a", time.Time{}); err != nil || len(got) != 1 {
			t.Errorf("after the prune: %+v, %v", got, err)
		}
	})
}
