package acl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/lock/redlock"
	"github.com/locksteward/locksteward/source/redis/acl"
)

// refusals are the commands, keys and channels in the server's log of refusals.
func refusals(t *testing.T, admin *redis.Client) (list []string) {
	t.Helper()
	log, err := admin.Do(t.Context(), "acl", "log").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range log {
		fields := map[string]string{}
		entry := raw.([]any)
		for i := 0; i+1 < len(entry); i += 2 {
			if value, ok := entry[i+1].(string); ok {
				fields[entry[i].(string)] = value
			}
		}
		list = append(list, fields["username"]+": "+fields["reason"]+" "+fields["object"]+" ("+fields["context"]+")")
	}
	return list
}

func client(t *testing.T, rdb redis.UniversalClient, o lock.Options) *lock.Client {
	t.Helper()
	c, err := lock.New(rdb, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hold acquires in the background, and sends the handle to got.
func hold(got chan<- *lock.Handle, c *lock.Client, key string, l lock.Lease) {
	go func() {
		h, _ := c.Acquire(context.Background(), key, l)
		got <- h
	}()
}

func await(t *testing.T, got <-chan *lock.Handle) *lock.Handle {
	t.Helper()
	select {
	case h := <-got:
		if h == nil {
			t.Fatal("the waiter gave up")
		}
		return h
	case <-time.After(20 * time.Second):
		t.Fatal("the waiter is never served")
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// All that lock/ does, as an application whose user `locksteward acl --app` made:
// nothing is refused, and nothing of another application can be touched.
func TestApplicationCanUseTheLibraryAndNothingElse(t *testing.T) {
	t.Parallel()
	const prefix = "billing:ls:"
	v := running(t)
	srv := withUsers(t,
		appOf(t, v, acl.App{Name: "billing", Locks: []string{"lock:billing:*"}, KeyPrefix: prefix}),
		appOf(t, v, acl.App{Name: "plain", Locks: []string{"lock:plain:*", "{plain}:*"}}),
	)
	admin := srv.Client(t)
	ctx := t.Context()
	for user, prefix := range map[string]string{"billing": prefix, "plain": record.DefaultPrefix} {
		rdb := srv.ClientAs(t, user, password)
		events := make(chan lock.Event, 1000)
		o := lock.Options{App: user, KeyPrefix: prefix}
		a, b := client(t, rdb, o), client(t, rdb, o)
		var stops []func()
		for _, c := range []*lock.Client{a, b} {
			stops = append(stops, c.Observe(func(e lock.Event) { events <- e }))
		}
		for _, key := range []string{"lock:" + user + ":1", "lock:" + user + ":{x}:1", "lock:" + user + ":a}b"} {
			exercise(t, admin, prefix, key, a, b)
		}
		// The heartbeat, and what a forced release says on its channel.
		testredis.Eventually(t, 10*time.Second, func() bool {
			return len(admin.Keys(ctx, prefix+"instance:*").Val()) >= 2
		}, "no heartbeat")
		testredis.Eventually(t, 10*time.Second, func() bool {
			return len(admin.PubSubChannels(ctx, prefix+"instance:*").Val()) >= 2
		}, user+": fewer than two processes listen to their channels")
		for _, stop := range stops {
			stop()
		}
		for range len(events) { // it stays open: an event on its way may still come
			e := <-events
			if e.Kind == lock.EventPushFailed || e.Err != nil && strings.Contains(e.Err.Error(), "NOPERM") {
				t.Errorf("%s: %+v", user, e)
			}
		}
	}
	if log := refusals(t, admin); len(log) != 0 {
		t.Errorf("refused: %q", log)
	}

	billing := srv.ClientAs(t, "billing", password)
	must(t, admin.Set(ctx, "lock:plain:7", "ls2:X:secret", 0).Err())
	meta := record.Companion(record.DefaultPrefix, record.KindHold, "lock:plain:7")
	for _, args := range [][]any{
		{"set", "lock:plain:7", "x"},
		{"del", "lock:plain:7"},
		{"get", "lock:plain:7"},
		{"hset", meta, "id", "X"},
		{"hset", "locksteward:instance:1", "app", "x"},
		{"set", "locksteward:fence:{1}", "1"},
		{"zadd", record.Companion(record.DefaultPrefix, record.KindQueue, "lock:plain:7"), "1", "x"},
		{"eval", "return redis.call('DEL', ARGV[1])", 0, "lock:plain:7"},
		{"publish", record.Companion(record.DefaultPrefix, record.KindWake, "lock:plain:7"), "x"},
		{"subscribe", "locksteward:instance:1"},
		{"publish", "locksteward:instance:1", "lost X"},
		{"scan", "0"},
		{"flushall"},
	} {
		if err := send(ctx, billing, args); !redis.HasErrorPrefix(err, "NOPERM") && (err == nil || !strings.Contains(err.Error(), "can't access") && !strings.Contains(err.Error(), "ACL failure in script")) {
			t.Errorf("billing may %v: %v", args, err)
		}
	}
	plain := srv.ClientAs(t, "plain", password)
	for _, key := range []string{
		record.Companion(record.DefaultPrefix, record.KindHold, "lock:billing:1"), prefix + "fence:{1}", "lock:billing:1",
	} {
		if err := plain.Del(ctx, key).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("plain may delete %s: %v", key, err)
		}
	}
}

// exercise does what an application does with one lock, with two processes.
func exercise(t *testing.T, admin redis.UniversalClient, prefix, key string, a, b *lock.Client) {
	t.Helper()
	ctx := t.Context()
	lease := lock.Lease{TTL: 10 * time.Second, Expect: time.Second, Class: "c", Purpose: "p"}

	// Taken, taken again by the same session, prolonged, and released to who waits.
	session := lock.WithSession(ctx)
	h, err := a.Acquire(session, key, lease)
	must(t, err)
	again, err := a.Acquire(session, key, lease)
	must(t, err)
	must(t, again.Release(ctx))
	h.Progress()
	must(t, h.Extend(ctx, time.Second))
	if _, err := b.TryAcquire(ctx, key, lease); err == nil {
		t.Fatalf("%s: two hold it", key)
	}
	got := make(chan *lock.Handle, 2)
	hold(got, b, key, lease)
	awaitWaiters(t, admin, prefix, key, 1)
	must(t, h.Release(ctx))
	h = await(t, got)

	// Handed over in turn, from one to the other and back. Who comes first is not asked:
	// one that is late for its turn is passed over.
	hold(got, a, key, lease)
	awaitWaiters(t, admin, prefix, key, 1)
	hold(got, b, key, lease)
	awaitWaiters(t, admin, prefix, key, 2)
	must(t, h.Release(ctx))
	h = await(t, got)
	must(t, h.Release(ctx))
	h = await(t, got)
	must(t, h.Extend(ctx, 0))

	// One gives up its place.
	short, cancel := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := a.Acquire(short, key, lease)
		gone <- err
	}()
	awaitWaiters(t, admin, prefix, key, 1)
	cancel()
	<-gone
	must(t, h.Release(ctx))
}

// awaitWaiters waits until n are recorded as waiters of key.
func awaitWaiters(t *testing.T, admin redis.UniversalClient, prefix, key string, n int) {
	t.Helper()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return admin.HLen(context.Background(), record.Companion(prefix, record.KindWaiter, key)).Val() == int64(n)
	}, "want waiters")
}

// A Redlock over three masters, with the guard against one that was restarted.
func TestApplicationCanUseRedlock(t *testing.T) {
	t.Parallel()
	u := appOf(t, running(t), acl.App{Name: "billing", Locks: []string{"lock:billing:*"}})
	var nodes []*redis.Client
	var servers []*testredis.Server
	for range 3 {
		srv := withUsers(t, u)
		servers, nodes = append(servers, srv), append(nodes, srv.ClientAs(t, "billing", password))
	}
	c, err := redlock.New(nodes, redlock.Options{NodeTimeout: 5 * time.Second})
	must(t, err)
	for _, mode := range []lock.Lease{{TTL: time.Minute}, {TTL: time.Minute, Purpose: "again"}} {
		h, err := c.Acquire(t.Context(), "lock:billing:1", mode)
		must(t, err)
		if h.Fence() == 0 {
			t.Error("no fence")
		}
		must(t, h.Extend(t.Context(), 0))
		must(t, h.Release(t.Context()))
	}
	must(t, c.Close())
	for _, srv := range servers {
		if log := refusals(t, srv.Client(t)); len(log) != 0 {
			t.Errorf("refused: %q", log)
		}
	}
}

// On a Cluster: every slot, channels that belong to slots.
func TestApplicationOnACluster(t *testing.T) {
	t.Parallel()
	u := appOf(t, running(t), acl.App{Name: "billing", Locks: []string{"lock:billing:*", "{billing}:*"}, Cluster: true})
	u.PasswordHash = acl.Hash(password)
	cluster := testredis.StartCluster(t, testredis.WithACL(u.FileLine()))
	options := cluster.Options()
	options.Username, options.Password = "billing", password
	rdb := redis.NewClusterClient(options)
	defer rdb.Close()
	o := lock.Options{App: "billing"}
	a, b := client(t, rdb, o), client(t, rdb, o)
	admin := cluster.Client(t)
	for _, key := range []string{"lock:billing:1", "lock:billing:2", "{billing}:3"} {
		exercise(t, admin, record.DefaultPrefix, key, a, b)
	}
	for _, node := range cluster.Nodes {
		if log := refusals(t, node.Client(t)); len(log) != 0 {
			t.Errorf("refused: %q", log)
		}
	}
}
