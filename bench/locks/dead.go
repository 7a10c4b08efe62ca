package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// deadRow is how long a live waiter waits after the release when killed ones
// stand before it.
type deadRow struct {
	Library string `json:"library"`
	Dead    int    `json:"dead"`
	Wait    series `json:"wait_ms"`
	// Each is what one dead waiter adds to the wait without any.
	Each series `json:"each_ms"`
}

// deadLimit is when a waiter counts as forgotten: no lease is as long.
const deadLimit = time.Minute

func runDead(ctx context.Context, b *bed) ([]*deadRow, error) {
	type cell struct {
		v    variant
		row  *deadRow
		base *deadRow // its first, with which it is compared
	}
	var rows []*deadRow
	var levels [][]cell
	bases := map[string]*deadRow{}
	for _, n := range b.Dead {
		var level []cell
		for _, v := range in(dead) {
			row := &deadRow{Library: v.name, Dead: n}
			if bases[v.name] == nil {
				bases[v.name] = row
			}
			rows = append(rows, row)
			level = append(level, cell{v, row, bases[v.name]})
		}
		levels = append(levels, level)
	}
	for round := range b.Rounds {
		for _, level := range levels {
			for _, c := range turned(level, round) {
				wait, err := afterTheDead(ctx, b, c.v, c.row.Dead)
				if err != nil {
					return nil, fmt.Errorf("%s, %d dead: %w", c.v.name, c.row.Dead, err)
				}
				c.row.Wait.add(millis(wait))
				if more := c.row.Dead - c.base.Dead; more > 0 {
					c.row.Each.add((millis(wait) - c.base.Wait[round]) / float64(more))
				}
				b.say("dead, round %d of %d, %s, %d dead: %.2f ms", round+1, b.Rounds, c.v.name, c.row.Dead, millis(wait))
			}
		}
	}
	return rows, nil
}

// afterTheDead takes a lock, lets n processes wait for it and then a live one,
// kills the processes, releases at once, when they look as if they lived, and
// returns how long the live one then waits.
func afterTheDead(ctx context.Context, b *bed, v variant, n int) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, deadLimit, fmt.Errorf("not done within %s", deadLimit))
	defer cancel()
	lockers, err := openMany(ctx, b, v, 2)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, l := range lockers {
			err = errors.Join(err, l.Close())
		}
	}()
	name := b.name()
	holder, err := lockers[0].Acquire(ctx, name)
	if err != nil {
		return 0, err
	}
	var doomed []*child
	defer func() {
		for _, c := range doomed {
			err = errors.Join(err, c.kill())
		}
	}()
	for i := range n {
		c, err := startChild(ctx, b, v, name)
		if err != nil {
			return 0, err
		}
		doomed = append(doomed, c)
		if err := b.queued(ctx, name, i+1); err != nil {
			return 0, err
		}
	}
	got := make(chan error, 1)
	var at time.Time
	go func() {
		h, err := lockers[1].Acquire(ctx, name)
		at = time.Now()
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	err = b.queued(ctx, name, n+1)
	for _, c := range doomed {
		err = errors.Join(err, c.kill())
	}
	released := time.Now()
	err = errors.Join(err, holder.Release(context.WithoutCancel(ctx)))
	if err != nil {
		cancel()
	}
	err = errors.Join(err, <-got)
	return at.Sub(released), err
}

// queued waits until n waiters of this library stand in the queue of a lock, or,
// where it has none, listen for its release.
func (b *bed) queued(ctx context.Context, name string, n int) error {
	queue := record.Companion(record.DefaultPrefix, record.KindQueue, name)
	wake := record.Companion(record.DefaultPrefix, record.KindWake, name)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		standing, err := b.admin.ZCard(ctx, queue).Result()
		if err != nil {
			return fmt.Errorf("count queue of %q: %w", name, err)
		}
		listening, err := b.admin.PubSubNumSub(ctx, wake).Result()
		if err != nil {
			return fmt.Errorf("count listeners of %q: %w", name, err)
		}
		sharded, err := b.admin.PubSubShardNumSub(ctx, wake).Result()
		if err != nil {
			return fmt.Errorf("count listeners of %q: %w", name, err)
		}
		if max(standing, listening[wake], sharded[wake]) >= int64(n) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await %d waiters for %q: %w", n, name, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// openMany opens clients and lets each take a lock of its own, so that their
// connections stand.
func openMany(ctx context.Context, b *bed, v variant, n int) (list []locker, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				err = errors.Join(err, l.Close())
			}
		}
	}()
	for range n {
		l, err := b.open(v)
		if err != nil {
			return list, err
		}
		list = append(list, l)
		h, err := l.Acquire(ctx, b.name())
		if err != nil {
			return list, err
		}
		if err := h.Release(ctx); err != nil {
			return list, err
		}
	}
	return list, nil
}
