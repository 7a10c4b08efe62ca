package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncVariant returns redsync on one server, with a mutex for each acquire,
// as code has it that locks by a name it was given.
func redsyncVariant(name, about string, in sections, opts ...redsync.Option) variant {
	return variant{name: name, about: about, in: in, sends: []string{"set", "evalsha", "eval"}, open: func(t target) (locker, error) {
		rdb := dial(t)
		all := append([]redsync.Option{redsync.WithExpiry(t.ttl)}, opts...)
		return &redsyncLocker{rdb: rdb, redsync: redsync.New(goredis.NewPool(rdb)), opts: all}, nil
	}}
}

type redsyncLocker struct {
	rdb     *redis.Client
	redsync *redsync.Redsync
	opts    []redsync.Option
}

type redsyncHeld redsync.Mutex

// Acquire starts over when redsync's tries are used up.
func (l *redsyncLocker) Acquire(ctx context.Context, name string) (held, error) {
	m := l.redsync.NewMutex(name, l.opts...)
	for {
		err := m.LockContext(ctx)
		if err == nil {
			return (*redsyncHeld)(m), nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if _, taken := errors.AsType[*redsync.ErrTaken](err); !taken && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
	}
}

// Release unlocks the mutex.
func (h *redsyncHeld) Release(ctx context.Context) error {
	ok, err := (*redsync.Mutex)(h).UnlockContext(ctx)
	if err == nil && !ok {
		return fmt.Errorf("release lock %q: redsync says it was not held", (*redsync.Mutex)(h).Name())
	}
	return err
}

// Key is the name itself.
func (l *redsyncLocker) Key(name string) string { return name }

// Close closes the client.
func (l *redsyncLocker) Close() error { return l.rdb.Close() }

// redislockVariant returns bsm/redislock. The strategy has no state of its own.
func redislockVariant(name, about string, in sections, retry redislock.RetryStrategy) variant {
	return variant{name: name, about: about, in: in, sends: []string{"evalsha", "eval"}, open: func(t target) (locker, error) {
		rdb := dial(t)
		return &redislockLocker{
			rdb: rdb, client: redislock.New(rdb), ttl: t.ttl,
			opts: &redislock.Options{RetryStrategy: retry, Metadata: "app=bench class=bench purpose=measure"},
		}, nil
	}}
}

type redislockLocker struct {
	rdb    *redis.Client
	client *redislock.Client
	ttl    time.Duration
	opts   *redislock.Options
}

// Acquire starts over when redislock gives up, which it does after the TTL.
func (l *redislockLocker) Acquire(ctx context.Context, name string) (held, error) {
	for {
		h, err := l.client.Obtain(ctx, name, l.ttl, l.opts)
		if err == nil {
			return h, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
}

// Key is the name itself.
func (l *redislockLocker) Key(name string) string { return name }

// Close closes the client.
func (l *redislockLocker) Close() error { return l.rdb.Close() }
