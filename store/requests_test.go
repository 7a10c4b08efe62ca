package store_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

func TestRequestRoundTrip(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		want := newRequest("r-1", "lock:\x00\xff\n'\"; DROP TABLE requests; --")
		want.Reason = "<b>it's \"stuck\"</b>"
		want.Evidence.SharedToken, want.Evidence.BeyondPerMinute = true, 20
		create(t, s, want)
		got, err := s.GetRequest(t.Context(), "r-1")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}

		at := want.CreatedAt.Add(time.Minute)
		got, err = s.UpdateRequest(t.Context(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.State, r.ApprovedUntil, r.Outcome, r.WaitersWoken, r.FinishedAt = locksteward.RequestReleased, at, "Released.", 2, at
			r.Decisions = append(r.Decisions, locksteward.Decision{By: "ben", Approve: true, Reason: "ok", At: at, EvidenceHash: "e1"})
			return []locksteward.Entry{{At: at, Actor: "ben", Action: "release.approve", Subject: r.ID}}, nil
		})
		want.State, want.ApprovedUntil, want.Outcome, want.WaitersWoken, want.FinishedAt = locksteward.RequestReleased, at, "Released.", 2, at
		want.Decisions = []locksteward.Decision{{By: "ben", Approve: true, Reason: "ok", At: at, EvidenceHash: "e1"}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
		}
		list, err := s.ListRequests(t.Context(), []locksteward.RequestState{locksteward.RequestReleased}, "orders", 0)
		if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], want) {
			t.Fatalf("list %+v, %v", list, err)
		}
		verified(t, s, 2)
	})
}

// TestCountRecent: what is open counts whenever it was made, what was carried out since
// a time, and no more than is asked for.
func TestCountRecent(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
		for i, r := range []struct {
			state locksteward.RequestState
			since time.Duration // from its making to the time; it ended at its making
		}{
			{locksteward.RequestPending, 24 * time.Hour},
			{locksteward.RequestApproved, time.Minute},
			{locksteward.RequestExecuting, 0},
			{locksteward.RequestReleased, 0},
			{locksteward.RequestUnknown, -time.Second},
			{locksteward.RequestReleased, time.Second},
			{locksteward.RequestUnknown, time.Second},
			{locksteward.RequestDenied, 0},
			{locksteward.RequestExpired, 0},
			{locksteward.RequestFailed, 0},
		} {
			req := newRequest(fmt.Sprintf("r-%d", i), fmt.Sprintf("lock:%d", i))
			req.State, req.CreatedAt = r.state, at.Add(-r.since)
			if r.state.Final() {
				req.FinishedAt = req.CreatedAt
			}
			create(t, s, req)
		}
		for _, c := range []struct{ most, want int }{{100, 5}, {5, 5}, {4, 4}, {0, 0}} {
			got, err := s.CountRecent(t.Context(), at, c.most, func(locksteward.Request) bool { return true })
			if err != nil || got != c.want {
				t.Errorf("at most %d: %d, %v, want %d", c.most, got, err, c.want)
			}
		}
		got, err := s.CountRecent(t.Context(), at, 100, func(r locksteward.Request) bool { return r.Evidence.Key != "lock:3" })
		if err != nil || got != 4 {
			t.Errorf("without one: %d, %v", got, err)
		}
	})
}

func TestUnknownRequestIsNotFound(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		if _, err := s.GetRequest(t.Context(), "r-none"); !errors.Is(err, locksteward.ErrNotFound) {
			t.Errorf("get: %v", err)
		}
		_, err := s.UpdateRequest(t.Context(), "r-none", func(*locksteward.Request) ([]locksteward.Entry, error) {
			t.Error("change of a request that is not there")
			return nil, nil
		})
		if !errors.Is(err, locksteward.ErrNotFound) {
			t.Errorf("update: %v", err)
		}
	})
}

func TestOneOpenRequestPerKey(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-1", "lock:a"))
		create(t, s, newRequest("r-2", "lock:b"))

		// The callback's refusal is the answer, and nothing is written.
		mine := fmt.Errorf("r-1 is open: %w", locksteward.ErrConflict)
		err := s.CreateRequest(t.Context(), newRequest("r-3", "lock:a"), nil, func(open *locksteward.Request) ([]locksteward.Entry, error) {
			if open.ID != "r-1" {
				t.Errorf("open is %s", open.ID)
			}
			return nil, mine
		})
		if !errors.Is(err, mine) {
			t.Fatalf("got %v", err)
		}
		// A callback that leaves it open is stopped by the index.
		err = s.CreateRequest(t.Context(), newRequest("r-3", "lock:a"), []locksteward.Entry{{Action: "test"}},
			func(*locksteward.Request) ([]locksteward.Entry, error) { return nil, nil })
		if err == nil {
			t.Fatal("two open requests for one key")
		}
		verified(t, s, 2)
		// One that ends it makes room.
		err = s.CreateRequest(t.Context(), newRequest("r-3", "lock:a"), []locksteward.Entry{{Action: "release.request", Subject: "r-3"}},
			func(open *locksteward.Request) ([]locksteward.Entry, error) {
				open.State = locksteward.RequestSuperseded
				return []locksteward.Entry{{Action: "release.supersede", Subject: open.ID}}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.RequestsForKey(t.Context(), "orders", 3, "lock:a", 0)
		if err != nil || len(got) != 2 || got[0].ID != "r-3" || got[1].State != locksteward.RequestSuperseded {
			t.Fatalf("got %+v, %v", got, err)
		}
		verified(t, s, 4)
		counts, err := s.CountRequests(t.Context())
		if err != nil || counts[locksteward.RequestPending] != 2 || counts[locksteward.RequestSuperseded] != 1 {
			t.Fatalf("counts %v, %v", counts, err)
		}
	})
}

func TestFinalStatesNeverChange(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		req := newRequest("r-1", "lock:a")
		req.State = locksteward.RequestDenied
		create(t, s, req)
		_, err := s.UpdateRequest(t.Context(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.State = locksteward.RequestApproved
			return []locksteward.Entry{{Action: "test"}}, nil
		})
		if !errors.Is(err, locksteward.ErrConflict) {
			t.Fatalf("got %v", err)
		}
		verified(t, s, 1)
	})
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-1", "lock:a"))
		const writers, each = 8, 20
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for n := range each {
					_, err := s.UpdateRequest(context.Background(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
						r.WaitersWoken++
						return []locksteward.Entry{{Actor: fmt.Sprint(w), Action: "test", Subject: fmt.Sprint(n)}}, nil
					})
					if err != nil {
						t.Error(err)
					}
					if _, err := s.ListRequests(context.Background(), nil, "", 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		got, err := s.GetRequest(t.Context(), "r-1")
		if err != nil || got.WaitersWoken != writers*each {
			t.Fatalf("%d increments kept of %d, %v", got.WaitersWoken, writers*each, err)
		}
		verified(t, s, 1+writers*each)
	})
}

func TestCancelledWriteIsRolledBack(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-1", "lock:a"))
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.UpdateRequest(ctx, "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.State = locksteward.RequestDenied
			cancel()
			return []locksteward.Entry{{Action: "test"}}, nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		got, err := s.GetRequest(t.Context(), "r-1")
		if err != nil || got.State != locksteward.RequestPending {
			t.Fatalf("state %q, %v", got.State, err)
		}
	})
}

func TestPanicOfACallbackDoesNotKeepTheStore(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-1", "lock:order:1"))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, _ = s.UpdateRequest(t.Context(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
				r.State = locksteward.RequestDenied
				panic("a fault of the caller")
			})
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.AppendEntries(ctx, locksteward.Entry{At: time.Now(), Actor: "ana", Action: "after"}); err != nil {
			t.Fatalf("the next write: %v", err)
		}
		if r, err := s.GetRequest(ctx, "r-1"); err != nil || r.State != locksteward.RequestPending {
			t.Errorf("request is %s, %v; want it untouched", r.State, err)
		}
		verified(t, s, 2)
	})
}
