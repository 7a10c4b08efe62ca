package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// What retention takes off the front of the trail leaves a chain that verifies, and
// says so itself.
func TestPruneEntries(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		appendMany(t, s, 1200) // made in the seconds 0 to 1199
		if n, err := s.PruneEntries(t.Context(), time.Unix(0, 0)); err != nil || n != 0 {
			t.Fatalf("pruned %d, %v", n, err)
		}
		var anchor store.Checkpoint
		err := s.EachEntry(t.Context(), 1150, func(e locksteward.Entry) error {
			anchor = store.Checkpoint{Seq: e.Seq, Hash: e.Hash}
			return errEnough
		})
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		n, err := s.PruneEntries(t.Context(), time.Unix(1100, 1234567))
		if err != nil || n != 1100 {
			t.Fatalf("pruned %d, %v", n, err)
		}
		// Two steps, each an entry.
		if n, err := s.Verify(t.Context(), anchor); err != nil || n != 102 {
			t.Fatalf("Verify = %d, %v", n, err)
		}
		list, err := s.Entries(t.Context(), store.EntryQuery{Action: store.ActionPrune})
		if err != nil || len(list) != 2 || !strings.Contains(string(list[0].Detail), `"through":1100`) || !strings.Contains(string(list[0].Detail), `"from":1001`) {
			t.Fatalf("%+v, %v", list, err)
		}
		if n, err := s.PruneEntries(t.Context(), time.Unix(1100, 1234567)); err != nil || n != 0 {
			t.Errorf("pruned %d again, %v", n, err)
		}
		size, err := s.Size(t.Context())
		if err != nil || size.Entries != 102 || size.Bytes < 4096 {
			t.Errorf("%+v, %v", size, err)
		}
		appendMany(t, s, 3)
		verified(t, s, 105)
		// A trail with a hole in what would go keeps all of it as evidence.
		if err := s.Exec(t.Context(), `DELETE FROM entries WHERE seq = 1110`); err != nil {
			t.Fatal(err)
		}
		if n, err := s.PruneEntries(t.Context(), time.Unix(1150, 0)); err == nil || n != 0 {
			t.Errorf("pruned %d of a broken trail, %v", n, err)
		}
		if first, err := s.Entries(t.Context(), store.EntryQuery{Before: 1102}); err != nil || len(first) != 1 {
			t.Errorf("%d entries before 1102, %v", len(first), err)
		}
	})
}

var errEnough = errors.New("enough")

func TestPruneRequests(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, state := range []locksteward.RequestState{locksteward.RequestReleased, locksteward.RequestDenied, locksteward.RequestPending, locksteward.RequestReleased} {
			r := newRequest(fmt.Sprint("r-", i), fmt.Sprint("lock:", i))
			r.State = state
			if state.Final() {
				r.FinishedAt = at.Add(time.Duration(i) * time.Hour)
			}
			r.Decisions = []locksteward.Decision{{By: "bo", Approve: true, At: at}}
			create(t, s, r)
		}
		if n, err := s.PruneRequests(t.Context(), at.Add(2*time.Hour)); err != nil || n != 2 {
			t.Errorf("pruned %d, %v", n, err)
		}
		list, err := s.ListRequests(t.Context(), nil, "", -1)
		if err != nil || len(list) != 2 || list[0].ID != "r-3" || list[1].ID != "r-2" || len(list[0].Decisions) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		verified(t, s, 4)
	})
}
