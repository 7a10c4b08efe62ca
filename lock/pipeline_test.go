package lock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// pairs has n goroutines take and release locks of their own.
func pairs(t *testing.T, c *lock.Client, n, times int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for range times {
				h, err := c.Acquire(context.Background(), fmt.Sprintf("k%d", i), lease())
				if err != nil {
					t.Error(err)
					return
				}
				if err := h.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Many goroutines share one connection, and get their own answers.
func TestPipeline(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	before := b.rdb.Info(t.Context(), "stats").Val()
	pairs(t, b.client, 64, 20)
	if n := exists(t, b.rdb, "k0", metaKey("k0")); n != 0 {
		t.Errorf("%d keys left", n)
	}
	if n := len(b.events.of(lock.EventReleased)); n != 64*20 {
		t.Errorf("%d releases", n)
	}
	// The heartbeat, the subscriber, and the four of the lane.
	after := b.rdb.Info(t.Context(), "stats").Val()
	if n := infoInt(t, after, "total_connections_received") - infoInt(t, before, "total_connections_received"); n > 6 {
		t.Errorf("%d connections", n)
	}
}

func TestPipelineOnCluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	c := open(t, cluster.Client(t), lock.Options{})
	pairs(t, c, 64, 10)
}

// A server that forgets its scripts (fault 41), dies and comes back, or does not
// answer, is the same with a shared connection: no acquire hangs, and no lock is
// left.
// fault: 41
func TestPipelineUnderFaults(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{Timeout: time.Second})
	pairs(t, b.client, 16, 2)
	b.rdb.ScriptFlush(t.Context())
	pairs(t, b.client, 16, 2)

	b.srv.Pause()
	var wg sync.WaitGroup
	var unknown, unsent atomic.Int32
	for i := range 32 {
		wg.Go(func() {
			began := time.Now()
			_, err := b.client.Acquire(context.Background(), fmt.Sprintf("p%d", i), lease())
			switch took := time.Since(began); {
			case err == nil || took > 6*time.Second:
				t.Errorf("took %s: %v", took, err)
			case errors.Is(err, lock.ErrUnknown):
				unknown.Add(1)
			case errors.Is(err, redis.ErrPoolTimeout):
				unsent.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b.srv.Resume()
	testredis.Eventually(t, 15*time.Second, func() bool {
		for i := range 32 {
			if exists(t, b.rdb, fmt.Sprintf("p%d", i)) != 0 {
				return false
			}
		}
		return len(b.events.of(lock.EventCleaned))+len(b.events.of(lock.EventCleanFailed)) >= int(unknown.Load())
	}, "what took effect unseen is given back")

	if unknown.Load() == 0 || unknown.Load()+unsent.Load() != 32 {
		t.Errorf("%d unknown, %d never sent", unknown.Load(), unsent.Load())
	}

	b.srv.Kill()
	_, err := b.client.TryAcquire(t.Context(), "k", lease())
	if err == nil || errors.Is(err, lock.ErrHeld) {
		t.Errorf("without a server: %v", err)
	}
	b.srv.Restart()
	pairs(t, b.client, 16, 2)
}

// A reply that is lost on the shared connection leaves no lock that nobody
// knows.
func TestPipelineLosesReplies(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	events := &recorder{}
	far := srv.Options()
	far.Addr = proxy.Addr()
	rdb := redis.NewClient(far)
	t.Cleanup(func() { _ = rdb.Close() })
	c := open(t, rdb, lock.Options{Timeout: time.Second})
	c.Observe(events.add)
	pairs(t, c, 16, 2)
	proxy.DropReplies(true)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			h, err := c.Acquire(context.Background(), fmt.Sprintf("d%d", i), lease())
			if err == nil {
				t.Errorf("acquired without a reply: %v", h)
			} else if !errors.Is(err, lock.ErrUnknown) && !errors.Is(err, io.EOF) {
				t.Logf("%v", err)
			}
		})
	}
	wg.Wait()
	proxy.DropReplies(false)
	proxy.Cut()
	proxy.Heal()
	direct := srv.Client(t)
	testredis.Eventually(t, 20*time.Second, func() bool {
		for i := range 16 {
			if exists(t, direct, fmt.Sprintf("d%d", i)) != 0 {
				return false
			}
		}
		return true
	}, "given back")
	pairs(t, c, 16, 2)
}

// infoInt reads a number out of an INFO reply.
func infoInt(t *testing.T, info, name string) int {
	t.Helper()
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in INFO", name)
	return 0
}
