package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
)

// Ping asks the masters that are known for a sign of life, all at once, over connections
// of the pools. It returns nil if one answers; if there is none, or none is known yet, an
// error says so.
func (c *Conn) Ping(ctx context.Context) error {
	c.mu.Lock()
	addrs := slices.Clone(c.masters)
	c.mu.Unlock()
	masters := make([]Master, 0, len(addrs))
	for _, addr := range addrs {
		client, err := c.nodeClient(addr)
		if err != nil {
			return err
		}
		masters = append(masters, Master{Addr: addr, Client: client})
	}
	return anyAnswers(ctx, masters, func() {})
}

// Reach finds out whether a master of the target of cfg answers, over connections that are
// made for it: it asks all entrances at once which masters there are, and these for a
// sign of life. The first that gives one ends it, however many others are away.
func Reach(ctx context.Context, cfg Config) error {
	cfg.PoolSize = 1
	c, err := Open(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		cancel()
		_ = c.Close() // what waits for another answer ends with an error, and so may this
	}
	defer end()
	entrances, ask := c.spec.Addrs, c.askOnly
	switch c.Mode() {
	case locksteward.ModeCluster:
		entrances, ask = c.entrances(), c.askSlots
	case locksteward.ModeSentinel:
		ask = c.masterBySentinel
	}
	return oneOf(len(entrances), func(i int) error {
		masters, err := ask(ctx, entrances[i])
		if err != nil {
			return err
		}
		return anyAnswers(ctx, masters, end)
	})
}

// askOnly is the way to the masters of a standalone target.
func (c *Conn) askOnly(ctx context.Context, _ string) ([]Master, error) {
	return c.standaloneMaster(ctx)
}

// anyAnswers returns nil if one of masters answers, and calls answered as soon as it does.
func anyAnswers(ctx context.Context, masters []Master, answered func()) error {
	if len(masters) == 0 {
		return errors.New("no master is known")
	}
	return oneOf(len(masters), func(i int) error {
		err := masters[i].Client.Ping(ctx).Err()
		if err == nil || redis.HasErrorPrefix(err, "NOPERM") {
			answered()
			return nil // who may not ask that was answered
		}
		return fmt.Errorf("ask %s: %w", masters[i].Addr, err)
	})
}

// oneOf tries n things at once, and returns nil if one of them succeeds.
func oneOf(n int, try func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = try(i) })
	}
	group.Wait()
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}
