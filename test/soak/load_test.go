package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/source/redis/formats"
)

const (
	standingTTL = 6 * time.Hour    // of locks that nobody renews
	renewedTTL  = 15 * time.Minute // of those that are renewed
	briefTTL    = 30 * time.Second // of those that come and go
	raw         = 8                // workers that write other formats' layouts
	own         = 8                // holders that use lock/
	apiece      = 100              // brief locks of one worker at most
)

// load is what applications do.
type load struct {
	t       *testing.T
	rdb     *redis.ClusterClient
	layouts []layout
	began   time.Time

	sets, renewals, deletes, holds atomic.Int64
	failed                         atomic.Int64 // while the Cluster fails over, or late
	renewing                       atomic.Int64 // the next of the standing ones
}

// standing is the n-th lock that must be there at the end.
func (l *load) standing(n int) formats.Sample {
	return l.layouts[n%len(l.layouts)].make(n)
}

// renewed says whether applications renew the n-th standing lock: one in five.
func renewed(n int) bool { return n%5 == 0 }

// fill writes the standing locks.
func (l *load) fill(ctx context.Context) {
	l.t.Helper()
	const batch = 500
	for from := 0; from < *locks; from += batch {
		var last error
		for range 20 {
			pipe := l.rdb.Pipeline()
			for n := from; n < min(from+batch, *locks); n++ {
				ttl := standingTTL
				if renewed(n) {
					ttl = renewedTTL
				}
				put(ctx, pipe, l.standing(n), ttl)
			}
			if _, last = pipe.Exec(ctx); last == nil {
				break
			}
			<-time.After(500 * time.Millisecond)
		}
		if last != nil {
			l.t.Fatalf("write locks: %v", last)
		}
	}
}

// run does operations at the wanted rate until ctx ends: one in ten by lock/, the
// others as the libraries of the layouts do them.
func (l *load) run(ctx context.Context) {
	l.began = time.Now()
	var all sync.WaitGroup
	for i := range raw {
		all.Go(func() { l.layoutsOf(ctx, i, float64(*rate)*0.9/raw) })
	}
	client, err := lock.New(l.rdb, lock.Options{App: "soak"})
	if err != nil {
		l.t.Error(err)
		return
	}
	defer client.Close()
	for i := range own {
		all.Go(func() { l.ownOf(ctx, client, i, float64(*rate)*0.1/own) })
	}
	all.Wait()
}

// pace waits until n operations are due, at a rate by second.
func pace(ctx context.Context, began time.Time, n float64, rate float64) bool {
	due := began.Add(time.Duration(n / rate * float64(time.Second)))
	if wait := time.Until(due); wait > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
	return ctx.Err() == nil
}

// layoutsOf takes, renews and frees locks in pipelines of one tenth of a second.
func (l *load) layoutsOf(ctx context.Context, worker int, rate float64) {
	rng := rand.New(rand.NewPCG(*seed, uint64(worker)))
	began, done := time.Now(), 0.0
	step := max(4, int(rate/10))
	var mine []string
	next := 0
	for pace(ctx, began, done, rate) {
		if behind := time.Since(began).Seconds() - done/rate; behind > 5 {
			began, done = time.Now(), 0 // what could not be done is not done later in a heap
		}
		pipe := l.rdb.Pipeline()
		var sets, renewals, deletes int64
		var taken []string
		for range step {
			switch dice := rng.IntN(10); {
			case dice < 3 && len(mine)+len(taken) < apiece || len(mine) == 0:
				n := 100_000_000 + worker*10_000_000 + next
				next++
				s := l.layouts[rng.IntN(len(l.layouts))].make(n)
				put(ctx, pipe, s, briefTTL)
				taken = append(taken, s.Key)
				sets++
			case dice < 6:
				n := int(l.renewing.Add(5)) % *locks
				pipe.PExpire(ctx, l.standing(n-n%5).Key, renewedTTL)
				renewals++
			case dice < 7:
				pipe.PExpire(ctx, mine[rng.IntN(len(mine))], briefTTL)
				renewals++
			default:
				pipe.Del(ctx, mine[0])
				mine = mine[1:]
				deletes++
			}
		}
		done += float64(step)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := pipe.Exec(bounded)
		cancel()
		mine = append(mine, taken...)
		if err != nil {
			if ctx.Err() == nil {
				l.failed.Add(int64(step))
			}
			continue
		}
		l.sets.Add(sets)
		l.renewals.Add(renewals)
		l.deletes.Add(deletes)
	}
}

// ownOf takes and releases locks by lock/, each for up to a second.
func (l *load) ownOf(ctx context.Context, client *lock.Client, worker int, rate float64) {
	rng := rand.New(rand.NewPCG(*seed, uint64(100+worker)))
	began, done := time.Now(), 0.0
	var held []*lock.Handle
	free := func(h *lock.Handle) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := h.Release(bounded); err != nil {
			l.failed.Add(1)
		} else {
			l.holds.Add(1)
		}
	}
	for pace(ctx, began, done, rate) {
		if behind := time.Since(began).Seconds() - done/rate; behind > 5 {
			began, done = time.Now(), 0
		}
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		h, err := client.Acquire(bounded, fmt.Sprintf("soak:own:%d-%d", worker, rng.IntN(1000)), lock.Lease{TTL: briefTTL})
		cancel()
		done += 2
		if err != nil {
			if ctx.Err() == nil {
				l.failed.Add(1)
			}
			continue
		}
		l.holds.Add(1)
		if held = append(held, h); len(held) > 10 {
			free(held[0])
			held = held[1:]
		}
	}
	for _, h := range held {
		free(h)
	}
}

// operations are those that were done.
func (l *load) operations() int64 {
	return l.sets.Load() + l.renewals.Load() + l.deletes.Load() + l.holds.Load()
}

// missing counts the standing locks that are not there with their token, and names
// some. All must be asked where nothing answers an error.
func (l *load) missing(ctx context.Context) (count int, names []string) {
	l.t.Helper()
	const batch = 500
	for from := 0; from < *locks; from += batch {
		var lost []string
		testEventually(l.t, func() bool {
			lost = nil
			pipe := l.rdb.Pipeline()
			var cmds []redis.Cmder
			for n := from; n < min(from+batch, *locks); n++ {
				cmds = append(cmds, read(ctx, pipe, l.standing(n)))
			}
			if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil {
				return false
			}
			for i, c := range cmds {
				if c.Err() != nil && c.Err() != redis.Nil {
					return false
				}
				if s := l.standing(from + i); !same(s, c) {
					lost = append(lost, l.layouts[(from+i)%len(l.layouts)].name+" "+s.Key)
				}
			}
			return true
		}, "the locks can be read")
		count += len(lost)
		names = append(names, lost[:min(len(lost), max(0, 10-len(names)))]...)
	}
	return count, names
}
