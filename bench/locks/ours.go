package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
)

// ours returns a contestant that is this library with the given options. The
// lease gets its TTL from the run, and the metadata that an application gives.
func ours(name, about string, in sections, opts lock.Options, lease lock.Lease) variant {
	return variant{name: name, about: about, in: in, sends: []string{"evalsha", "eval", "subscribe", "ssubscribe"}, open: func(t target) (locker, error) {
		rdb := dial(t)
		opts.App = "bench"
		client, err := lock.New(rdb, opts)
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		lease.TTL = t.ttl
		lease.Expect = 5 * time.Second
		lease.Class = "bench"
		lease.Purpose = "measure"
		return &ourLocker{rdb: rdb, client: client, lease: lease}, nil
	}}
}

// dial opens the go-redis client that every contestant but rueidislock gets.
func dial(t target) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: t.addr, PoolSize: t.pool})
}

type ourLocker struct {
	rdb    *redis.Client
	client *lock.Client
	lease  lock.Lease
}

// Acquire takes the lock with its metadata.
func (l *ourLocker) Acquire(ctx context.Context, name string) (held, error) {
	h, err := l.client.Acquire(ctx, name, l.lease)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Key is the name itself.
func (l *ourLocker) Key(name string) string { return name }

// Close ends the client and the one given to it.
func (l *ourLocker) Close() error { return errors.Join(l.client.Close(), l.rdb.Close()) }

func (l *ourLocker) watch(renewed func(name string)) (stop func()) {
	return l.client.Observe(func(e lock.Event) {
		if e.Kind == lock.EventRenewed {
			renewed(e.Key)
		}
	})
}
