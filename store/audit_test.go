package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

func appendMany(t testing.TB, s *store.Store, n int) {
	t.Helper()
	const batch = 100
	for done := 0; done < n; done += batch {
		var entries []locksteward.Entry
		for i := range min(batch, n-done) {
			entries = append(entries, locksteward.Entry{
				At: time.Unix(int64(done+i), 1234567), Actor: "ana", Action: "release.request", Target: "orders",
				Key: fmt.Sprintf("lock:%d\x00\xff", done+i), Subject: fmt.Sprintf("r-%d", done+i), Reason: "why", Outcome: "pending",
				Detail: json.RawMessage(`{"n": 1}`),
			})
		}
		if err := s.AppendEntries(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEntriesAreChained(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	appendMany(t, s, 10)
	verified(t, s, 10)
	got, err := s.Entries(t.Context(), store.EntryQuery{})
	if err != nil || len(got) != 10 || got[0].Seq != 10 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i, e := range got[:9] {
		if e.PrevHash != got[i+1].Hash || e.Hash != store.HashEntry(e) {
			t.Errorf("entry %d does not continue entry %d", e.Seq, got[i+1].Seq)
		}
	}
	page, err := s.Entries(t.Context(), store.EntryQuery{Before: 4, Limit: 2})
	if err != nil || len(page) != 2 || page[0].Seq != 3 {
		t.Fatalf("page %+v, %v", page, err)
	}
	one, err := s.Entries(t.Context(), store.EntryQuery{Key: "lock:4\x00\xff", Subject: "r-4", Target: "orders", Actor: "ana"})
	if err != nil || len(one) != 1 || one[0].Key != "lock:4\x00\xff" || string(one[0].Detail) != `{"n": 1}` {
		t.Fatalf("by key %+v, %v", one, err)
	}
}

func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"actor":         `UPDATE entries SET actor = 'eve' WHERE seq = 5`,
		"time":          `UPDATE entries SET at = at + 1 WHERE seq = 5`,
		"reason":        `UPDATE entries SET reason = '' WHERE seq = 5`,
		"outcome":       `UPDATE entries SET outcome = 'denied' WHERE seq = 5`,
		"detail":        `UPDATE entries SET detail = '{"n": 2}' WHERE seq = 5`,
		"key":           `UPDATE entries SET lock_key = x'00' WHERE seq = 5`,
		"hash":          `UPDATE entries SET hash = prev_hash WHERE seq = 5`,
		"field border":  `UPDATE entries SET actor = actor || substr(action, 1, 1), action = substr(action, 2) WHERE seq = 5`,
		"dropped":       `DELETE FROM entries WHERE seq = 5`,
		"dropped first": `DELETE FROM entries WHERE seq = 1`,
		"cut tail":      `DELETE FROM entries WHERE seq > 7`,
		"all gone":      `DELETE FROM entries`,
		"swapped":       `UPDATE entries SET seq = CASE seq WHEN 5 THEN -6 ELSE -5 END WHERE seq IN (5, 6); UPDATE entries SET seq = -seq WHERE seq < 0`,
		"inserted":      `INSERT INTO entries SELECT 11, at, actor, action, target, lock_key, subject, reason, outcome, detail, hash, hash FROM entries WHERE seq = 10`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, "sqlite::memory:")
			appendMany(t, s, 10)
			verified(t, s, 10)
			if err := s.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			_, err := s.Verify(t.Context())
			chain, ok := errors.AsType[*store.ChainError](err)
			if !ok {
				t.Fatalf("Verify = %v, want a ChainError", err)
			}
			if chain.Seq < 1 || chain.Seq > 11 || chain.Problem == "" {
				t.Errorf("%+v", chain)
			}
		})
	}
}

func TestVerifyFindsRandomMutations(t *testing.T) {
	t.Parallel()
	s := openAt(t, "sqlite::memory:")
	const entries = 30
	appendMany(t, s, entries)
	columns := []string{"actor", "action", "target", "subject", "reason", "outcome", "prev_hash", "hash"}
	for range 300 {
		seq, column := 1+rand.IntN(entries), columns[rand.IntN(len(columns))]
		if err := s.Exec(t.Context(), `CREATE TEMP TABLE saved AS SELECT * FROM entries`); err != nil {
			t.Fatal(err)
		}
		flip := fmt.Sprintf(`UPDATE entries SET %[1]s = substr(%[1]s, 1, length(%[1]s) - 1) || char(unicode(substr(%[1]s, -1)) + 1) WHERE seq = ?`, column)
		if err := s.Exec(t.Context(), flip, seq); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(t.Context()); err == nil {
			t.Fatalf("a flipped character in %s of entry %d passed", column, seq)
		}
		if err := s.Exec(t.Context(), `DELETE FROM entries; INSERT INTO entries SELECT * FROM saved; DROP TABLE saved`); err != nil {
			t.Fatal(err)
		}
	}
	verified(t, s, entries)
}

func TestTenThousandEntriesAreQuick(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	start := time.Now()
	appendMany(t, s, 10_000)
	wrote := time.Now()
	verified(t, s, 10_000)
	t.Logf("append %s, verify %s", wrote.Sub(start), time.Since(wrote))
	if spent := time.Since(start); spent > 30*time.Second {
		t.Errorf("10,000 entries took %s", spent)
	}
}
