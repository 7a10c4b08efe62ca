package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisVariant returns rueidislock on one server, set up as its documentation
// says for that. It renews every third of the lease, as this library does, and
// a slow reply (TryNextAfter) is no reason to give up: there is no next key, and
// a waiter for its own timed-out one is never woken.
func rueidisVariant(in sections) variant {
	about := "`KeyMajority: 1, NoLoopTracking: true`, `ExtendInterval` a third of the lease"
	return variant{name: rueidisName, about: about, in: in, sends: []string{"evalsha", "eval"}, open: func(t target) (locker, error) {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{
				InitAddress:       []string{t.addr},
				ForceSingleClient: true,
			},
			KeyMajority:    1,
			NoLoopTracking: true,
			KeyValidity:    t.ttl,
			ExtendInterval: t.ttl / 3,
			TryNextAfter:   3 * time.Second,
		})
		if err != nil {
			return nil, err
		}
		return rueidisLocker{l}, nil
	}}
}

type rueidisLocker struct{ locker rueidislock.Locker }

type rueidisHeld context.CancelFunc

// Acquire waits for the lock.
func (l rueidisLocker) Acquire(ctx context.Context, name string) (held, error) {
	_, release, err := l.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidisHeld(release), nil
}

// Release returns when the key is deleted; rueidislock does not say whether it
// was there.
func (h rueidisHeld) Release(context.Context) error {
	h()
	return nil
}

// Key is that of the one key that a majority of one needs.
func (l rueidisLocker) Key(name string) string { return "rueidislock:0:" + name }

// Close closes the client.
func (l rueidisLocker) Close() error {
	l.locker.Close()
	return nil
}
