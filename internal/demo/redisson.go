package demo

import (
	"context"
	"crypto/rand"
	_ "embed" // for the script
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/source/redis/connect"
)

//go:embed redisson.lua
var redissonText string

// redissonFree is the message of Redisson's unlock to who waits.
const redissonFree = "0"

// redissonWatchdog is the lease of a Redisson lock that was taken without one.
const redissonWatchdog = 30 * time.Second

// redissonUser is one thread of a Java program, as far as Redis sees it.
type redissonUser struct {
	id  string // <client uuid>:<thread id>
	rdb redis.UniversalClient
}

func newRedissonUser(rdb redis.UniversalClient, thread int) redissonUser {
	return redissonUser{id: fmt.Sprintf("%s:%d", uuid(), thread), rdb: rdb}
}

func redissonChannel(key string) string { return "redisson_lock__channel:{" + key + "}" }

// try takes the lock if it is free.
func (u redissonUser) try(ctx context.Context, key string, lease time.Duration) (bool, error) {
	left, err := u.rdb.Eval(ctx, redissonText, []string{key}, lease.Milliseconds(), u.id).Int64()
	return left == -1 && err == nil, err
}

// unlock gives it back and tells who waits.
func (u redissonUser) unlock(ctx context.Context, key string) error {
	if err := u.rdb.HDel(ctx, key, u.id).Err(); err != nil {
		return err
	}
	return u.rdb.Publish(ctx, redissonChannel(key), redissonFree).Err()
}

// leaveRedissonLock takes the order's lock with a lease time, which Redisson does
// not renew, and goes away without a word.
func (p *players) leaveRedissonLock(ctx context.Context) error {
	return p.brief(ctx, "shop", func(rdb redis.UniversalClient) error {
		taken, err := newRedissonUser(rdb, 1).try(ctx, p.scene.order(), orderLease)
		if err == nil && !taken {
			err = fmt.Errorf("%q is held already", p.scene.order())
		}
		return err
	})
}

// waitForRedissonLock is the client that waits for the order's lock: subscribed,
// and quiet until somebody says that it is free. It tells the board when it was
// woken and when it has the lock, works for a moment, and unlocks.
func (p *players) waitForRedissonLock(ctx context.Context, ready chan<- struct{}) error {
	conn, rdb, err := dial(ctx, p.connect, "shop")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	user := newRedissonUser(rdb, 27)
	channel := redissonChannel(p.scene.order())
	sub := rdb.Subscribe(ctx, channel)
	defer sub.Close() //nolint:errcheck // The connection goes either way.
	if _, err := sub.Receive(ctx); err != nil {
		return fmt.Errorf("subscribe to %s: %s", channel, connect.Explain(err))
	}
	messages := sub.Channel()
	close(ready)
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, open := <-messages:
			if !open || m.Payload != redissonFree {
				continue
			}
		}
		at := time.Now()
		taken, err := user.try(ctx, p.scene.order(), redissonWatchdog)
		if err != nil {
			return fmt.Errorf("take %s after the wake-up: %s", p.scene.order(), connect.Explain(err))
		}
		if taken {
			p.board.wokeUp(woken{at: at, channel: channel, id: user.id})
			pause(ctx, time.Second)
			return user.unlock(context.WithoutCancel(ctx), p.scene.order())
		}
	}
}

// uuid returns a random UUID (version 4).
func uuid() string {
	var b [16]byte
	// crypto/rand.Read never returns an error since Go 1.24.
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
