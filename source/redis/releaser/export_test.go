package releaser

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
)

// Read returns what a request about the lock at key would freeze now, as far as it
// is compared; false if there is none.
func (r *Releaser) Read(ctx context.Context, key string) (locksteward.Evidence, bool, error) {
	var out reading
	was := locksteward.Evidence{Key: key}
	err := r.with(ctx, was, func(cn *redis.Conn) error {
		var err error
		out, err = r.read(ctx, cn, was)
		return err
	})
	return out.evidence, out.Found, err
}
