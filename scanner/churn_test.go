package scanner_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
)

// TestWhatIsThereThroughoutIsSeen is SCAN's promise as ours: whatever is added,
// removed and rehashed meanwhile, a lock that is there from before the sweep
// until after it is in the sweep, once, and none of them is said to have ended. Nor
// is anybody reported anything: what comes and goes meanwhile is released as it should
// be, and some of it is of our library, whose locks can be lost.
// fault: 62, 63
func TestWhatIsThereThroughoutIsSeen(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	rapid.Check(t, func(rt *rapid.T) {
		must(t, c.FlushAll(t.Context()).Err())
		heartbeat(t, c, "i1")
		stay := rapid.IntRange(1, 400).Draw(rt, "locks that stay")
		around := rapid.IntRange(0, 3000).Draw(rt, "other keys")
		burst := rapid.IntRange(1, 2000).Draw(rt, "keys written and removed at a time")
		want := make([]string, stay)
		_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range stay {
				want[i] = fmt.Sprintf("lock:%d", i)
				p.Set(t.Context(), want[i], fmt.Sprint("tok", i), time.Hour)
			}
			for i := range around {
				p.Set(t.Context(), fmt.Sprintf("other:%d", i), "x", 0)
			}
			return nil
		})
		must(t, err)
		slices.Sort(want)

		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { // grows and shrinks the hash table under the cursor
			for n := 0; ctx.Err() == nil; n++ {
				if err := comeOrGo(t.Context(), c, n); err != nil {
					t.Error(err)
					return
				}
				_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for i := range burst {
						if n%2 == 0 {
							p.Set(t.Context(), fmt.Sprintf("lock:churn:%d", i), "t", time.Minute)
						} else {
							p.Del(t.Context(), fmt.Sprintf("lock:churn:%d", i))
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		s := fast(srv.URL()).build(t)
		e, err := rules.New(nil, nil, nil)
		must(t, err)
		for range 3 {
			got, err := s.Sweep(t.Context())
			if err != nil || !got.Complete() {
				rt.Errorf("sweep: %v", err)
			}
			if reported := notified(e.Evaluate(got)); len(reported) != 0 || len(got.Losses) != 0 {
				rt.Errorf("reported %q, losses %+v", reported, got.Losses)
			}
			var have []string
			for _, l := range got.Locks {
				if len(l.Key) < 11 || l.Key[:11] != "lock:churn:" {
					have = append(have, l.Key)
				}
			}
			if !slices.Equal(have, want) {
				rt.Errorf("%d of %d locks seen", len(have), len(want))
			}
			for _, e := range got.Endings {
				if slices.Contains(want, e.Lock.Key) {
					rt.Errorf("%s is said to have ended %s", e.Lock.Key, e.How)
				}
			}
		}
		stop()
		wg.Wait()
	})
}

// comeOrGo takes locks of ours with an even n and releases them with an odd one, each
// with its metadata, as the library does.
func comeOrGo(ctx context.Context, c *redis.Client, n int) error {
	now := time.Now().UnixMilli()
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 50 {
			key := fmt.Sprintf("lock:churn:ours:%d", i)
			meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
			if n%2 != 0 {
				p.Del(ctx, key, meta)
				continue
			}
			m := record.Meta{V: record.Version, ID: fmt.Sprintf("id-%d-%d", n, i), Instance: "i1", TTL: 60_000, Acquired: now, Renewed: now}
			p.Set(ctx, key, record.Value(m.ID, "secret"), time.Minute)
			p.Set(ctx, meta, m.Encode(), 0)
			p.PExpire(ctx, meta, time.Minute+record.Grace)
		}
		return nil
	})
	return err
}
