package release_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
)

// TestTwoAgentsOneRequest: two agents on one store act on the same requests, by
// two approvers and by recovery, while the holder never rests. Whatever is said
// to be released was ended by force, once, and in the state that was approved.
// fault: 71, 82
func TestTwoAgentsOneRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first := e.service
	e.newService(t, release.Config{MaxPerHour: 1 << 20})
	second := e.service
	if err := first.Reload(release.Config{MaxPerHour: 1 << 20}, manyOrders(t), map[string]source.Releaser{target: e.exec}); err != nil {
		t.Fatal(err)
	}
	if err := second.Reload(release.Config{MaxPerHour: 1 << 20}, manyOrders(t), map[string]source.Releaser{target: e.exec}); err != nil {
		t.Fatal(err)
	}
	a := &testredis.RestlessHolder{Client: e.rdb.(*redis.Client), Key: "lock:order:1", Next: rand.Text, TTL: 10 * time.Minute, Calm: 200}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var holder sync.WaitGroup
	holder.Go(func() {
		if err := a.Run(ctx, e.digest); err != nil {
			t.Error(err)
		}
	})
	released := map[testredis.Ended]string{}
	outcomes := map[locksteward.RequestState]int{}
	deadline := time.Now().Add(2 * time.Minute) // on a machine with much else to do
	enough := func() bool {
		return outcomes[locksteward.RequestReleased] >= 5 && outcomes[locksteward.RequestChanged] >= 5
	}
	for !enough() && time.Now().Before(deadline) {
		r, err := first.Request(t.Context(), ana, release.RequestInput{Target: target, Key: a.Key, Reason: "x"})
		if errors.Is(err, locksteward.ErrNotFound) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for who, s := range map[string]*release.Service{"ben": first, "cat": second} {
			wg.Go(func() {
				_, err := s.Approve(t.Context(), release.Actor{Name: who, Roles: ben.Roles}, r.ID, yes(r))
				if err != nil && !errors.Is(err, locksteward.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() { _ = second.Recover(t.Context()) }) // a conflict is no fault
		wg.Wait()
		if err := first.Recover(t.Context()); err != nil {
			t.Error(err)
		}
		if r, err = first.Get(t.Context(), r.ID); err != nil || !r.State.Final() {
			t.Fatalf("%s is %s, %v", r.ID, r.State, err)
		}
		outcomes[r.State]++
		if r.State == locksteward.RequestReleased {
			released[testredis.Ended{Digest: r.Evidence.TokenDigest, ExpireAt: r.Evidence.ExpireAt}] = r.ID
		}
	}
	stop()
	holder.Wait()
	for _, f := range a.Forced {
		if released[f] == "" {
			t.Errorf("a hold was ended that no request says it released: %+v", f)
		}
		delete(released, f)
	}
	for state, id := range released {
		t.Errorf("%s said released, but no hold %+v ended", id, state)
	}
	if outcomes[locksteward.RequestReleased] == 0 || outcomes[locksteward.RequestChanged] == 0 {
		t.Errorf("no race happened: %v", outcomes)
	}
	t.Logf("%v against %d holds", outcomes, a.Holds)
}

// manyOrders is the class of orders without a cap that such a test would reach.
func manyOrders(t *testing.T) *class.Set {
	t.Helper()
	set, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove, MaxPerHour: 1 << 20, ManyPerMinute: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
