package release_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
)

// A fair lock is released with its queue: the releasing user needs its keys, and
// says so while the lock still stands.
func TestReleaseOfAFairLockWakesTheFirstInItsQueue(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key, first := "lock:order:fair", "0f8fad5b-d9cb-469f-a165-70867728950e:5"
	e.do(t, "hset", key, redissonField, "1")
	e.do(t, "pexpire", key, minute)
	e.do(t, "rpush", "redisson_lock_queue:{"+key+"}", first)
	e.do(t, "zadd", "redisson_lock_timeout:{"+key+"}", "4102000000000", first)
	waiter := e.rdb.Subscribe(t.Context(), "redisson_lock__channel:{"+key+"}:"+first)
	defer waiter.Close()
	if _, err := waiter.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}

	r := e.request(t, ana, key)
	if r.Evidence.Library != "redisson-fair" {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestFailed)
	if !strings.Contains(r.Outcome, "docs/libraries/redisson-fair.md") || !e.exists(t, key) {
		t.Errorf("%q, still there %t, want the page and the lock", r.Outcome, e.exists(t, key))
	}

	e.do(t, "acl", "setuser", "releaser", "~redisson_lock_queue:*", "~redisson_lock_timeout:*", "~redisson_lock_token:*")
	r = e.approve(t, ben, e.request(t, ana, key))
	e.want(t, r, locksteward.RequestReleased)
	if r.WaitersWoken != 1 || e.exists(t, key) || !e.exists(t, "redisson_lock_queue:{"+key+"}") {
		t.Errorf("woken %d, still there %t, want the queue alone", r.WaitersWoken, e.exists(t, key))
	}
	if m, err := waiter.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
		t.Errorf("waiter got %v, %v", m, err)
	}
}

// Locks that are sets and sorted sets are read, compared and released.
func TestReleaseOfMembers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const id, id2 = "WEB_01_4711_0f8fad5bd9cb469fa16570867728950e", "WEB_02_17_9f86d081884c7d659a2feaa0c55ad015"
	tickets, readers := "lock:order:tickets", "lock:order:doc.readers"
	e.do(t, "zadd", tickets, "4102000000000", id)
	e.do(t, "pexpire", tickets, minute)
	e.do(t, "sadd", readers, id)
	e.do(t, "pexpire", readers, minute)

	// Another holder joined since the request: changed.
	r := e.request(t, ana, tickets)
	if r.Evidence.Library != "distributedlock-semaphore" || r.Evidence.TokenDigest == "" {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	e.do(t, "zadd", tickets, "4102000001000", id2)
	e.want(t, e.approve(t, ben, r), locksteward.RequestChanged)
	e.do(t, "zrem", tickets, id2)

	for _, key := range []string{tickets, readers} {
		e.want(t, e.approve(t, ben, e.request(t, ana, key)), locksteward.RequestReleased)
		if e.exists(t, key) {
			t.Errorf("%s is still there", key)
		}
	}
}
