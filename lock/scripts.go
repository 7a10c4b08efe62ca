package lock

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/transport"
)

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed renew.lua
	renewText string
	//go:embed release.lua
	releaseText string
	//go:embed beat.lua
	beatText string
	//go:embed leave.lua
	leaveText string

	acquireScript = transport.NewScript("acquire", acquireText, transport.Shared)
	renewScript   = transport.NewScript("renew", renewText, transport.Now)
	releaseScript = transport.NewScript("release", releaseText, transport.First)
	beatScript    = transport.NewScript("heartbeat", beatText, transport.Now)
	leaveScript   = transport.NewScript("leave", leaveText, transport.Now)
)

// evaler runs one script in one round trip.
type evaler interface {
	Eval(ctx context.Context, s *transport.Script, keys []string, args []any) (any, error)
}

// poolSize returns the size of the pool of a client that [New] accepts.
func poolSize(rdb redis.UniversalClient) (int, error) {
	switch r := rdb.(type) {
	case nil:
		return 0, fmt.Errorf("%w: client: is nil", ErrInvalid)
	case *redis.Client:
		if r == nil {
			return 0, fmt.Errorf("%w: client: is nil", ErrInvalid)
		}
		return r.Options().PoolSize, nil
	case *redis.ClusterClient:
		if r == nil {
			return 0, fmt.Errorf("%w: client: is nil", ErrInvalid)
		}
		return r.Options().PoolSize, nil
	case *redis.Ring:
		return 0, fmt.Errorf("%w: client: a *redis.Ring loses locks when a shard is away, since it moves their keys; use a single server, Sentinel or Cluster", ErrInvalid)
	default:
		return 0, fmt.Errorf("%w: client: want *redis.Client or *redis.ClusterClient, got %T", ErrInvalid, rdb)
	}
}
