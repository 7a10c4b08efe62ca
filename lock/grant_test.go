package lock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

func grantKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindGrant, key)
}

// promise puts a waiter with a grant into the queue, as one in another language
// that listens, and returns what its process is told.
func promise(t *testing.T, rdb *redis.Client, key, id string) <-chan *redis.Message {
	t.Helper()
	enqueue(t, rdb, key, id, time.Minute)
	now := rdb.Time(t.Context()).Val().Add(time.Minute).UnixMilli()
	value := record.Value(id, "secret")
	text := fmt.Sprintf("far %d MARK%s 150 %d:%s6:holder7:{\"v\":1}", now, id, len(value), value)
	if err := rdb.HSet(t.Context(), grantKey(key), id, text).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.PExpire(t.Context(), grantKey(key), time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	ps := rdb.Subscribe(t.Context(), record.InstanceKey(record.DefaultPrefix, "far"))
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ps.Channel()
}

// wanting takes k in turn; nil if it does not get it.
func wanting(c *lock.Client) <-chan *lock.Handle {
	got := make(chan *lock.Handle, 1)
	go func() {
		h, _ := c.Acquire(context.Background(), "k", fair())
		got <- h
	}()
	return got
}

func served(t *testing.T, got <-chan *lock.Handle) *lock.Handle {
	t.Helper()
	select {
	case h := <-got:
		if h == nil {
			t.Fatal("the waiter gave up")
		}
		return h
	case <-time.After(10 * time.Second):
		t.Fatal("the waiter is never served")
	}
	return nil
}

// A head that is handed the lock and does not answer costs a turn, leaves no
// trace, and the next one has it.
func TestGrantThatNobodyTakesUp(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "SET with GET, without which a lock is not handed over,")
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", fair())
	words := promise(t, b.rdb, "k", "HEAD")
	next := wanting(b.client)
	queued(t, b.rdb, "k", 2)
	began := time.Now()
	mustRelease(t, h)
	if value := b.rdb.Get(t.Context(), "k").Val(); value != record.Value("HEAD", "secret") {
		t.Errorf("the head does not have the lock (%d bytes)", len(value))
	}
	if ttl := b.rdb.PTTL(t.Context(), "k").Val(); ttl > record.Turn {
		t.Errorf("it is handed over for %s", ttl)
	}
	g, ok := record.ParseGrantMessage((<-words).Payload)
	if !ok || g.ID != "HEAD" || g.Mark != "MARKHEAD" || g.Fence <= h.Fence() {
		t.Errorf("the head is told %+v", g)
	}
	second := served(t, next)
	cost := time.Since(began)
	t.Logf("a head that does not answer costs %s", cost)
	if cost < record.Turn-10*time.Millisecond || cost > 350*time.Millisecond {
		t.Errorf("it costs %s, want about %s", cost, record.Turn)
	}
	if second.Fence() <= g.Fence {
		t.Errorf("fence %d after %d", second.Fence(), g.Fence)
	}
	if m := meta(t, b.rdb, "k"); m.ID != second.ID() || m.Lost != nil {
		t.Errorf("metadata %+v", m)
	}
	mustRelease(t, second)
	if n := exists(t, b.rdb, waitKey("k"), waiterKey("k"), grantKey("k")); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Whatever is wrong with a grant, the release succeeds and the head gets the lock
// by its own acquire, or finds out what is wrong with it.
func TestGrantThatCannotBeMade(t *testing.T) {
	t.Parallel()
	fence := record.FenceKey(record.DefaultPrefix, "k")
	for name, spoil := range map[string]func(t *testing.T, rdb *redis.Client, id string){
		"no grant": func(t *testing.T, rdb *redis.Client, _ string) { rdb.Del(t.Context(), grantKey("k")) },
		"another type": func(t *testing.T, rdb *redis.Client, _ string) {
			rdb.Del(t.Context(), grantKey("k"))
			rdb.Set(t.Context(), grantKey("k"), "x", time.Minute)
		},
		"garbage": func(t *testing.T, rdb *redis.Client, id string) { rdb.HSet(t.Context(), grantKey("k"), id, "x") },
		"cut off": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), grantKey("k"), id, "far 9999999999999 M 150 99")
		},
		"odd fields": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), grantKey("k"), id, fmt.Sprintf("far 9999999999999 M 150 %d:%s1:a", len(id)+6, "ls1:"+id+":s"))
		},
		"value of another": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), grantKey("k"), id, "far 9999999999999 M 150 7:ls1:b:c")
		},
		"past its time": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), grantKey("k"), id, fmt.Sprintf("far 1 M 150 %d:%s", len(id)+6, "ls1:"+id+":s"))
		},
		"turn of no length": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), grantKey("k"), id, fmt.Sprintf("far 9999999999999 M 0 %d:%s", len(id)+6, "ls1:"+id+":s"))
		},
		"nobody listens": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), grantKey("k"), id, fmt.Sprintf("nobody 9999999999999 M 150 %d:%s", len(id)+6, "ls1:"+id+":s"))
		},
		"no counter":           func(t *testing.T, rdb *redis.Client, _ string) { rdb.Del(t.Context(), fence) },
		"counter ahead":        func(t *testing.T, rdb *redis.Client, _ string) { rdb.Set(t.Context(), fence, "5000000000000000", 0) },
		"counter of one digit": func(t *testing.T, rdb *redis.Client, _ string) { rdb.Set(t.Context(), fence, "7", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", fair())
			next := wanting(b.client)
			queued(t, b.rdb, "k", 1)
			id := b.rdb.ZRange(t.Context(), waitKey("k"), 0, 0).Val()[0]
			spoil(t, b.rdb, id)
			began := time.Now()
			mustRelease(t, h)
			if b.rdb.HGet(t.Context(), metaKey("k"), "instance").Val() == "nobody" {
				t.Error("the lock is handed over to nobody")
			}
			second := served(t, next)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
			if stored := b.rdb.Get(t.Context(), fence).Val(); stored != fmt.Sprint(second.Fence()) {
				t.Errorf("fence %d, counter %q", second.Fence(), stored)
			}
			if m := meta(t, b.rdb, "k"); m.ID != second.ID() || m.Fence != second.Fence() {
				t.Errorf("metadata %+v", m)
			}
			mustRelease(t, second)
		})
	}
}

// A message that the process is sent gives nothing to who does not have the mark.
func TestGrantCannotBeMadeUp(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", fair())
	got := wanting(b.client)
	queued(t, b.rdb, "k", 1)
	id := b.rdb.ZRange(t.Context(), waitKey("k"), 0, 0).Val()[0]
	channel := record.InstanceKey(record.DefaultPrefix, b.client.Instance())
	score := func() string { return strings.Join(b.rdb.HVals(t.Context(), grantKey("k")).Val(), "") }
	before := score()
	if n := b.rdb.Publish(t.Context(), channel, record.GrantMessage(record.Grant{ID: id, Fence: 9, Mark: "guess"})).Val(); n != 1 {
		t.Fatalf("%d heard it", n)
	}
	// It asks the server instead, and sets another mark.
	testredis.Eventually(t, 5*time.Second, func() bool { return score() != before }, "it asks")
	select {
	case h := <-got:
		t.Errorf("has the lock with fence %d", h.Fence())
	default:
	}
	mustRelease(t, h)
	mustRelease(t, served(t, got))
}

// Those who leave a grant and those who do not stand in one queue, and are served
// in turn.
func TestOldAndNewWaitersInOneQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", fair())
	var (
		mu    sync.Mutex
		order []int
		all   sync.WaitGroup
	)
	for i := range 6 {
		c := open(t, b.rdb, lock.Options{})
		all.Go(func() {
			h, err := c.Acquire(context.Background(), "k", fair())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
		queued(t, b.rdb, "k", int64(i+1))
	}
	for i, id := range b.rdb.ZRange(t.Context(), waitKey("k"), 0, -1).Val() {
		if i%2 == 0 {
			b.rdb.HDel(t.Context(), grantKey("k"), id)
		}
	}
	mustRelease(t, h)
	all.Wait()
	if fmt.Sprint(order) != "[0 1 2 3 4 5]" {
		t.Errorf("served in the order %v", order)
	}
}

// On a Cluster a message to a process goes to every node: nobody is handed
// anything there.
func TestNoGrantsOnCluster(t *testing.T) {
	t.Parallel()
	rdb := testredis.StartCluster(t).Client(t)
	c := open(t, rdb, lock.Options{})
	h := mustAcquire(t, c, "k", fair())
	got := wanting(c)
	testredis.Eventually(t, 10*time.Second, func() bool { return rdb.ZCard(context.Background(), waitKey("k")).Val() == 1 }, "one waits")
	if n := rdb.Exists(t.Context(), grantKey("k")).Val(); n != 0 {
		t.Error("it left a grant")
	}
	mustRelease(t, h)
	mustRelease(t, served(t, got))
}
