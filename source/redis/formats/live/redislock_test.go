package live_test

import (
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"

	"github.com/locksteward/locksteward"
)

func TestRedislock(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	client := redislock.New(l.client)
	holder, err := client.Obtain(t.Context(), "order-lock", time.Minute, &redislock.Options{Metadata: "web-1:4711"})
	must(t, err)
	l.check(t, wants{
		key: "order-lock", typ: "string", format: "bsm-redislock",
		confidence: locksteward.ConfidenceMedium, identity: locksteward.IdentityStrong,
		holder: locksteward.Holder{Host: "web-1", PID: 4711}, ttl: time.Minute,
	})

	type answer struct {
		lock *redislock.Lock
		err  error
	}
	got := make(chan answer, 1)
	l.tries(t, "evalsha", func() {
		go func() {
			lock, err := client.Obtain(t.Context(), "order-lock", time.Minute, &redislock.Options{RetryStrategy: redislock.LinearBackoff(20 * time.Millisecond)})
			got <- answer{lock, err}
		}()
	})
	freed := l.free(t, "order-lock")
	next := gets(t, freed, time.Second, got)
	must(t, next.err)
	if err := holder.Refresh(t.Context(), time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("the old holder's Refresh = %v, want %v", err, redislock.ErrNotObtained)
	}
	if err := holder.Release(t.Context()); !errors.Is(err, redislock.ErrLockNotHeld) {
		t.Errorf("the old holder's Release = %v, want %v", err, redislock.ErrLockNotHeld)
	}
	must(t, next.lock.Release(t.Context()))
}

// Several keys of one ObtainMulti are several locks of one value: each has to be
// released, and after one of them the holder can release none any more.
func TestRedislockMulti(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	client := redislock.New(l.client)
	keys := []string{"redislock:lock:a", "redislock:lock:b"}
	holder, err := client.ObtainMulti(t.Context(), keys, time.Minute, nil)
	must(t, err)
	w := wants{
		typ: "string", format: "bsm-redislock",
		confidence: locksteward.ConfidenceMedium, identity: locksteward.IdentityStrong, ttl: time.Minute,
	}
	var digests []string
	for _, key := range keys {
		w.key = key
		digests = append(digests, l.check(t, w).TokenDigest)
	}
	if digests[0] != digests[1] || digests[0] == "" {
		t.Errorf("digests = %q, want the same one twice", digests)
	}

	l.free(t, keys[0])
	if err := holder.Release(t.Context()); !errors.Is(err, redislock.ErrLockNotHeld) {
		t.Errorf("Release with one key gone = %v, want %v", err, redislock.ErrLockNotHeld)
	}
	if _, err := client.ObtainMulti(t.Context(), keys, time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("ObtainMulti with one key left = %v, want %v", err, redislock.ErrNotObtained)
	}
	l.free(t, keys[1])
	next, err := client.ObtainMulti(t.Context(), keys, time.Minute, nil)
	must(t, err)
	must(t, next.Release(t.Context()))
}
