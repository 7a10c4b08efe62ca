package live_test

import (
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/locksteward/locksteward"
)

var redsyncWants = wants{
	key: "redsync:lock:42", typ: "string", format: "redsync",
	confidence: locksteward.ConfidenceMedium, identity: locksteward.IdentityStrong, ttl: 8 * time.Second,
}

func TestRedsync(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	rs := redsync.New(goredis.NewPool(l.client))
	holder := rs.NewMutex(redsyncWants.key)
	must(t, holder.LockContext(t.Context()))
	l.check(t, redsyncWants)

	waiter := rs.NewMutex(redsyncWants.key, redsync.WithTries(1000)) // it tries again after 50 to 250 ms
	got := make(chan error, 1)
	l.tries(t, "set", func() { go func() { got <- waiter.LockContext(t.Context()) }() })
	freed := l.free(t, redsyncWants.key)
	must(t, gets(t, freed, 2*time.Second, got))

	if ok, err := holder.UnlockContext(t.Context()); ok || err == nil {
		t.Errorf("the old holder's Unlock = %t, %v, want an error", ok, err)
	}
	if ok, err := waiter.UnlockContext(t.Context()); !ok || err != nil {
		t.Errorf("the waiter's Unlock = %t, %v: its hold was touched", ok, err)
	}
}

// One server of a quorum does not free the lock: each has to be released.
func TestRedsyncQuorum(t *testing.T) {
	t.Parallel()
	labs := []lab{newLab(t), newLab(t), newLab(t)}
	rs := redsync.New(goredis.NewPool(labs[0].client), goredis.NewPool(labs[1].client), goredis.NewPool(labs[2].client))
	holder := rs.NewMutex(redsyncWants.key)
	must(t, holder.LockContext(t.Context()))
	next := rs.NewMutex(redsyncWants.key, redsync.WithTries(1))
	for i, l := range labs[:2] {
		l.check(t, redsyncWants)
		if err := next.LockContext(t.Context()); err == nil {
			t.Fatalf("the lock is free after %d releases of 3, want it held", i)
		}
		l.free(t, redsyncWants.key)
	}
	must(t, next.LockContext(t.Context()))
	if ok, err := next.UnlockContext(t.Context()); !ok || err != nil {
		t.Errorf("the next holder's Unlock = %t, %v", ok, err)
	}
}

// What the page warns of: a holder that may set the key when it extends takes
// the lock back.
func TestRedsyncComesBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	rs := redsync.New(goredis.NewPool(l.client))
	for name, tt := range map[string]struct {
		options []redsync.Option
		back    bool
	}{
		"lock:plain": {nil, false},
		"lock:setnx": {[]redsync.Option{redsync.WithSetNXOnExtend()}, true},
	} {
		holder := rs.NewMutex(name, tt.options...)
		must(t, holder.LockContext(t.Context()))
		l.free(t, name)
		ok, err := holder.ExtendContext(t.Context())
		if ok != tt.back || l.client.Exists(t.Context(), name).Val() == 1 != tt.back {
			t.Errorf("%s: Extend after the release = %t, %v, want %t", name, ok, err, tt.back)
		}
	}
}
