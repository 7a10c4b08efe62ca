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
)

func holdRow(target, class string, slot time.Time, n int) report.Row {
	r := report.Row{Target: target, Class: class, Slot: slot}
	for i := range n {
		r.Add(report.Hold{Class: class, Key: fmt.Sprint("lock:\xff", i), How: locksteward.EndedExpired, EndedAt: slot, Low: time.Second, Lease: time.Minute})
	}
	return r
}

func TestHoldsRoundTrip(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, dsn)
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
	s = openAt(t, dsn)
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
}

// A file of version 1 gets the table and keeps what it has.
func TestHoldsAreAddedToAnOldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	if err := s.SaveFacts(t.Context(), "a", "kept"); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, stmt := range []string{`DROP TABLE holds`, `DELETE FROM schema_version WHERE version > 1`} {
		if _, err := db.ExecContext(t.Context(), stmt); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, "sqlite:"+path)
	if err := s.SaveHolds(t.Context(), []report.Row{holdRow("a", "orders", time.Unix(3600, 0).UTC(), 1)}); err != nil {
		t.Fatal(err)
	}
	if facts, err := s.LoadFacts(t.Context(), "a"); err != nil || facts != "kept" {
		t.Errorf("facts %q, %v", facts, err)
	}
}
