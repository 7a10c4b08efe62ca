package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

func TestHeartbeat(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		ctx := t.Context()
		a := store.Replica{ID: "a 1", Name: "a", Address: "10.0.0.1:10123", Key: "00ff", Version: "v1", Targets: []string{"orders", "stock"}}
		members, err := s.Heartbeat(ctx, a, time.Minute)
		if err != nil || len(members.Replicas) != 1 || len(members.Leases) != 0 {
			t.Fatalf("%+v, %v", members, err)
		}
		got := members.Replicas[0]
		if got.Name != "a" || got.Address != a.Address || got.Key != "00ff" || got.Version != "v1" || !slices.Equal(got.Targets, a.Targets) ||
			got.Left < 30*time.Second || got.StartedAt.IsZero() {
			t.Errorf("%+v", got)
		}
		// What it can reach is as of its last heartbeat.
		for _, says := range []store.Replica{
			{Unreachable: []string{"orders", "stock"}, Reachable: []string{"returns"}}, {Reachable: []string{"orders", "stock"}}, {},
		} {
			a.Unreachable, a.Reachable = says.Unreachable, says.Reachable
			for _, query := range []func() (store.Membership, error){
				func() (store.Membership, error) { return s.Heartbeat(ctx, a, time.Minute) }, func() (store.Membership, error) { return s.Membership(ctx) },
			} {
				if members, err = query(); err != nil || !slices.Equal(members.Replicas[0].Unreachable, says.Unreachable) || !slices.Equal(members.Replicas[0].Reachable, says.Reachable) {
					t.Errorf("%+v, %v; want %+v", members.Replicas, err, says)
				}
			}
		}
		lease, err := s.AcquireLease(ctx, "orders", "a 1", "", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AcquireLease(ctx, "stock", "b 1", "", time.Minute); err != nil {
			t.Fatal(err)
		}
		// All that is its own is renewed, with its fence, and nothing else.
		if members, err = s.Heartbeat(ctx, a, time.Hour); err != nil || len(members.Leases) != 2 {
			t.Fatalf("%+v, %v", members, err)
		}
		if l := members.Leases[0]; l.Target != "orders" || l.Fence != lease.Fence || l.Left < 30*time.Minute {
			t.Errorf("its own: %+v", l)
		}
		if l := members.Leases[1]; l.Owner != "b 1" || l.Left > time.Minute {
			t.Errorf("another's: %+v", l)
		}
		if members.Replicas[0].StartedAt != got.StartedAt {
			t.Error("it started again")
		}
		// One that is over is not renewed.
		if err := s.ReleaseLease(ctx, members.Leases[0]); err != nil {
			t.Fatal(err)
		}
		if members, err = s.Heartbeat(ctx, a, time.Hour); err != nil || len(members.Leases) != 1 {
			t.Fatalf("%+v, %v", members, err)
		}
		// One that leaves is gone with all that it has.
		if _, err := s.Heartbeat(ctx, store.Replica{ID: "b 1", Name: "b"}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.Leave(ctx, "b 1"); err != nil {
			t.Fatal(err)
		}
		if members, err = s.Membership(ctx); err != nil || len(members.Replicas) != 1 || len(members.Leases) != 0 {
			t.Fatalf("%+v, %v", members, err)
		}
		// One that vanished is not there, and forgotten in a while.
		if _, err := s.Heartbeat(ctx, store.Replica{ID: "c 1"}, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		testredis.Eventually(t, within, func() bool {
			members, err := s.Membership(ctx)
			return err == nil && len(members.Replicas) == 1
		}, "a replica that vanished is there still")
		if n, err := s.PruneReplicas(ctx, time.Hour); err != nil || n != 0 {
			t.Errorf("forgotten at once: %d, %v", n, err)
		}
		if n, err := s.PruneReplicas(ctx, 0); err != nil || n != 1 {
			t.Errorf("not forgotten: %d, %v", n, err)
		}
		if _, err := s.Heartbeat(ctx, store.Replica{}, time.Hour); err == nil {
			t.Error("a replica without a name")
		}
	})
}

// A renewal does not wait for those who write under the lease; a take-over does.
func TestRenewalsPassWriters(t *testing.T) {
	dsn := testpg.Database(t)
	t.Parallel()
	s, other := openAt(t, dsn), openAt(t, dsn)
	ctx := t.Context()
	lease, err := s.AcquireLease(ctx, "orders", "a", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	mine := s.Under(func(string) (store.Lease, bool) { return lease, true })
	r := newRequest("r-1", "lock:order:1")
	r.Evidence.Target = "orders"
	writing, written, goOn := make(chan struct{}), make(chan error, 1), make(chan struct{})
	if err := s.CreateRequest(ctx, r, []locksteward.Entry{{At: time.Now(), Actor: "ana", Action: "release.request", Subject: r.ID}}, nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := mine.UpdateRequest(context.WithoutCancel(ctx), "r-1", func(*locksteward.Request) ([]locksteward.Entry, error) {
			close(writing)
			<-goOn
			return nil, nil
		})
		written <- err
	}()
	<-writing
	if _, err := other.Heartbeat(ctx, store.Replica{ID: "a"}, time.Millisecond); err != nil {
		t.Errorf("a renewal waits for a writer: %v", err)
	}
	taken := make(chan error, 1)
	go func() {
		for {
			_, err := other.AcquireLease(context.WithoutCancel(ctx), "orders", "b", "", time.Minute)
			if err == nil || !errors.Is(err, store.ErrLeaseHeld) {
				taken <- err
				return
			}
		}
	}()
	select {
	case err := <-taken:
		t.Errorf("taken over beside a writer: %v", err)
	case <-time.After(300 * time.Millisecond): // nothing to wait for: it must not happen
	}
	close(goOn)
	if err := <-written; err != nil {
		t.Errorf("the writer: %v", err)
	}
	if err := <-taken; err != nil {
		t.Errorf("the take-over: %v", err)
	}
}
