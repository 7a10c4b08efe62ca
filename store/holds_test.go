package store_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/store"
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

// A file of an older version gets what it lacks and keeps what it has.
func TestOldFileIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		path := filepath.Join(t.TempDir(), "locksteward.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if err := store.MigrateTo(t.Context(), db, version); err != nil {
			t.Fatal(err)
		}
		for _, stmt := range []string{
			`INSERT INTO settings VALUES ('facts:a', 'kept')`,
			`INSERT INTO requests VALUES ('r-z', 'denied', 'a', 0, x'01', '{}', '', 'ana', '', 7, 0, 0, 9, '', 0)`,
			`INSERT INTO requests VALUES ('r-a', 'pending', 'a', 0, x'01', '{}', '', 'ana', '', 7, 0, 0, 0, '', 0)`,
		} {
			if _, err := db.ExecContext(t.Context(), stmt); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s := openAt(t, "sqlite:"+path)
		if err := s.SaveHolds(t.Context(), []report.Row{holdRow("a", "orders", time.Unix(3600, 0).UTC(), 1)}); err != nil {
			t.Fatal(err)
		}
		if facts, err := s.LoadFacts(t.Context(), "a"); err != nil || facts != "kept" {
			t.Errorf("facts %q, %v", facts, err)
		}
		create(t, s, newRequest("r-b", "lock:b"))
		list, err := s.ListRequests(t.Context(), nil, "a", -1)
		if err != nil || len(list) != 2 || list[0].ID != "r-a" || list[1].ID != "r-z" {
			t.Errorf("requests of one microsecond: %+v, %v; want the later first", list, err)
		}
		verified(t, s, 1)
	}
}
