package release_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/release"
)

// TestHolderThatIsAliveButStuck renews all the while; without saying that it is
// alive its lock is never released, with it it is, and it learns so.
// fault: 69
func TestHolderThatIsAliveButStuck(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:self:1" // even where one person may do both, they confirm
	client, err := lock.New(e.rdb, lock.Options{App: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	h, err := client.Acquire(t.Context(), key, lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	renewed := func() {
		before := testredis.ExpireAt(t, e.rdb, key)
		testredis.Eventually(t, 10*time.Second, func() bool { return testredis.ExpireAt(t, e.rdb, key) > before }, "the holder renews")
	}
	r := e.request(t, ana, key)
	renewed()
	e.want(t, e.approve(t, ben, r), locksteward.RequestChanged)

	r = e.ask(t, ana, release.RequestInput{Key: key, HolderAlive: true})
	renewed()
	decision := yes(r)
	decision.ConfirmHolderAlive = false
	_, err = e.service.Approve(t.Context(), ben, r.ID, decision)
	wantError(t, err, locksteward.ErrInvalid, "may still be writing", "confirm")
	if got := e.service.Warnings(r); len(got) != 1 {
		t.Errorf("warnings %q", got)
	}
	e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
	select {
	case <-h.Context().Done():
	case <-time.After(10 * time.Second):
		t.Error("the holder was not reported")
	}
}

// TestHolderAliveIsStillThatHolder: another owner, or the same one with another
// count, is another matter.
func TestHolderAliveIsStillThatHolder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, change := range map[string][]any{
		"another owner": {"set", "lock:order:1", "7d0c5b1e-28fa-4c96-b3e1-90ad4f6c2b75", "px", minute},
		"another count": {"hincrby", "lock:order:2", redissonField, 1},
	} {
		e.do(t, "set", "lock:order:1", uuid, "px", minute)
		e.do(t, "del", "lock:order:2")
		e.do(t, "hset", "lock:order:2", redissonField, 1)
		e.do(t, "pexpire", "lock:order:2", minute)
		key := change[1].(string)
		r := e.ask(t, ana, release.RequestInput{Key: key, HolderAlive: true})
		e.do(t, change...)
		r = e.approve(t, ben, r)
		t.Log(name)
		e.want(t, r, locksteward.RequestChanged)
		if !e.exists(t, key) {
			t.Errorf("%s: released", name)
		}
	}
}
