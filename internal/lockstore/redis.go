package lockstore

import (
	"context"
	"errors"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// redisStore is the [Store] of Redis. [RedisConn] returns its connection to what is about
// Redis alone.
type redisStore struct {
	*connect.Conn
	address Address
}

func openRedis(a Address, cfg connect.Config) (Store, error) {
	conn, err := connect.Open(cfg)
	if err != nil {
		return nil, err
	}
	return redisStore{conn, a}, nil
}

func (s redisStore) Address() Address           { return s.address }
func (s redisStore) Topology() locksteward.Mode { return s.Mode() }
func (redisStore) Explain(err error) string     { return connect.Explain(err) }

func (s redisStore) Source(opts Options) (source.Source, error) {
	return redis.New(s.Conn, redis.Options{
		Log: opts.Log, Digest: opts.Digest, Config: opts.Redis, Pace: opts.Pace, Unpaced: opts.Unpaced, Hosts: opts.Hosts, Placeholder: opts.Placeholder,
	})
}

// ExcessRights asks one node after the other until one answers with a warning: users are
// made alike on all of them.
func (s redisStore) ExcessRights(ctx context.Context) (string, error) {
	masters, err := s.Masters(ctx)
	for _, m := range masters {
		rights, askErr := acl.Excess(ctx, m.Client, s.Username())
		err = errors.Join(err, askErr)
		if warning := rights.Warning(s.Username()); warning != "" {
			return warning, nil
		}
	}
	return "", err
}

func newRedisReleaser(cfg connect.Config, opts ReleaserOptions) (source.Releaser, error) {
	return releaser.New(releaser.Config{Connect: cfg, Digest: opts.Digest, MetaPrefixes: opts.MetaPrefixes})
}
