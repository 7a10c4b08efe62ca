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

// promise puts a waiter into the queue as one in another language that listens,
// and returns what its process receives.
func promise(t *testing.T, rdb *redis.Client, key, id string) <-chan *redis.Message {
	t.Helper()
	enqueue(t, rdb, key, id, "far", "NONCE"+id, time.Minute)
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
		h, _ := c.Acquire(context.Background(), "k", lease())
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
	h := mustAcquire(t, b.client, "k", lease())
	words := promise(t, b.rdb, "k", "HEAD")
	// The waiter's record says how long its turn is: longer than this test takes to look at it.
	const turn = 500 * time.Millisecond
	text := strings.Replace(b.rdb.HGet(t.Context(), waiterKey("k"), "HEAD").Val(), " 150 ", " 500 ", 1)
	if err := b.rdb.HSet(t.Context(), waiterKey("k"), "HEAD", text).Err(); err != nil {
		t.Fatal(err)
	}
	next := wanting(b.client)
	queued(t, b.rdb, "k", 2)
	b.listening(t)
	mustRelease(t, h)
	if value := b.rdb.Get(t.Context(), "k").Val(); value != record.Value("HEAD", "secret") {
		t.Errorf("the head does not have the lock (%d bytes)", len(value))
	}
	if ttl := b.rdb.PTTL(t.Context(), "k").Val(); ttl > turn {
		t.Errorf("it is handed over for %s", ttl)
	}
	g, ok := record.ParseMessage((<-words).Payload)
	if !ok || g.Kind != record.MessageHand || g.ID != "HEAD" || g.Nonce != "NONCEHEAD" || g.Fence <= h.Fence() {
		t.Errorf("the head is told %+v", g)
	}
	second := served(t, next)
	cost := time.Duration(second.Fence()-g.Fence) * time.Microsecond // by the server's clock
	t.Logf("a head that does not answer costs %s", cost)
	if cost < turn-10*time.Millisecond || cost > turn+200*time.Millisecond {
		t.Errorf("it costs %s, want about %s", cost, turn)
	}
	if second.Fence() <= g.Fence {
		t.Errorf("fence %d after %d", second.Fence(), g.Fence)
	}
	if m := meta(t, b.rdb, "k"); m.ID != second.ID() || m.Lost == nil || !m.Lost.Offered || m.Lost.ID != "HEAD" {
		t.Errorf("metadata %+v", m)
	}
	mustRelease(t, second)
	if n := exists(t, b.rdb, queueKey("k"), waiterKey("k")); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Whatever is wrong with a grant, the release succeeds and the head gets the lock
// by its own acquire, or finds out what is wrong with it.
func TestGrantThatCannotBeMade(t *testing.T) {
	t.Parallel()
	fence := record.FenceKey(record.DefaultPrefix, "k")
	// with replaces one word of the record of id.
	with := func(word int, text string) func(t *testing.T, rdb *redis.Client, id string) {
		return func(t *testing.T, rdb *redis.Client, id string) {
			words := strings.SplitN(rdb.HGet(t.Context(), waiterKey("k"), id).Val(), " ", 8)
			words[word] = text
			rdb.HSet(t.Context(), waiterKey("k"), id, strings.Join(words, " "))
		}
	}
	for name, spoil := range map[string]func(t *testing.T, rdb *redis.Client, id string){
		"no record": func(t *testing.T, rdb *redis.Client, id string) { rdb.HDel(t.Context(), waiterKey("k"), id) },
		"garbage":   func(t *testing.T, rdb *redis.Client, id string) { rdb.HSet(t.Context(), waiterKey("k"), id, "x") },
		"four words": func(t *testing.T, rdb *redis.Client, id string) {
			rdb.HSet(t.Context(), waiterKey("k"), id, "- far 1 9999999999999")
		},
		"nobody listens":       with(1, "nobody"),
		"past its time":        with(3, "1"),
		"turn of no length":    with(4, "0"),
		"no hand-off":          with(5, "-"),
		"value of another":     with(6, "ls2:b:c"),
		"no counter":           func(t *testing.T, rdb *redis.Client, _ string) { rdb.Del(t.Context(), fence) },
		"counter ahead":        func(t *testing.T, rdb *redis.Client, _ string) { rdb.Set(t.Context(), fence, "5000000000000000", 0) },
		"counter of one digit": func(t *testing.T, rdb *redis.Client, _ string) { rdb.Set(t.Context(), fence, "7", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", lease())
			next := wanting(b.client)
			queued(t, b.rdb, "k", 1)
			id := b.rdb.ZRange(t.Context(), queueKey("k"), 0, 0).Val()[0]
			spoil(t, b.rdb, id)
			began := time.Now()
			mustRelease(t, h)
			if text := b.rdb.Get(t.Context(), metaKey("k")).Val(); name == "nobody listens" && strings.Contains(text, "offered") {
				t.Error("the lock is handed over to nobody")
			}
			second := served(t, next)
			if name == "counter ahead" && second.Fence() <= 5000000000000000 {
				t.Errorf("fence %d is below the counter", second.Fence())
			}
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
	h := mustAcquire(t, b.client, "k", lease())
	got := wanting(b.client)
	queued(t, b.rdb, "k", 1)
	id := b.rdb.ZRange(t.Context(), queueKey("k"), 0, 0).Val()[0]
	channel := record.InstanceKey(record.DefaultPrefix, b.client.Instance())
	stored := func() string { return strings.Join(b.rdb.HVals(t.Context(), waiterKey("k")).Val(), "") }
	guess := record.Message{Kind: record.MessageHand, ID: id, Fence: 9, Nonce: "guess"}
	var before string
	testredis.Eventually(t, 5*time.Second, func() bool {
		before = stored()
		return b.rdb.Publish(t.Context(), channel, guess.String()).Val() == 1
	}, "the waiter listens")
	// It asks the server instead, with another nonce.
	testredis.Eventually(t, 5*time.Second, func() bool { return stored() != before }, "it asks")
	select {
	case h := <-got:
		t.Errorf("has the lock with fence %d", h.Fence())
	default:
	}
	mustRelease(t, h)
	mustRelease(t, served(t, got))
}

// Waiters that can be handed the lock and others that cannot are served in turn.
func TestWaitersWithoutHandoffInOneQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	var (
		mu    sync.Mutex
		order []int
		all   sync.WaitGroup
	)
	for i := range 6 {
		c := open(t, b.rdb, lock.Options{})
		all.Go(func() {
			h, err := c.Acquire(context.Background(), "k", lease())
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
		(&bundle{rdb: b.rdb, client: c}).listening(t) // else it is late for its turn
	}
	for i, id := range b.rdb.ZRange(t.Context(), queueKey("k"), 0, -1).Val() {
		if i%2 == 0 {
			withoutHandoff(t, b.rdb, "k", id)
		}
	}
	mustRelease(t, h)
	all.Wait()
	if fmt.Sprint(order) != "[0 1 2 3 4 5]" {
		t.Errorf("served in the order %v", order)
	}
}

// On a Cluster the release hands the lock over, too, on a channel of the lock's
// slot.
func TestHandoffOnCluster(t *testing.T) {
	t.Parallel()
	rdb := testredis.StartCluster(t).Client(t)
	holder, waiter := open(t, rdb, lock.Options{}), open(t, rdb, lock.Options{})
	channel := record.Companion(record.DefaultPrefix, record.KindWake, "k") + ":" + waiter.Instance()
	node, err := rdb.MasterForKey(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	h := mustAcquire(t, holder, "k", lease())
	got := wanting(waiter)
	testredis.Eventually(t, 10*time.Second, func() bool {
		return node.PubSubShardNumSub(context.Background(), channel).Val()[channel] == 1
	}, "the waiter listens")
	mustRelease(t, h)
	if value := rdb.Get(t.Context(), "k").Val(); value == "" {
		t.Error("the release did not hand the lock over")
	}
	second := served(t, got)
	if second.Fence() <= h.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), h.Fence())
	}
	mustRelease(t, second)
	if n := rdb.Exists(t.Context(), queueKey("k")).Val() + rdb.Exists(t.Context(), waiterKey("k")).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A subscriber of a replica receives what the master publishes, though the master counts
// nobody: the lock is handed to who listens at the master, or to nobody.
func TestSubscriberOfAReplicaIsHandedNothing(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "SET with GET, without which a lock is not handed over,")
	b := setup(t, lock.Options{})
	replica := testredis.StartReplica(t, b.srv)
	h := mustAcquire(t, b.client, "k", lease())
	enqueue(t, b.rdb, "k", "FAR", "far", "NONCE", time.Minute)
	channel := record.InstanceKey(record.DefaultPrefix, "far")
	ps := replica.Client(t).Subscribe(t.Context(), channel)
	defer ps.Close()
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, h)
	// What is published now comes after all that the release published.
	if err := b.rdb.Publish(t.Context(), channel, "end").Err(); err != nil {
		t.Fatal(err)
	}
	if m := (<-ps.Channel()).Payload; m != "end" {
		t.Errorf("received %q", m)
	}
	if value := b.rdb.Get(t.Context(), "k").Val(); value != "" {
		t.Errorf("the lock is %q", value)
	}
}
