package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/demo/lockuser"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// workers take turns on the healthy lock.
const workers = 3

// players are the lock users.
type players struct {
	connect connect.Config
	scene   scene
	board   *board
	holder  []string
	// again repeats what would otherwise happen once.
	again bool
}

// start makes all lock users act in the group. It returns when the broken locks
// stand and the waiting client waits, but for those that need time to break.
func (p *players) start(ctx context.Context, g *group) error {
	waiting := make(chan struct{})
	if err := p.leaveRedissonLock(ctx); err != nil {
		return fmt.Errorf("take a Redisson lock: %s", connect.Explain(err))
	}
	g.run("the client that waits", func(ctx context.Context) error { return p.waitForRedissonLock(ctx, waiting) })
	if err := p.crashAfterSetNX(ctx); err != nil {
		return fmt.Errorf("take a lock with SETNX: %s", connect.Explain(err))
	}
	if err := p.shareToken(ctx); err != nil {
		return fmt.Errorf("take a lock with SET: %s", connect.Explain(err))
	}
	for n := range workers {
		g.run("a worker", func(ctx context.Context) error { return p.work(ctx, n) })
	}
	g.run("the report", p.hang)
	g.run("the import", p.die)
	select {
	case <-waiting:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// brief does something over a connection that is closed at once: its client is
// gone afterwards.
func (p *players) brief(ctx context.Context, name string, act func(rdb redis.UniversalClient) error) error {
	conn, rdb, err := dial(ctx, p.connect, name)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // Every reply was read.
	return act(rdb)
}

// crashAfterSetNX is the first half of a lock made by hand.
func (p *players) crashAfterSetNX(ctx context.Context) error {
	return p.brief(ctx, "stock", func(rdb redis.UniversalClient) error {
		// The EXPIRE that belongs here never comes.
		return rdb.Do(ctx, "setnx", p.scene.stock(), uuid()).Err()
	})
}

// shareToken takes a lock as many examples do.
func (p *players) shareToken(ctx context.Context) error {
	return p.brief(ctx, "invoices", func(rdb redis.UniversalClient) error {
		return rdb.Set(ctx, p.scene.invoice(), "1", invoiceLease).Err()
	})
}

// work is one healthy worker: it takes the lock, works, gives it back.
func (p *players) work(ctx context.Context, n int) error {
	conn, rdb, err := dial(ctx, p.connect, "worker")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	client, err := lock.New(rdb, lock.Options{App: fmt.Sprintf("cart-worker-%d", n+1), KeyPrefix: p.scene.companions()})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // What it held was released.
	lease := lock.Lease{TTL: cartTTL, RenewFraction: 0.25, Expect: cartExpect, Class: classCarts, Purpose: "reprice the cart"}
	for ctx.Err() == nil {
		p.board.queued(+1)
		h, err := client.Acquire(ctx, p.scene.cart(), lease)
		p.board.queued(-1)
		if ctx.Err() != nil && h == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("worker %d: %w", n+1, err)
		}
		// Often longer than a renewal interval, so that renewals are seen.
		pause(h.Context(), 300*time.Millisecond+rand.N(900*time.Millisecond))
		// A lost lock is a finding on a machine that stood still, not a failure.
		if err := h.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, lock.ErrLost) {
			return fmt.Errorf("worker %d: %w", n+1, err)
		}
		p.board.worked()
	}
	return nil
}

// hang holds a lock for as long as the demo lasts.
func (p *players) hang(ctx context.Context) error {
	conn, rdb, err := dial(ctx, p.connect, "report")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	return lockuser.HoldOn(ctx, rdb, lock.Options{App: "reports", KeyPrefix: p.scene.companions()}, p.scene.report(), lock.Lease{
		TTL: reportTTL, Expect: reportExpect, Class: classReports, Purpose: "write the nightly report",
	}, func() {})
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
