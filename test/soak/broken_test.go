package soak_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// broken breaks locks, one after the other, and sees that people are notified of each
// and of its end.
type broken struct {
	t      *testing.T
	rdb    *redis.ClusterClient
	ear    *ear
	ending <-chan struct{} // no new locks

	mu        sync.Mutex
	names     []string // of all of which must be notified
	swallowed int      // that a failover took before anybody looked
	back      int      // that a failover brought back
	freed     int      // by the agent
	left      int      // that no agent freed in time
	fire, end []time.Duration
}

// live breaks and frees locks until the world ends; it finishes what it began.
// With auto it leaves it to the agent to free them.
func (b *broken) live(ctx context.Context, worker int, auto bool) {
	for i := 0; ; i++ {
		select {
		case <-b.ending:
			return
		case <-ctx.Done():
			return
		default:
		}
		key := fmt.Sprintf("soak:broken:%d-%d", worker, i)
		if auto {
			key = fmt.Sprintf("soak:auto:%d-%d", worker, i)
		}
		if !b.one(ctx, key, fmt.Sprintf("3f2a77d0-%04x-4%03x-9b1c-6f0a2c4e8d11", worker, i%4096), auto) {
			return
		}
	}
}

// one is the life of one broken lock; it says false when the run must end.
func (b *broken) one(ctx context.Context, key, token string, auto bool) bool {
	if !b.insist(ctx, func() error { return b.rdb.Set(ctx, key, token, 0).Err() }) {
		return false
	}
	began := time.Now()
	if !b.await(ctx, key, "firing", func() bool {
		n, err := b.rdb.Exists(ctx, key).Result()
		return err == nil && n == 0
	}) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if n, err := b.rdb.Exists(ctx, key).Result(); err == nil && n == 0 {
			b.swallowed++
			return ctx.Err() == nil
		}
		b.names = append(b.names, key) // the verdict says that it was not reported
		return b.rdb.Del(ctx, key).Err() == nil
	}
	b.mu.Lock()
	b.names = append(b.names, key)
	b.fire = append(b.fire, time.Since(began))
	b.mu.Unlock()
	if auto {
		// An agent frees it after three complete sweeps of its own and a minute.
		// Faults may come oftener than that, and then it is left to people.
		left := b.leave(ctx, key)
		b.mu.Lock()
		if left {
			b.left++
		} else {
			b.freed++
		}
		b.mu.Unlock()
		if left && !b.insist(ctx, func() error { return b.rdb.Del(ctx, key).Err() }) {
			return false
		}
	} else if !b.insist(ctx, func() error { return b.rdb.Del(ctx, key).Err() }) {
		return false
	}
	began = time.Now()
	for {
		if b.await(ctx, key, "resolved", func() bool {
			n, err := b.rdb.Exists(ctx, key).Result()
			return err == nil && n == 1
		}) {
			break
		}
		if ctx.Err() != nil {
			return false
		}
		n, err := b.rdb.Exists(ctx, key).Result()
		if err == nil && n == 0 {
			if reported, _ := b.ear.received(key, "resolved"); reported {
				break
			}
			return true // the verdict says that it was not reported
		}
		// A failover lost the delete.
		b.mu.Lock()
		b.back++
		b.mu.Unlock()
		if !b.insist(ctx, func() error { return b.rdb.Del(ctx, key).Err() }) {
			return false
		}
	}
	b.mu.Lock()
	b.end = append(b.end, time.Since(began))
	b.mu.Unlock()
	return true
}

// leave waits until an agent has freed a lock, and says whether nobody did.
func (b *broken) leave(ctx context.Context, key string) bool {
	deadline := time.Now().Add(within)
	for {
		n, err := b.rdb.Exists(ctx, key).Result()
		if err == nil && n == 0 {
			return false
		}
		if time.Now().After(deadline) {
			return true
		}
		select {
		case <-ctx.Done():
			return true
		case <-b.ending:
			return true
		case <-time.After(time.Second):
		}
	}
}

// insist tries until Redis has done it.
func (b *broken) insist(ctx context.Context, do func() error) bool {
	deadline := time.Now().Add(within)
	for {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			b.t.Errorf("redis: %v", errors.Join(err, ctx.Err()))
			return false
		}
		<-time.After(200 * time.Millisecond)
	}
}

// await waits until a status is notified of a lock. It says false when that is late, or
// when moot has been true for ten seconds.
func (b *broken) await(ctx context.Context, key, status string, moot func() bool) bool {
	deadline := time.Now().Add(within)
	look := time.NewTicker(2 * time.Second)
	defer look.Stop()
	times := 0
	for {
		ok, news := b.ear.received(key, status)
		if ok {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		case <-look.C:
			if times++; !moot() {
				times = 0
			}
			if times >= 5 {
				return false
			}
			if time.Now().After(deadline) {
				return false
			}
		}
	}
}
