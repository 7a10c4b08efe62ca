package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/internal/retry"
)

// Ten thousand locks are looked at within a second or so, one round trip of a few
// hundred at a time and not in a storm.
// fault: 27
func TestReviewIsSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const locks = 10_000
		list := make([]*hold, locks)
		for i := range list {
			list[i] = &hold{}
		}
		began, last := time.Now(), time.Time{}
		seen := map[*hold]bool{}
		retry.Portions(t.Context(), list, reviewSize, reviewPace, func(_ context.Context, some []*hold) []*hold {
			if now := time.Now(); now.Sub(last) < 25*time.Millisecond {
				t.Errorf("the next ones after %s", now.Sub(last))
			}
			if len(some) > 256 {
				t.Errorf("%d at once", len(some))
			}
			last = time.Now()
			for _, o := range some {
				seen[o] = true
			}
			return nil
		}, func() bool { return true })
		if took := time.Since(began); len(seen) != locks || took > 1100*time.Millisecond || took < 900*time.Millisecond {
			t.Errorf("%d of %d in %s", len(seen), locks, took)
		}
	})
}

// Those without an answer are asked for again, with growing pauses, the others not;
// while nothing answers one request at a time is made, and none after the connection
// has broken again.
// fault: 27
func TestReviewAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list := make([]*hold, 700)
		for i := range list {
			list[i] = &hold{}
		}
		live := true
		listening := func() bool { return live }
		var asked []int
		retry.Portions(t.Context(), list, reviewSize, reviewPace, func(_ context.Context, some []*hold) []*hold {
			asked = append(asked, len(some))
			switch len(asked) {
			case 1:
				return some[:3]
			case 2:
				return some
			default:
				return nil
			}
		}, listening)
		// 700 are 256, 256 and 188; the second lot hangs, so that the third waits.
		if want := []int{256, 256, 256, 191}; len(asked) != len(want) || asked[2] != want[2] || asked[3] != want[3] {
			t.Errorf("asked for %v, want %v", asked, want)
		}

		began, tries := time.Now(), 0
		retry.Portions(t.Context(), list, reviewSize, reviewPace, func(_ context.Context, some []*hold) []*hold {
			if tries++; tries == 30 {
				live = false
			}
			return some
		}, listening)
		if took := time.Since(began); tries != 30 || took < 13*time.Second || took > 30*time.Second {
			t.Errorf("asked %d times in %s", tries, took)
		}
	})
}

// A refused login says nothing of locks: no hold is over because of it.
func TestReviewAfterRefusedLogin(t *testing.T) {
	t.Parallel()
	acl := testredis.WithACL("app on >secret ~* &* +@all")
	srv := testredis.Start(t, acl)
	cluster := testredis.StartCluster(t, acl)
	single := srv.Options()
	single.Username, single.Password = "app", "secret"
	nodes := *cluster.Client(t).Options()
	nodes.Username, nodes.Password = "app", "secret"
	for name, c := range map[string]struct {
		rdb    redis.UniversalClient
		admins []*redis.Client
	}{
		"single":  {redis.NewClient(single), []*redis.Client{srv.Client(t)}},
		"cluster": {redis.NewClusterClient(&nodes), adminsOf(t, cluster)},
	} {
		t.Cleanup(func() { _ = c.rdb.Close() })
		client, err := New(c.rdb, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		for i := range 3 {
			if _, err := client.Acquire(t.Context(), fmt.Sprintf("lock:{%s}:%d", name, i), Lease{TTL: time.Minute, NoRenew: true}); err != nil {
				t.Fatal(err)
			}
		}
		for _, admin := range c.admins {
			if err := errors.Join(admin.Do(t.Context(), "acl", "setuser", "app", "resetpass", ">new").Err(),
				admin.Do(t.Context(), "client", "kill", "user", "app").Err()); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 { // connections that are cut give an error of their own first
			client.compare(t.Context(), client.held())
		}
		for _, o := range client.held() {
			if o.outcome() != nil {
				t.Errorf("%s: a hold is over: %v", name, o.ended)
			}
		}
		if n := len(client.held()); n != 3 {
			t.Errorf("%s: %d of 3 locks are held", name, n)
		}
		for _, admin := range c.admins {
			if err := admin.Do(t.Context(), "acl", "setuser", "app", "resetpass", ">secret").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func adminsOf(t *testing.T, cluster *testredis.Cluster) (admins []*redis.Client) {
	t.Helper()
	for _, node := range cluster.Nodes {
		admins = append(admins, node.Client(t))
	}
	return admins
}
