package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// Of one lock the newest fifty events are kept, of all locks as many as is said, and
// what matters least goes first.
func TestLockEventsAreBounded(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		event := func(key string, i int, kind string) store.LockEvent {
			return store.LockEvent{DB: 3, Key: key, At: at.Add(time.Duration(i) * time.Minute), Kind: kind, Event: fmt.Sprintf(`{"i":%d}`, i)}
		}
		var batch []store.LockEvent
		for i := range 130 {
			batch = append(batch, event("lock:\x00\xff", i, "released"))
			if i%10 == 0 {
				batch = append(batch, event(fmt.Sprint("lock:", i), i, "expired"))
			}
		}
		for _, part := range [][]store.LockEvent{batch[:7], batch[7:100], batch[100:]} {
			if err := s.SaveLockEvents(t.Context(), "main", part); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SaveLockEvents(t.Context(), "other", batch[:2]); err != nil {
			t.Fatal(err)
		}
		shown, err := s.LockEvents(t.Context(), "main", 3, "lock:\x00\xff", 1000)
		if err != nil || len(shown) != 50 {
			t.Errorf("%d events are shown, %v", len(shown), err)
		}
		if err := s.TrimLockEvents(t.Context(), "main", []scanner.HistoryKey{{DB: 3, Key: "lock:\x00\xff"}, {DB: 3, Key: "lock:120"}, {DB: 9, Key: "none"}}); err != nil {
			t.Fatal(err)
		}
		got, err := s.LockEvents(t.Context(), "main", 3, "lock:\x00\xff", 1000)
		if err != nil || len(got) != 50 || got[0].Event != `{"i":129}` || got[49].Event != `{"i":80}` || !got[0].At.Equal(at.Add(129*time.Minute)) {
			t.Fatalf("%d events, %v: %+v", len(got), err, got[:min(2, len(got))])
		}
		if two, err := s.LockEvents(t.Context(), "main", 3, "lock:\x00\xff", 2); err != nil || len(two) != 2 || two[1].Event != `{"i":128}` {
			t.Errorf("%+v, %v", two, err)
		}
		if none, err := s.LockEvents(t.Context(), "main", 0, "lock:\x00\xff", 2); err != nil || len(none) != 0 {
			t.Errorf("of another database: %+v, %v", none, err)
		}
		// 50 + 13 + 2 rows: all of the released ones go before any other.
		if n, err := s.PruneLockEvents(t.Context(), at, 20, "released"); err != nil || n != 45 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if n, err := s.PruneLockEvents(t.Context(), at, 10, "released"); err != nil || n != 10 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if got, err := s.LockEvents(t.Context(), "main", 3, "lock:120", 9); err != nil || len(got) != 1 {
			t.Errorf("the newest that matter are gone: %+v, %v", got, err)
		}
		if n, err := s.PruneLockEvents(t.Context(), at.Add(115*time.Minute), 100, "released"); err != nil || n < 8 {
			t.Errorf("pruned %d by age, %v", n, err)
		}
	})
}

// What fired lately is listed for all targets together, newest first.
func TestFiredSince(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		for i, target := range []string{"main", "other"} {
			var events []store.LockEvent
			for n := range 20 {
				when := at.Add(time.Duration(2*n+i) * time.Minute)
				events = append(events, store.LockEvent{Key: "k", At: when, Kind: "firing", Event: fmt.Sprintf(`{"i":%d}`, 2*n+i)},
					store.LockEvent{Key: "k", At: when, Kind: "resolved", Event: "{}"}, store.LockEvent{Key: "k", At: when, Kind: "released", Event: "{}"})
			}
			if err := s.SaveLockEvents(t.Context(), target, events); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.FiredSince(t.Context(), at.Add(10*time.Minute), 100)
		if err != nil || len(got) != 30 || got[0].Event != `{"i":39}` || got[29].Event != `{"i":10}` || !got[0].At.Equal(at.Add(39*time.Minute)) {
			t.Errorf("%d events, %v: %+v", len(got), err, got[:min(1, len(got))])
		}
		if few, err := s.FiredSince(t.Context(), at, 3); err != nil || len(few) != 3 || few[2].Event != `{"i":37}` {
			t.Errorf("%+v, %v", few, err)
		}
	})
}

// Events are written under the lease of their target alone.
func TestLockEventsUnderALease(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		lease, err := s.AcquireLease(t.Context(), "main", "a", "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		view := s.Under(func(string) (store.Lease, bool) { return lease, true })
		events := []store.LockEvent{{Key: "k", Kind: "gone", Event: "{}"}}
		if err := view.SaveLockEvents(t.Context(), "main", events); err != nil {
			t.Fatal(err)
		}
		lease.Fence++
		if err := view.SaveLockEvents(t.Context(), "main", events); err == nil {
			t.Error("written under another fence")
		}
	})
}
