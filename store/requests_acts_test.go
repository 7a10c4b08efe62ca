package store_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// TestListActs: what is being carried out is in it whenever it was made, what was
// carried out since a time; each with the decisions about it and no others, though they
// are read for many requests at once.
func TestListActs(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		const many = 2*100 + 7 // more than are read at once
		s := p.open(t)
		at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
		put := func(n int, state locksteward.RequestState, since time.Duration, decisions int) locksteward.Request {
			req := newRequest(fmt.Sprintf("r-%d", n), fmt.Sprintf("lock:%d", n))
			req.State, req.CreatedAt = state, at.Add(since)
			if state.Final() {
				req.FinishedAt = req.CreatedAt
			}
			for i := range decisions {
				req.Decisions = append(req.Decisions, locksteward.Decision{
					By: fmt.Sprintf("p%d-%d", n, i), Approve: true, At: req.CreatedAt, EvidenceHash: req.EvidenceHash,
				})
			}
			create(t, s, req)
			return req
		}
		var want []locksteward.Request // newest first
		for n := range many {
			want = append([]locksteward.Request{put(n, locksteward.RequestReleased, time.Duration(n)*time.Second, n%3)}, want...)
		}
		want = append(want, put(many, locksteward.RequestUnknown, 0, 1)) // as old as the first
		put(many+1, locksteward.RequestReleased, -time.Second, 1)
		put(many+2, locksteward.RequestFailed, time.Second, 1)
		put(many+3, locksteward.RequestPending, time.Second, 1)
		want = append(want, put(many+4, locksteward.RequestExecuting, -100*24*time.Hour, 2))
		got, err := s.ListActs(t.Context(), at)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d acts, %v, not %d", len(got), err, len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("act %d is %+v, not %+v", i, got[i], want[i])
			}
		}
	})
}
