package release_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

const (
	redissonField = uuid + ":42"
	minute        = 60_000
)

func TestReleaseToken(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:\x00\xff \"'\n*"
	e.do(t, "set", key, uuid, "px", minute)
	r := e.request(t, ana, key)
	if r.Evidence.Library != "token" || r.Evidence.Identity != locksteward.IdentityStrong || r.Evidence.Class != "orders" {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestReleased)
	if e.exists(t, key) {
		t.Error("the lock is still there")
	}
	want := []string{"ana release.request pending", "ben release.approve approved", "agent release.execute intent", "agent release.execute released"}
	if got := e.trail(t, r.ID); !slices.Equal(got, want) {
		t.Errorf("trail %q, want %q", got, want)
	}
	if got := <-e.finals; got.ID != r.ID || got.State != locksteward.RequestReleased {
		t.Errorf("OnFinal was reported %+v", got)
	}
	counts, err := e.store.CountRequests(t.Context())
	if err != nil || counts[locksteward.RequestReleased] != 1 {
		t.Errorf("counts %v, %v", counts, err)
	}
}

// fault: 70
func TestReleaseOfALockWithoutTTL(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:order:1", "1")
	r := e.request(t, ana, "lock:order:1")
	if r.Evidence.Identity != locksteward.IdentityNone || r.Evidence.ExpireAt != locksteward.NoExpireAt {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	// The residual risk wants a word of its own.
	decision := yes(r)
	decision.ConfirmNoIdentity = false
	_, err := e.service.Approve(t.Context(), ben, r.ID, decision)
	wantError(t, err, locksteward.ErrInvalid, "confirm")
	e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
	if e.exists(t, "lock:order:1") {
		t.Error("the lock is still there")
	}
}

func TestReleaseRedissonWakesItsWaiters(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:2"
	e.do(t, "hset", key, redissonField, "2")
	e.do(t, "pexpire", key, minute)
	waiter := e.rdb.Subscribe(t.Context(), "redisson_lock__channel:{"+key+"}")
	defer waiter.Close()
	if _, err := waiter.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := e.request(t, ana, key)
	if r.Evidence.Library != "redisson" || r.Evidence.Count != 2 {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestReleased)
	if r.WaitersWoken != 1 || e.exists(t, key) {
		t.Errorf("woken %d, still there %t", r.WaitersWoken, e.exists(t, key))
	}
	if m, err := waiter.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
		t.Errorf("waiter got %v, %v", m, err)
	}
}

func TestReleaseOfOurOwnLockTellsItsHolder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:3"
	client, err := lock.New(e.rdb, lock.Options{App: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// Without renewal: one would change the expiry, and the request with it.
	h, err := client.Acquire(t.Context(), key, lock.Lease{TTL: time.Minute, NoRenew: true, Purpose: "charge card"})
	if err != nil {
		t.Fatal(err)
	}
	instance := record.InstanceKey(record.DefaultPrefix, client.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		n, err := e.rdb.PubSubNumSub(t.Context(), instance).Result()
		return err == nil && n[instance] == 1
	}, "the holder listens for forced releases")

	r := e.request(t, ana, key)
	if r.Evidence.Library != "locksteward" || r.Evidence.ClaimID != h.ID() || r.Evidence.Holder.App != "billing" {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestReleased)
	meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
	if e.exists(t, key) || e.exists(t, meta) {
		t.Error("lock or metadata are still there")
	}
	select {
	case <-h.Context().Done():
	case <-time.After(5 * time.Second):
		t.Error("the holder was not reported")
	}
	// The next one can take it.
	next, err := client.TryAcquire(t.Context(), key, lock.Lease{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLockChangedSinceTheRequest is faults 67 to 70 of reliability.md §4.6.
// fault: 67, 68, 69, 70
func TestLockChangedSinceTheRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const other = "7d0c5b1e-28fa-4c96-b3e1-90ad4f6c2b75"
	token := func(key string) [][]any { return [][]any{{"set", key, uuid, "px", minute}} }
	constant := func(key string) [][]any { return [][]any{{"set", key, "worker-1", "px", minute}} }
	redisson := func(key string) [][]any {
		return [][]any{{"hset", key, redissonField, "1"}, {"pexpire", key, minute}}
	}
	for name, c := range map[string]struct {
		lock, change func(key string) [][]any
	}{
		"new holder":       {token, func(k string) [][]any { return [][]any{{"set", k, other, "px", minute}} }},
		"renewed":          {token, func(k string) [][]any { return [][]any{{"pexpire", k, minute + 5000}} }},
		"TTL dropped":      {token, func(k string) [][]any { return [][]any{{"persist", k}} }},
		"same bytes again": {constant, func(k string) [][]any { return [][]any{{"del", k}, {"set", k, "worker-1", "px", minute + 7000}} }},
		"another type":     {token, func(k string) [][]any { return [][]any{{"del", k}, {"rpush", k, uuid}} }},
		"became a hash":    {token, func(k string) [][]any { return append([][]any{{"del", k}}, redisson(k)...) }},
		"too large":        {token, func(k string) [][]any { return [][]any{{"setrange", k, 100_000, "x"}} }},
		"re-entered":       {redisson, func(k string) [][]any { return [][]any{{"hincrby", k, redissonField, 1}} }},
		"second field":     {redisson, func(k string) [][]any { return [][]any{{"hset", k, other + ":1", "1"}} }},
		"other thread": {redisson, func(k string) [][]any {
			return [][]any{{"hdel", k, redissonField}, {"hset", k, uuid + ":43", "1"}, {"pexpire", k, minute}}
		}},
		"redisson renewed":     {redisson, func(k string) [][]any { return [][]any{{"pexpire", k, minute + 9000}} }},
		"huge hash":            {redisson, func(k string) [][]any { return [][]any{{"hset", k, "x", string(make([]byte, 1<<20))}} }},
		"same, shorter expiry": {token, func(k string) [][]any { return [][]any{{"pexpire", k, minute - 5000}} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := "lock:order:" + name
			for _, cmd := range c.lock(key) {
				e.do(t, cmd...)
			}
			r := e.request(t, ana, key)
			for _, cmd := range c.change(key) {
				e.do(t, cmd...)
			}
			before, err := e.rdb.Dump(t.Context(), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			r = e.approve(t, ben, r)
			e.want(t, r, locksteward.RequestChanged)
			if r.Outcome != "Not released: the lock changed since the request. Nothing was touched." {
				t.Errorf("outcome %q", r.Outcome)
			}
			after, err := e.rdb.Dump(t.Context(), key).Result()
			if err != nil || after != before {
				t.Errorf("the lock was touched: %v", err)
			}
		})
	}
}

// fault: 66
func TestExpiredBeforeTheRelease(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:order:4", uuid, "px", 3000)
	r := e.request(t, ana, "lock:order:4")
	testredis.Eventually(t, 30*time.Second, func() bool { return !e.exists(t, "lock:order:4") }, "the lock expires")
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestAlreadyGone)
	if got := e.trail(t, r.ID); got[len(got)-1] != "agent release.execute already_gone" {
		t.Errorf("trail %q", got)
	}
}

func TestReleaseOnACluster(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	e := newEnvOn(t, c.URL(), c.Client(t), options{username: "releaser"})
	for _, key := range []string{"lock:order:a", "lock:order:b", "lock:order:{tag}c", "lock:order:d}", "lock:order:e"} {
		e.do(t, "set", key, uuid, "px", minute)
		e.want(t, e.approve(t, ben, e.request(t, ana, key)), locksteward.RequestReleased)
		if e.exists(t, key) {
			t.Errorf("%q is still there", key)
		}
	}
}

// TestMissingPermissionTouchesNothing: what the server refuses, it refuses
// before the lock is touched, and the sentence says so.
func TestMissingPermissionTouchesNothing(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"-eval", "-del", "-publish", "-spublish", "-hset", "-pexpire", "-hget", "-time", "-type", "resetchannels", "-hmget"} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			switch missing {
			case "-spublish":
				testredis.Since(t, 7, 0, "SPUBLISH")
			case "resetchannels":
				testredis.Since(t, 6, 2, "channels in ACLs")
			}
			e := newEnv(t)
			if err := e.rdb.Do(t.Context(), "acl", "setuser", "releaser", missing).Err(); err != nil {
				t.Fatal(err)
			}
			e.do(t, "hset", "lock:order:5", redissonField, "1")
			r := e.approve(t, ben, e.request(t, ana, "lock:order:5"))
			e.want(t, r, locksteward.RequestFailed)
			if !strings.Contains(r.Outcome, "locksteward acl") {
				t.Errorf("outcome %q", r.Outcome)
			}
			if !e.exists(t, "lock:order:5") {
				t.Error("the lock was deleted")
			}
		})
	}
}
