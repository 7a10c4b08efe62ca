package testredis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
)

// RestlessHolder takes, renews, releases and takes again the lock at Key without a
// pause, and knows which of its holds somebody else ended.
type RestlessHolder struct {
	Client *redis.Client
	Key    string
	Next   func() string // the value of the next acquisition
	Calm   int           // how many times slower it is; 0: once
	TTL    time.Duration // of its last acquisition; the next one is longer

	Forced []Ended // valid when Run has returned
	Holds  int
}

// Ended is a hold as it stood when it was found gone.
type Ended struct {
	Digest   string
	ExpireAt int64
}

// dropLock is the holder's own release: compare and delete.
var dropLock = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// renewLock prolongs and tells the new expiry; 0 when the lock is gone.
var renewLock = redis.NewScript(ExpiryLua + `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2]) return expiry(KEYS[1])`)

// takeLock takes the lock and tells its expiry; 0 when it is held.
var takeLock = redis.NewScript(ExpiryLua + `if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return expiry(KEYS[1])`)

// Run holds the lock again and again until ctx ends. Digests are made with digest.
func (h *RestlessHolder) Run(ctx context.Context, digest locksteward.DigestKey) error {
	for ctx.Err() == nil {
		if err := h.hold(context.WithoutCancel(ctx), digest); err != nil {
			return err
		}
	}
	return nil
}

// hold is one acquisition with up to three renewals. Each TTL is another, so
// that no two holds have the same expiry by chance.
func (h *RestlessHolder) hold(ctx context.Context, digest locksteward.DigestKey) error {
	value, keys := h.Next(), []string{h.Key}
	lease := func() int64 { h.TTL += 17 * time.Millisecond; return h.TTL.Milliseconds() }
	at, err := takeLock.Run(ctx, h.Client, keys, value, lease()).Int64()
	if err != nil || at == 0 {
		return errors.Join(err, fmt.Errorf("take %s: held by nobody we know: %d", h.Key, at))
	}
	h.Holds++
	// An act takes about twenty round trips: some holds end within it, some
	// outlive it.
	calm := max(1, h.Calm)
	for range calm * []int{0, 4, 30, 60}[rand.IntN(4)] {
		if rand.IntN(20*calm) > 0 {
			if err := h.Client.Ping(ctx).Err(); err != nil { // some time goes by
				return err
			}
			continue
		}
		later, err := renewLock.Run(ctx, h.Client, keys, value, lease()).Int64()
		if err != nil {
			return err
		}
		if later == 0 {
			h.Forced = append(h.Forced, Ended{digest.Value([]byte(value)), at})
			return nil
		}
		at = later
	}
	n, err := dropLock.Run(ctx, h.Client, keys, value).Int64()
	if err != nil {
		return err
	}
	if n == 0 {
		h.Forced = append(h.Forced, Ended{digest.Value([]byte(value)), at})
	}
	return nil
}
