package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
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
	})
}

func TestVerifyFindsTampering(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		appendMany(t, s, 10)
		verified(t, s, 10)
		for name, statements := range map[string][]string{
			"actor":         {`UPDATE entries SET actor = 'eve' WHERE seq = 5`},
			"time":          {`UPDATE entries SET at = at + 1 WHERE seq = 5`},
			"reason":        {`UPDATE entries SET reason = '' WHERE seq = 5`},
			"outcome":       {`UPDATE entries SET outcome = 'denied' WHERE seq = 5`},
			"detail":        {`UPDATE entries SET detail = '{"n": 2}' WHERE seq = 5`},
			"key":           {`UPDATE entries SET lock_key = detail WHERE seq = 5`},
			"hash":          {`UPDATE entries SET hash = prev_hash WHERE seq = 5`},
			"field border":  {`UPDATE entries SET actor = actor || substr(action, 1, 1), action = substr(action, 2) WHERE seq = 5`},
			"dropped":       {`DELETE FROM entries WHERE seq = 5`},
			"dropped first": {`DELETE FROM entries WHERE seq = 1`},
			"cut tail":      {`DELETE FROM entries WHERE seq > 7`},
			"all gone":      {`DELETE FROM entries`},
			"swapped":       {`UPDATE entries SET seq = CASE seq WHEN 5 THEN -6 ELSE -5 END WHERE seq IN (5, 6)`, `UPDATE entries SET seq = -seq WHERE seq < 0`},
			"inserted":      {`INSERT INTO entries SELECT 11, at, actor, action, target, lock_key, subject, reason, outcome, detail, hash, hash FROM entries WHERE seq = 10`},
			"put in front":  {`INSERT INTO entries SELECT 0, at, actor, action, target, lock_key, subject, reason, outcome, detail, '', '' FROM entries WHERE seq = 1`},
			"head":          {`UPDATE entries_head SET seq = 9`},
			"head hash":     {`UPDATE entries_head SET hash = ''`},
			"begins later":  {`UPDATE entries_head SET base_seq = 3`},
			"taken off the front": {
				`UPDATE entries_head SET base_seq = 3, base_hash = (SELECT hash FROM entries WHERE seq = 2)`, `DELETE FROM entries WHERE seq <= 3`,
			},
		} {
			good, err, serr := s.Tampered(t.Context(), nil, func(exec func(query string, args ...any) error) error {
				for _, statement := range statements {
					if err := exec(statement); err != nil {
						return err
					}
				}
				return nil
			})
			if serr != nil {
				t.Fatal(name, serr)
			}
			chain, ok := errors.AsType[*store.ChainError](err)
			if !ok || chain.Seq < 1 || chain.Seq > 11 || chain.Problem == "" || good > 10 {
				t.Errorf("%s: Verify = %d, %v; want a ChainError", name, good, err)
			}
		}
		verified(t, s, 10)
	})
}

// A trail that is rewritten from some place on, its head included, or cut off with
// its head, is a good chain; what was written down elsewhere tells it.
func TestAnchorsFindWhatTheChainCannot(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		appendMany(t, s, 5)
		early, err := s.Head(t.Context())
		if err != nil || early.Seq != 5 {
			t.Fatalf("%+v, %v", early, err)
		}
		appendMany(t, s, 5)
		late, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Verify(t.Context(), early, late); err != nil || n != 10 {
			t.Fatalf("Verify = %d, %v", n, err)
		}
		entries, err := s.Stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cut := func(exec func(query string, args ...any) error) error {
			return errors.Join(exec(`DELETE FROM entries WHERE seq > 7`), exec(`UPDATE entries_head SET seq = 7, hash = ?`, entries[6].Hash))
		}
		rewrite := func(exec func(query string, args ...any) error) error {
			before := entries[6].Hash
			for _, e := range entries[7:] {
				e.Actor, e.PrevHash = "eve", before
				e.Hash = store.HashEntry(e)
				if err := exec(`UPDATE entries SET actor = 'eve', prev_hash = ?, hash = ? WHERE seq = ?`, e.PrevHash, e.Hash, e.Seq); err != nil {
					return err
				}
				before = e.Hash
			}
			return exec(`UPDATE entries_head SET hash = ?`, before)
		}
		for name, tamper := range map[string]func(func(string, ...any) error) error{"cut": cut, "rewritten": rewrite} {
			for _, c := range []struct {
				anchors []store.Checkpoint
				found   bool
			}{{nil, false}, {[]store.Checkpoint{early}, false}, {[]store.Checkpoint{late}, true}, {[]store.Checkpoint{early, late}, true}} {
				_, err, serr := s.Tampered(t.Context(), c.anchors, tamper)
				_, broken := errors.AsType[*store.ChainError](err)
				if serr != nil || broken != c.found {
					t.Errorf("%s with %d anchors: %v, %v", name, len(c.anchors), err, serr)
				}
			}
		}
	})
}

// The chain is the same however it is read, and one broken in an export is reported.
func TestChainOfAnExport(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		appendMany(t, s, 12)
		var chain store.Chain
		stop := errors.New("enough")
		err := s.EachEntry(t.Context(), 1, func(e locksteward.Entry) error {
			if err := chain.Next(e); err != nil {
				return err
			}
			if e.Seq == 9 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || chain.Last.Seq != 9 {
			t.Fatalf("%v at %d", err, chain.Last.Seq)
		}
		err = s.EachEntry(t.Context(), 10, func(e locksteward.Entry) error { return chain.Next(e) })
		head, herr := s.Head(t.Context())
		if err != nil || herr != nil || chain.Last != head {
			t.Errorf("%v, %v: %+v, want %+v", err, herr, chain.Last, head)
		}
		if err := chain.Next(locksteward.Entry{Seq: 14}); err == nil || chain.Last != head {
			t.Errorf("a gap passed: %v, %+v", err, chain.Last)
		}
	})
}

// What a database cannot keep as text is made text before it is hashed, so that
// the chain is that of what is stored.
func TestEntriesOfForeignBytes(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		in := locksteward.Entry{
			Actor: "a\x00b", Action: "x\xff", Target: "\xc3", Key: "k\x00\xff", Subject: "<script>'; DROP TABLE entries; --",
			Reason: "\x00", Outcome: "原因", Detail: json.RawMessage(`"\u0000"`),
		}
		if err := s.AppendEntries(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		verified(t, s, 1)
		got, err := s.Entries(t.Context(), store.EntryQuery{Key: "k\x00\xff"})
		if err != nil || len(got) != 1 || got[0].Actor != "a\ufffdb" || got[0].Outcome != "原因" || got[0].Subject != in.Subject || string(got[0].Detail) != `"\u0000"` {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestTenThousandEntriesAreQuick(t *testing.T) {
	forEachStoreAlone(t, func(t *testing.T, p place) {
		s := p.open(t)
		start := time.Now()
		appendMany(t, s, 10_000)
		wrote := time.Now()
		verified(t, s, 10_000)
		t.Logf("append %s, verify %s", wrote.Sub(start), time.Since(wrote))
		if spent := time.Since(start); spent > 30*time.Second {
			t.Errorf("10,000 entries took %s", spent)
		}
	})
}
