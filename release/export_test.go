package release

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
)

// Look returns what a request about the lock at key would freeze now, as far as
// it is compared; false if there is none.
func (e *RedisExecutor) Look(ctx context.Context, key string) (locksteward.Evidence, bool, error) {
	var out look
	was := locksteward.Evidence{Key: key}
	err := e.with(ctx, was, func(cn *redis.Conn) error {
		var err error
		out, err = e.look(ctx, cn, was)
		return err
	})
	return out.evidence, out.found, err
}

// Differences is differences.
func Differences(was, is locksteward.Evidence) []string { return differences(was, is) }

// Next is the table of states.
func Next() map[locksteward.RequestState][]locksteward.RequestState { return next }
