package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

var nothing = redis.NewScript("return 1")

// bareVariant returns the floor: two script calls that do nothing, one for the
// acquire and one for the release.
func bareVariant(in sections) variant {
	about := "go-redis `Script.Run` of `return 1`, one key, one argument: no lock, the floor"
	return variant{name: bareName, about: about, in: in, sends: []string{"evalsha", "eval"}, open: func(t target) (locker, error) {
		return &bareCalls{rdb: dial(t), keys: []string{"bare"}}, nil
	}}
}

type bareCalls struct {
	rdb  *redis.Client
	keys []string
}

// Acquire calls the script.
func (l *bareCalls) Acquire(ctx context.Context, _ string) (held, error) {
	return l, l.Release(ctx)
}

// Release calls the script again.
func (l *bareCalls) Release(ctx context.Context) error {
	return nothing.Run(ctx, l.rdb, l.keys, "value").Err()
}

// Key is one that is never written.
func (l *bareCalls) Key(string) string { return "bare" }

// Close closes the client.
func (l *bareCalls) Close() error { return l.rdb.Close() }
