package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// TestListActs: what is approved or being carried out is in it whenever it was made, what was
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
		want = append(want, put(many+5, locksteward.RequestApproved, -time.Hour, 1))
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

// TestDecideBesideOthers: what a decision counts stays so until it is written, in whatever
// process others decide: of many that each need a free place no more get one than there are.
func TestDecideBesideOthers(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		const many, places = 20, 3
		views := []*store.Store{p.open(t)}
		if p.postgres {
			views = append(views, p.open(t))
		}
		for n := range many {
			create(t, views[0], newRequest(fmt.Sprintf("r-%d", n), fmt.Sprintf("lock:%d", n)))
		}
		errTaken := errors.New("no place is left")
		var wg sync.WaitGroup
		var got atomic.Int64
		for n := range many {
			wg.Go(func() {
				id := fmt.Sprintf("r-%d", n)
				_, err := views[n%len(views)].DecideRequest(t.Context(), id, func(r *locksteward.Request, acts func(time.Time) ([]locksteward.Request, error)) ([]locksteward.Entry, error) {
					taken, err := acts(time.Now().Add(-time.Hour))
					if err == nil && len(taken) >= places {
						err = errTaken
					}
					r.State = locksteward.RequestApproved
					return []locksteward.Entry{{Action: "test", Subject: id}}, err
				})
				switch {
				case err == nil:
					got.Add(1)
				case !errors.Is(err, errTaken):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		acts, err := views[0].ListActs(t.Context(), time.Now())
		if err != nil || len(acts) != places || got.Load() != places {
			t.Errorf("%d have a place and %d were reported so, want %d: %v", len(acts), got.Load(), places, err)
		}
	})
}

// TestCreateRequests: requests asked for together are written with what the count made of
// them, all or none.
func TestCreateRequests(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-old", "lock:b"))
		list := []locksteward.Request{newRequest("r-1", "lock:a"), newRequest("r-2", "lock:b")}
		ask := func(onOpen func(open *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error)) error {
			return s.CreateRequests(t.Context(), list,
				func(recent func(time.Time, int, func(locksteward.Request) bool) (int, error)) error {
					n, err := recent(time.Now(), 10, func(locksteward.Request) bool { return true })
					list[0].Evidence.BeyondPerMinute = n
					return err
				},
				func(r locksteward.Request) []locksteward.Entry { return []locksteward.Entry{entryOf(r)} }, onOpen)
		}
		errNo := errors.New("one is open")
		if err := ask(func(_ *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error) {
			return nil, fmt.Errorf("%s: %w", by.ID, errNo)
		}); !errors.Is(err, errNo) || err.Error() != "r-2: one is open" {
			t.Errorf("got %v", err)
		}
		if _, err := s.GetRequest(t.Context(), "r-1"); !errors.Is(err, locksteward.ErrNotFound) {
			t.Errorf("the first of two that were not written together: %v", err)
		}
		err := ask(func(open *locksteward.Request, _ locksteward.Request) ([]locksteward.Entry, error) {
			open.State = locksteward.RequestSuperseded
			return []locksteward.Entry{entryOf(*open)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		first, err := s.GetRequest(t.Context(), "r-1")
		if err != nil || first.Evidence.BeyondPerMinute != 1 {
			t.Errorf("what was counted: %+v, %v", first.Evidence, err)
		}
		if old, err := s.GetRequest(t.Context(), "r-old"); err != nil || old.State != locksteward.RequestSuperseded {
			t.Errorf("the open one is %s, %v", old.State, err)
		}
		verified(t, s, 4)
	})
}
