// Package lockuser is a user of the lock library for demonstrations and tests
// that need a process to stop or to kill.
package lockuser

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
)

// App is how such a user names itself in metadata.
const App = "lockuser"

// releaseTimeout bounds the release at the end of [Hold].
const releaseTimeout = 5 * time.Second

// Hold takes the lock key on the server at url (redis://, rediss:// or unix://),
// waiting for it if need be, holds it until ctx ends, and releases it. It prints
// nothing. nil means that it was released; an error is that of the acquire, or
// a loss (lock.ErrLost) as soon as it is known.
func Hold(ctx context.Context, url, key string, lease lock.Lease) error {
	opt, err := redis.ParseURL(url)
	if err != nil {
		// The parser's own error repeats the URL, and that may have a password.
		return errors.New("hold lock: the URL cannot be parsed (hint: redis://[user:password@]host:port/db, rediss:// or unix:///path)")
	}
	rdb := redis.NewClient(opt)
	defer rdb.Close() //nolint:errcheck // Nothing is buffered in it.
	return HoldOn(ctx, rdb, lock.Options{App: App}, key, lease, func() {})
}

// HoldOn is [Hold] on a client and with options of the caller's choice; it calls held
// when it has the lock.
func HoldOn(ctx context.Context, rdb redis.UniversalClient, opts lock.Options, key string, lease lock.Lease, held func()) (err error) {
	client, err := lock.New(rdb, opts)
	if err != nil {
		return fmt.Errorf("hold lock %q: %w", key, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	h, err := client.Acquire(ctx, key, lease)
	if err != nil {
		return err
	}
	held()
	<-h.Context().Done()
	lost := h.Err()
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := h.Release(done); err != nil {
		return err
	}
	return lost
}
