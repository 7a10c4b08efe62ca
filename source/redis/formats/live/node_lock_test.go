package live_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// A lock that a real library of Node.js holds is recognised, released by force
// and goes to another process of it that waits; its old holder cannot release
// that one's.
func TestNodeLocks(t *testing.T) {
	t.Parallel()
	medium := wants{typ: "string", confidence: locksteward.ConfidenceMedium, identity: locksteward.IdentityLineage, ttl: 30 * time.Second}
	for _, tt := range []struct {
		library, name, format, key string
		change                     func(w *wants)
		poll                       string // how it asks for the lock
		after                      string // what its old holder finds
	}{
		{
			library: "redlock", name: "redlock:order", format: "node-redlock", key: "redlock:order", poll: "eval", after: "lost",
			change: func(w *wants) { w.identity = locksteward.IdentityStrong },
		},
		{
			library: "sesamecare-redlock", name: "redlock:order", format: "node-redlock", key: "redlock:order", poll: "evalsha", after: "lost",
			change: func(w *wants) { w.identity = locksteward.IdentityStrong },
		},
		{
			library: "mutex", name: "order", format: "redis-semaphore-mutex", key: "mutex:order", poll: "set", after: "lost",
			change: func(w *wants) {
				w.ttl, w.renews, w.holder = 10*time.Second, 8*time.Second, locksteward.Holder{Host: "web-1", PID: 4711}
			},
		},
		{
			library: "semaphore", name: "printer", format: "redis-semaphore-semaphore", key: "semaphore:printer", poll: "evalsha", after: "lost",
			change: func(w *wants) {
				w.typ, w.ttl, w.renews, w.count, w.confidence = "zset", 10*time.Second, 8*time.Second, 2, locksteward.ConfidenceHigh
			},
		},
		{library: "ioredis-lock", name: "ioredis-lock:order", format: "ioredis-lock", key: "ioredis-lock:order", poll: "set", after: "lost"},
		{library: "node-redis-lock", name: "order", format: "node-redis-lock", key: "node-redis-lock:order", poll: "evalsha", after: "lost"},
		// Its release compares nothing but its own clock: what its page warns of.
		{library: "redis-lock", name: "order", format: "errorception-redis-lock", key: "lock.order", poll: "set", after: "released"},
	} {
		t.Run(tt.library, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			holder := node(t, "lock.js", tt.library, l.port(), tt.name)
			holder.says("waiting")
			holder.says("held")
			w := medium
			w.key, w.format = tt.key, tt.format
			if tt.change != nil {
				tt.change(&w)
			}
			l.check(t, w)

			var waiter *worker
			l.tries(t, tt.poll, func() { waiter = node(t, "lock.js", tt.library, l.port(), tt.name) })
			waiter.says("waiting")
			freed := l.free(t, tt.key)
			if got := gets(t, freed, 2*time.Second, waiter.lines); got != "held" {
				t.Fatalf("the waiter says %q, want held", got)
			}
			before := l.client.Dump(t.Context(), tt.key).Val()
			holder.tell("release")
			holder.says(tt.after)
			if own := l.client.Dump(t.Context(), tt.key).Val() == before; own != (tt.after == "lost") {
				t.Errorf("the waiter's hold stands as it was: %t, after the old holder's release %s", own, tt.after)
			}
		})
	}
}

// A dead worker's job goes to a live one as soon as its lock is freed, by the
// next two looks for stalled jobs; else it would be after 30 s.
func TestNodeQueues(t *testing.T) {
	t.Parallel()
	for library, w := range map[string]wants{
		"bullmq": {format: "bullmq-job", identity: locksteward.IdentityStrong},
		"bull":   {format: "bull-job", identity: locksteward.IdentityLineage},
	} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			dead := node(t, "queue.js", library, l.port())
			dead.says("waiting")
			node(t, "queue.js", library, l.port(), "add").says("added 1")
			dead.says("held 1")
			dead.kill()

			w.key, w.typ, w.confidence = "bull:mail:1:lock", "string", locksteward.ConfidenceHigh
			w.ttl, w.renews = 30*time.Second, 15*time.Second
			if library == "bullmq" {
				w.holder = locksteward.Holder{Instance: "worker " + l.client.Get(t.Context(), w.key).Val()[:8]}
			}
			l.check(t, w)
			live := node(t, "queue.js", library, l.port())
			live.says("waiting")
			freed := l.free(t, w.key)
			if got := gets(t, freed, 5*time.Second, live.lines); got != "held 1" {
				t.Fatalf("the live worker says %q, want the job", got)
			}
			for _, lock := range l.sweep(t) {
				if lock.Key != w.key && lock.Library != "bullmq-dedup" {
					t.Errorf("%q is listed as a %s lock", lock.Key, lock.Library)
				}
			}
		})
	}
}

// A deduplication key is freed when its job is over or lost, not before.
func TestNodeDeduplication(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	node(t, "queue.js", "bullmq", l.port(), "add").says("added 1")
	const key = "bull:mail:de:invoice-7"
	l.check(t, wants{
		key: key, typ: "string", format: "bullmq-dedup",
		confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityNone,
	})
	l.refused(t, key, "its job is still to be done")
	node(t, "queue.js", "bullmq", l.port(), "add").says("added 1") // kept away: the first one's id

	must(t, l.client.Del(t.Context(), "bull:mail:1").Err())
	l.free(t, key)
	node(t, "queue.js", "bullmq", l.port(), "add").says("added 3")
}
