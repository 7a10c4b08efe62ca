package store_test

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

func TestDigestKeyIsMadeOnce(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		first, err := s.DigestKey(t.Context())
		if err != nil || first == (locksteward.DigestKey{}) {
			t.Fatalf("key is zero: %t, %v", first == (locksteward.DigestKey{}), err)
		}
		again, err := s.DigestKey(t.Context())
		if err != nil || again != first {
			t.Fatalf("second call gave another key, %v", err)
		}
		closeStore(t, s)
		after, err := p.open(t).DigestKey(t.Context())
		if err != nil || after != first {
			t.Fatalf("after reopening another key, %v", err)
		}
	})
}

func TestDamagedDigestKeyIsAnError(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		if err := s.Exec(t.Context(), `INSERT INTO settings (name, value) VALUES ('digest_key', 'abc')`); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DigestKey(t.Context()); err == nil || !strings.Contains(err.Error(), "restore the backup") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestHistoryRoundTrip(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		row := scanner.HistoryRow{
			Target: "orders", DB: 2, Key: "lock:\x00\xff", TokenDigest: "hmac-sha256:1", FirstSeen: at, LastSeen: at.Add(time.Minute),
			Renewals: 3, LastRenewal: at.Add(time.Second), RenewEvery: 10*time.Second + 1, ExpireAt: math.MaxInt64, ClaimID: "c",
		}
		bare := scanner.HistoryRow{Target: "orders", Key: "", FirstSeen: at, LastSeen: at, ExpireAt: locksteward.NoExpireAt}
		save := func(target string, upserts []scanner.HistoryRow, gone ...scanner.HistoryKey) {
			t.Helper()
			if err := s.SaveHistory(t.Context(), target, upserts, gone); err != nil {
				t.Fatal(err)
			}
		}
		load := func(target string, want ...scanner.HistoryRow) {
			t.Helper()
			got, err := s.LoadHistory(t.Context(), target)
			if err != nil || !(len(got) == 0 && len(want) == 0) && !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
			}
		}
		save("orders", []scanner.HistoryRow{row, bare})
		save("other", []scanner.HistoryRow{row})
		load("orders", bare, row)

		row.Renewals, row.LastSeen = 4, at.Add(time.Hour)
		save("orders", []scanner.HistoryRow{row}, scanner.HistoryKey{DB: 0, Key: ""}, scanner.HistoryKey{DB: 9, Key: "none"})
		load("orders", row)
		// A key that is gone and back in one batch is there.
		save("orders", []scanner.HistoryRow{row}, scanner.HistoryKey{DB: 2, Key: row.Key})
		load("orders", row)

		n, err := s.PruneHistory(t.Context(), at.Add(30*time.Minute))
		if err != nil || n != 1 {
			t.Fatalf("pruned %d, %v; want 1", n, err)
		}
		load("orders", row)
		load("other")
	})
}

func TestHistoryOfManyLocks(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		const total, batch = 20_500, 500 // more than two pages of a read
		for done := 0; done < total; done += batch {
			var rows []scanner.HistoryRow
			for i := range batch {
				n := done + i
				rows = append(rows, scanner.HistoryRow{DB: n / 7000, Key: fmt.Sprintf("lock:%06d", n), FirstSeen: time.Unix(1, 0), LastSeen: time.Unix(2, 0)})
			}
			if err := s.SaveHistory(t.Context(), "orders", rows, nil); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.LoadHistory(t.Context(), "orders")
		if err != nil || len(got) != total {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		for i, row := range got {
			if row.DB != i/7000 || row.Key != fmt.Sprintf("lock:%06d", i) {
				t.Fatalf("row %d is of db %d, %q", i, row.DB, row.Key)
			}
		}
	})
}

func TestFindingsOfManyLocks(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		const total = 20_500 // more than two pages of a read
		var all []locksteward.Finding
		for i := range total {
			all = append(all, locksteward.Finding{Rule: "ttl/none", Severity: locksteward.SeverityInfo, Status: locksteward.StatusFiring, Target: "orders", Key: fmt.Sprintf("lock:%06d", i)})
		}
		if err := s.SaveFindings(t.Context(), "orders", slices.Values(all)); err != nil {
			t.Fatal(err)
		}
		got, err := s.LoadFindings(t.Context(), "orders")
		if err != nil || len(got) != total {
			t.Fatalf("%d findings, %v", len(got), err)
		}
		slices.SortFunc(got, func(a, b locksteward.Finding) int { return cmp.Compare(a.Key, b.Key) })
		for i, f := range got {
			if f.Key != all[i].Key {
				t.Fatalf("finding %d is of %q", i, f.Key)
			}
		}
	})
}

func TestFindingsRoundTrip(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 1, 2, 3, 4, 5, 600_700_800, time.UTC)
		full := locksteward.Finding{
			Rule: "ttl/none", Severity: locksteward.SeverityCritical, Risk: locksteward.RiskDeadlock, Status: locksteward.StatusFiring,
			Target: "orders", DB: 4, Class: "orders", Key: "lock:\xff", Library: "token", Subject: "c1",
			Summary: locksteward.Literal("no TTL", "没有 TTL"), Evidence: []locksteward.Message{locksteward.Literal("a", "甲"), locksteward.Literal("b")}, CounterEvidence: []locksteward.Message{locksteward.Literal("c", "丙")},
			Cause: locksteward.Literal("crash"), Remedy: locksteward.Literal("look"), Team: "t", RunbookURL: "https://x",
			Proof: locksteward.Presumed, InhibitedBy: "0f",
			Since: at, FiredAt: at.Add(1), ResolvedAt: at.Add(2),
		}
		class := locksteward.Finding{
			Rule: "holder/shared-token", Severity: locksteward.SeverityInfo, Status: locksteward.StatusPending, Target: "orders", Class: "jobs", Since: at,
		}
		want := []locksteward.Finding{full, class}
		slices.SortFunc(want, func(a, b locksteward.Finding) int { return strings.Compare(a.Fingerprint(), b.Fingerprint()) })
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{full, class})); err != nil {
			t.Fatal(err)
		}
		if err := s.SaveFindings(t.Context(), "other", nil); err != nil {
			t.Fatal(err)
		}
		got, err := s.LoadFindings(t.Context(), "orders")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}
		// A snapshot replaces the one before it.
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{class})); err != nil {
			t.Fatal(err)
		}
		got, err = s.LoadFindings(t.Context(), "orders")
		if err != nil || len(got) != 1 || got[0].Rule != class.Rule {
			t.Fatalf("got %+v, %v", got, err)
		}
		// A finding that cannot be encoded takes nothing with it.
		if err := s.SaveFindings(t.Context(), "orders", slices.Values([]locksteward.Finding{{Rule: "no/severity"}})); err == nil {
			t.Fatal("a finding without severity was stored")
		}
		if got, err := s.LoadFindings(t.Context(), "orders"); err != nil || len(got) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
	})
}

var _ scanner.HistoryStore = (*store.Store)(nil)
