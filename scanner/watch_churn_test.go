package scanner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// metaOf is metadata of a hold.
func metaOf(id string) record.Meta { return record.Meta{ID: id, Instance: "i1"} }

// TestWatchMissesNothingUnderChurn has 64 clients take, renew, persist, rename and
// release locks while sweeps run: no sweep may find what no push reported, and in
// the end the table is what the server has.
func TestWatchMissesNothingUnderChurn(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	w.audit()

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var writes atomic.Int64
	for g := range 64 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for n := 0; ctx.Err() == nil; n++ {
				churn(ctx, c, rnd, g, n)
				writes.Add(1)
				pause(ctx, time.Duration(rnd.IntN(20))*time.Millisecond)
			}
		})
	}
	sweeps := 0
	for ; ctx.Err() == nil; sweeps++ {
		got, err := w.s.Sweep(t.Context())
		if err != nil || !got.Complete() {
			t.Errorf("sweep: %v", err)
		}
		pause(ctx, 300*time.Millisecond)
	}
	wg.Wait()
	w.audit()
	s := w.s.WatchState()
	if s.Blind != 0 || s.Events == 0 || s.Reads == 0 {
		t.Errorf("state: %+v", s)
	}
	t.Logf("%d writes, %d sweeps, %d keys pushed, %d read", writes.Load(), sweeps, s.Events, s.Reads)
	testredis.Eventually(t, soon, func() bool { return agrees(t, w, c) }, "the table is not what the server has")
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// churn does something to one of the locks that all share, or to one's own.
func churn(ctx context.Context, c *redis.Client, rnd *rand.Rand, g, n int) {
	key := fmt.Sprintf("lock:shared:%d", rnd.IntN(40))
	if rnd.IntN(2) == 0 {
		key = fmt.Sprintf("lock:own:%d:%d", g, rnd.IntN(3))
	}
	switch rnd.IntN(10) {
	case 0, 1, 2:
		c.SetNX(ctx, key, fmt.Sprintf("tok-%d-%d", g, n), time.Duration(50+rnd.IntN(2000))*time.Millisecond)
	case 3:
		c.SetNX(ctx, key, "1", 0)
	case 4, 5:
		c.PExpire(ctx, key, time.Duration(50+rnd.IntN(4000))*time.Millisecond)
	case 6:
		c.Persist(ctx, key)
	case 7:
		c.Rename(ctx, key, fmt.Sprintf("lock:shared:%d", rnd.IntN(40)))
	default:
		c.Del(ctx, key)
	}
}

// agrees says whether the table has the locks that the server has, with their
// values' digests as of the last word to the sink.
func agrees(t *testing.T, w *reported, c *redis.Client) bool {
	t.Helper()
	keys, err := c.Keys(t.Context(), "lock:*").Result()
	must(t, err)
	locks := w.s.Table().Locks()
	if len(keys) != len(locks) {
		return false
	}
	have := map[string]locksteward.Lock{}
	for _, l := range locks {
		have[l.Key] = l
	}
	for _, key := range keys {
		when := testredis.ExpireAt(t, c, key)
		l, ok := have[key]
		if !ok || when > 0 && l.ExpireAt != when || when < 0 && l.ExpireAt != locksteward.NoExpireAt {
			return false
		}
	}
	return true
}
