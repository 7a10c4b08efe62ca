package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// growing lets a key grow between the look at its size and the one at its members.
type growing struct {
	command, key string // that reads its members
	grow         func()
}

func (*growing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*growing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g *growing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Name() == g.command && c.Args()[1] == g.key }) {
			g.grow()
		}
		return next(ctx, cmds)
	}
}

// What has grown beyond the bounds since its size was asked is too large all the same:
// its members are not kept.
func TestKeysThatGrowWhileTheyAreReadAreTooLarge(t *testing.T) {
	t.Parallel()
	const key, many = "lock:grows", 10_000
	ours := func(ctx context.Context, c *redis.Client) error {
		return c.Set(ctx, key, record.Value("id", "secret"), 0).Err()
	}
	waiters := record.Companion(record.DefaultPrefix, record.KindWaiter, key)
	meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
	for name, tc := range map[string]struct {
		before string
		set    func(ctx context.Context, c *redis.Client) error
		grow   string // the key, by HSET or SADD
		large  bool
	}{
		"hash": {"hgetall", func(ctx context.Context, c *redis.Client) error { return c.HSet(ctx, key, "owner", 1).Err() }, key, true},
		"set":  {"smembers", func(ctx context.Context, c *redis.Client) error { return c.SAdd(ctx, key, "owner").Err() }, key, true},
		"metadata": {"hgetall", func(ctx context.Context, c *redis.Client) error {
			return errors.Join(ours(ctx, c), c.Set(ctx, meta, `{"id":"id","v":2}`, 0).Err())
		}, meta, false},
		"metadata that was not there": {"hgetall", ours, meta, false},
		"waiters": {"hgetall", func(ctx context.Context, c *redis.Client) error {
			return errors.Join(ours(ctx, c), c.Set(ctx, meta, `{"id":"id","v":2}`, 0).Err(), c.HSet(ctx, waiters, "w", "x").Err())
		}, waiters, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			if err := tc.set(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			conn := openConn(t, srv.URL())
			s := bound(t, conn)
			masters, err := conn.Masters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			masters[0].Client.AddHook(&growing{command: tc.before, key: tc.grow, grow: sync.OnceFunc(func() {
				add := []any{"hset", tc.grow}
				if tc.before == "smembers" {
					add[0] = "sadd"
				}
				for i := range many {
					if add = append(add, fmt.Sprint("m", i)); add[0] == "hset" {
						add = append(add, record.Waiter{Since: 1, Until: 1 << 45}.Encode())
					}
				}
				if err := c.Do(t.Context(), add...).Err(); err != nil {
					t.Error(err)
				}
			})})
			readings, err := s.readKeys(t.Context(), s.directReader(masters[0]), []string{key})
			if err != nil {
				t.Fatal(err)
			}
			seen := &readings[0]
			if n := len(seen.sample.Fields) + len(seen.sample.Members); n > maxMembers || seen.sample.TooLarge != tc.large {
				t.Errorf("%d members are kept, too large %v", n, seen.sample.TooLarge)
			}
			if seen.as != there || len(seen.waiters) > maxMembers {
				t.Errorf("seen as %d, with %d waiters", seen.as, len(seen.waiters))
			}
		})
	}
}
