package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

func TestLeases(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		ctx := t.Context()
		a, err := s.AcquireLease(ctx, "orders", "a", "https://a", time.Minute)
		if err != nil || a.Fence != 1 || a.Owner != "a" || a.Address != "https://a" || a.Left < 30*time.Second || a.Left > time.Minute {
			t.Fatalf("%+v, %v", a, err)
		}
		held, err := s.AcquireLease(ctx, "orders", "b", "https://b", time.Minute)
		if !errors.Is(err, store.ErrLeaseHeld) || held.Owner != "a" || held.Address != "https://a" || held.Fence != 1 {
			t.Fatalf("%+v, %v", held, err)
		}
		// beat renews what a replica holds still, and returns all that is held.
		heartbeat := func(owner string) []store.Lease {
			t.Helper()
			members, err := s.Heartbeat(ctx, store.Replica{ID: owner}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return members.Leases
		}
		if got := heartbeat("a"); len(got) != 1 || got[0].Left < 30*time.Minute || got[0].Fence != 1 {
			t.Fatalf("%+v", got)
		}
		if err := s.ReleaseLease(ctx, store.Lease{Target: "orders", Owner: "b", Fence: 1}); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Leases(ctx); err != nil || len(list) != 1 || list[0].Owner != "a" {
			t.Fatalf("%+v, %v", list, err)
		}
		if err := s.ReleaseLease(ctx, a); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Leases(ctx); err != nil || len(list) != 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		if got := heartbeat("a"); len(got) != 0 {
			t.Errorf("renewed what was released: %+v", got)
		}
		b, err := s.AcquireLease(ctx, "orders", "b", "", time.Millisecond)
		if err != nil || b.Fence != 2 {
			t.Fatalf("%+v, %v", b, err)
		}
		// One that expired is lost, even while nobody else wants it.
		testredis.Eventually(t, within, func() bool {
			list, err := s.Leases(ctx)
			return err == nil && len(list) == 0
		}, "the lease does not expire")
		if got := heartbeat("b"); len(got) != 0 {
			t.Errorf("renewed what expired: %+v", got)
		}
		c, err := s.AcquireLease(ctx, "orders", "c", "", time.Hour)
		if err != nil || c.Fence != 3 {
			t.Fatalf("%+v, %v", c, err)
		}
		again, err := s.AcquireLease(ctx, "orders", "c", "", time.Hour)
		if err != nil || again.Fence != 4 {
			t.Errorf("the same owner anew: %+v, %v", again, err)
		}
		if _, err := s.AcquireLease(ctx, "", "c", "", time.Hour); err == nil {
			t.Error("a lease on nothing")
		}
	})
}

// Under an old fence nothing of a target is written, whatever it is; what was done
// can still be reported.
func TestWritesUnderAnOldFence(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		ctx := t.Context()
		var lease atomic.Pointer[store.Lease]
		view := s.Under(func(target string) (store.Lease, bool) {
			l := lease.Load()
			return *l, l.Target == target
		})
		l, err := s.AcquireLease(ctx, "orders", "a", "", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		lease.Store(&l)
		finding := locksteward.Finding{Rule: "ttl/none", Severity: locksteward.SeverityInfo, Status: locksteward.StatusFiring, Target: "orders", Key: "k"}
		writes := map[string]func(s *store.Store) error{
			"findings": func(s *store.Store) error {
				return s.SaveFindings(ctx, "orders", slices.Values([]locksteward.Finding{finding}))
			},
			"changes": func(s *store.Store) error {
				return s.UpdateFindings(ctx, "orders", slices.Values([]locksteward.Finding{finding}), store.Outgoing{Notifications: []locksteward.Notification{message("m", finding.Fingerprint())}})
			},
			"history": func(s *store.Store) error {
				return s.SaveHistory(ctx, "orders", []scanner.HistoryRow{{Target: "orders", Key: "k"}}, nil)
			},
			"holds": func(s *store.Store) error {
				return s.SaveHolds(ctx, []report.Row{holdRow("orders", "c", time.Unix(3600, 0).UTC(), 1)})
			},
			"facts": func(s *store.Store) error { return s.SaveFacts(ctx, "orders", "{}") },
			"request": func(s *store.Store) error {
				r := newRequest("r-"+fmt.Sprint(lease.Load().Fence), "lock:"+fmt.Sprint(lease.Load().Fence))
				return s.CreateRequest(ctx, r, []locksteward.Entry{entryOf(r)}, nil)
			},
			"decision": func(s *store.Store) error {
				_, err := s.UpdateRequest(ctx, "r-0", func(r *locksteward.Request) ([]locksteward.Entry, error) {
					r.WaitersWoken++
					return nil, nil
				})
				return err
			},
		}
		create(t, s, newRequest("r-0", "lock:0"))
		for name, write := range writes {
			if err := write(view); err != nil {
				t.Errorf("%s under the lease: %v", name, err)
			}
		}
		if err := s.ReleaseLease(ctx, l); err != nil {
			t.Fatal(err)
		}
		counts := func() (out string) {
			for _, table := range []string{"findings", "history", "holds", "settings", "requests", "outbox", "entries"} {
				var n int
				if err := s.SQL().QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
					t.Fatal(err)
				}
				out += fmt.Sprint(table, " ", n, ", ")
			}
			return out
		}
		before := counts()
		refused := func(when string) {
			t.Helper()
			for name, write := range writes {
				if err := write(view); !errors.Is(err, store.ErrLeaseLost) {
					t.Errorf("%s %s: %v", name, when, err)
				}
			}
			if after := counts(); after != before {
				t.Errorf("%s: written all the same\nbefore %s\nafter  %s", when, before, after)
			}
		}
		refused("after the release")
		taken, err := s.AcquireLease(ctx, "orders", "b", "", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		refused("after a takeover")
		lease.Store(&store.Lease{Target: "other"})
		refused("without a lease")
		if err := view.AppendEntries(ctx, locksteward.Entry{Action: "reported", Target: "orders"}); err != nil {
			t.Errorf("the trail: %v", err)
		}
		lease.Store(&taken)
		if err := writes["request"](view); err != nil {
			t.Errorf("the new owner: %v", err)
		}
	})
}

// Eight processes want one target: at each moment one has it, fences only grow, and
// no write of one that lost it comes after a write of the next.
func TestOneOwnerAtATime(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		var mu sync.Mutex
		var fences []int64
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for range 5 {
					l, err := s.AcquireLease(context.Background(), "orders", fmt.Sprint("p", i), "", time.Minute)
					if errors.Is(err, store.ErrLeaseHeld) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					view := s.Under(func(string) (store.Lease, bool) { return l, true })
					if err := view.SaveFacts(context.Background(), "orders", fmt.Sprint(l.Fence)); err != nil {
						t.Errorf("the owner may not write: %v", err)
					}
					mu.Lock()
					fences = append(fences, l.Fence)
					mu.Unlock()
					if err := s.ReleaseLease(context.Background(), l); err != nil {
						t.Error(err)
					}
					if err := view.SaveFacts(context.Background(), "orders", "late"); !errors.Is(err, store.ErrLeaseLost) {
						t.Errorf("a late write: %v", err)
					}
				}
			})
		}
		group.Wait()
		last := int64(0)
		for _, f := range fences {
			if f <= last {
				t.Fatalf("fences %v", fences)
			}
			last = f
		}
		if facts, err := s.LoadFacts(t.Context(), "orders"); err != nil || facts != fmt.Sprint(last) {
			t.Errorf("facts of fence %s, %v; want %d", facts, err, last)
		}
	})
}
