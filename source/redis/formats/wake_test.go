package formats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// listener is a subscription that is known to be in place; nil for a sharded one on
// a server before 7.0, which has none.
func listener(t *testing.T, c redis.UniversalClient, sharded bool, channel string) <-chan *redis.Message {
	t.Helper()
	subscribe := c.Subscribe
	if sharded {
		if !testredis.Version(t).AtLeast(7, 0) {
			return nil
		}
		subscribe = c.SSubscribe
	}
	sub := subscribe(t.Context(), channel)
	t.Cleanup(func() { must(t, sub.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatalf("subscribe to %q: %v", channel, err)
	}
	return sub.Channel()
}

func wantMessage(t *testing.T, messages <-chan *redis.Message, want string) {
	t.Helper()
	if messages == nil {
		return
	}
	select {
	case m := <-messages:
		if m.Payload != want {
			t.Errorf("message on %q = %q, want %q", m.Channel, m.Payload, want)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("no message, want %q", want)
	}
}

func TestReleaseWakesRedissonWaiters(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		for key, channel := range map[string]string{
			"myLock":     "redisson_lock__channel:{myLock}",
			"lock:{a}:1": "redisson_lock__channel:lock:{a}:1",
			"lock:}":     "redisson_lock__channel:{lock:}}",
			"lock:{x":    "redisson_lock__channel:lock:{x",
			"lo\x00ck\n": "redisson_lock__channel:{lo\x00ck\n}",
		} {
			take[formats.Redisson](t, c, key, time.Minute)
			s, r := look(t, c, key)
			messages := listener(t, c, false, channel)
			reply := run(t, c, plan(t, s, r))
			wantReply(t, reply, formats.OutcomeReleased, formats.OutcomeReleased)
			wantMessage(t, messages, "0")
			if _, single := c.(*redis.Client); single && reply.Woken != 1 {
				t.Errorf("%q: woken = %d, want 1", key, reply.Woken)
			}
		}
	})
}

// Redisson uses sharded channels where a Cluster has them.
func TestReleaseWakesShardedWaiters(t *testing.T) {
	testredis.Since(t, 7, 0, "sharded channels")
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		take[formats.Redisson](t, c, "myLock", time.Minute)
		s, r := look(t, c, "myLock")
		messages := listener(t, c, true, "redisson_lock__channel:{myLock}")
		reply := run(t, c, plan(t, s, r))
		wantMessage(t, messages, "0")
		if reply.Woken != 1 {
			t.Errorf("woken = %d, want 1", reply.Woken)
		}
		// The record keeps it for a reply that was lost.
		if again := run(t, c, plan(t, s, r)); again.Outcome != formats.OutcomeRepeated || again.Woken != 1 {
			t.Errorf("repeated reply = %+v, want 1 woken", again)
		}
	})
}

func TestReleaseTellsOurHolderAndWakesOurWaiters(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		for what, key := range keys {
			take[formats.Locksteward](t, c, key, time.Minute)
			s, r := look(t, c, key)
			holder := listener(t, c, false, record.InstanceKey(record.DefaultPrefix, "i1"))
			names := record.NamesOf(record.DefaultPrefix, key)
			for i, id := range []string{"W1", "W2", "W3"} {
				must(t, c.ZAdd(t.Context(), names.Queue, redis.Z{Score: float64(i), Member: id}).Err())
				must(t, c.HSet(t.Context(), names.Waiter, id, record.Waiter{Instance: "p" + id, Since: 1, Until: 1}.Encode()).Err())
			}
			plain := listener(t, c, false, record.InstanceKey(record.DefaultPrefix, "pW1"))
			sharded := listener(t, c, true, names.Wake+":pW2")
			wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
			t.Log(what)
			wantMessage(t, holder, "lost A1B2")
			wantMessage(t, plain, "turn W1 0")
			wantMessage(t, sharded, "turn W2 1")
			// What stands in the queue is not overtaken.
			m, err := record.Decode(c.Get(t.Context(), names.Hold).Val())
			if err != nil || m.Free == 0 || m.ID != "" {
				t.Errorf("metadata %+v, %v: want that the lock is free", m, err)
			}
			if ttl := c.PTTL(t.Context(), names.Hold).Val(); ttl <= 0 || ttl > record.Grace {
				t.Errorf("TTL %s", ttl)
			}
		}
	})
}

func TestNobodyIsWokenForAChangedLock(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	take[formats.Redisson](t, c, "myLock", time.Minute)
	s, r := look(t, c, "myLock")
	messages := listener(t, c, false, "redisson_lock__channel:{myLock}")
	must(t, c.HIncrBy(t.Context(), "myLock", redissonHolder, 1).Err())
	if reply := run(t, c, plan(t, s, r)); reply.Outcome != formats.OutcomeChanged || reply.Woken != 0 {
		t.Errorf("reply = %+v, want changed and nobody woken", reply)
	}
	// What comes next on the channel is ours, so nothing came before it.
	must(t, c.Publish(t.Context(), "redisson_lock__channel:{myLock}", "end of test").Err())
	wantMessage(t, messages, "end of test")
}

// The release works for a user who may not ask PEXPIRETIME (as on servers
// before 7.0, which do not have it), and still tells a renewal.
func TestReleaseWithoutPExpireTime(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t, testredis.WithACL("releaser on >pw ~* &* +@all -pexpiretime"))
	admin, releaser := server.Client(t), server.ClientAs(t, "releaser", "pw")
	if err := releaser.PExpireTime(t.Context(), "x").Err(); err == nil {
		t.Fatal("the user may ask PEXPIRETIME: the test shows nothing")
	}
	for name, takeLock := range take {
		for what, tt := range map[string]struct {
			ttl    time.Duration
			change func(key string, at int64) error
			want   formats.Outcome
		}{
			"same":           {time.Minute, nil, formats.OutcomeReleased},
			"no ttl":         {0, nil, formats.OutcomeReleased},
			"renewed":        {time.Minute, func(key string, at int64) error { return admin.Do(t.Context(), "PEXPIREAT", key, at+50).Err() }, formats.OutcomeChanged},
			"shortened":      {time.Minute, func(key string, at int64) error { return admin.Do(t.Context(), "PEXPIREAT", key, at-50).Err() }, formats.OutcomeChanged},
			"expiry removed": {time.Minute, func(key string, _ int64) error { return admin.Persist(t.Context(), key).Err() }, formats.OutcomeChanged},
			"expiry given":   {0, func(key string, _ int64) error { return admin.PExpire(t.Context(), key, time.Minute).Err() }, formats.OutcomeChanged},
			"within 2 ms":    {time.Minute, func(key string, at int64) error { return admin.Do(t.Context(), "PEXPIREAT", key, at+1).Err() }, formats.OutcomeReleased},
		} {
			key := "lock:" + name + what
			takeLock(t, admin, key, tt.ttl)
			s, r := look(t, admin, key)
			if tt.change != nil {
				must(t, tt.change(key, r.ExpireAt))
			}
			t.Log(name, what)
			wantReply(t, run(t, releaser, plan(t, s, r)), tt.want, tt.want)
			if exists(t, admin, key) != (tt.want == formats.OutcomeChanged) {
				t.Errorf("%s, %s: the lock is there: %t", name, what, exists(t, admin, key))
			}
		}
	}
}

// Whatever the server refuses, it refuses while the lock is still there, and the
// same request may run again when the permission is there.
func TestReleaseThatIsRefusedTouchesNothing(t *testing.T) {
	t.Parallel()
	denied := map[string]string{
		"del": "-del", "hset": "-hset", "pexpire": "-pexpire", "time": "-time", "publish": "-publish", "spublish": "-spublish",
		"channels": "resetchannels", "exec record": "resetkeys ~lock:* ~locksteward:hold:*", "metadata": "resetkeys ~lock:* ~locksteward:exec:*",
	}
	var users []string
	for what, rule := range denied {
		users = append(users, strings.ReplaceAll(what, " ", "-")+" on >pw ~* &* +@all "+rule)
	}
	server := testredis.Start(t, testredis.WithACL(users...))
	admin := server.Client(t)
	for what := range denied {
		if v := testredis.Version(t); what == "spublish" && !v.AtLeast(7, 0) || what == "channels" && !v.AtLeast(6, 2) {
			continue // a server without them refuses none
		}
		for name, takeLock := range take {
			wakes := name != formats.Token
			if !wakes && (what == "publish" || what == "spublish" || what == "channels") || name != formats.Locksteward && what == "metadata" {
				continue
			}
			key := "lock:" + name + ":" + what
			takeLock(t, admin, key, time.Minute)
			names := record.NamesOf(record.DefaultPrefix, key) // one waits
			must(t, admin.ZAdd(t.Context(), names.Queue, redis.Z{Member: "W1"}).Err())
			must(t, admin.HSet(t.Context(), names.Waiter, "W1", record.Waiter{Instance: "p", Until: 1}.Encode()).Err())
			before := admin.Dump(t.Context(), key).Val()
			s, r := look(t, admin, key)
			command := plan(t, s, r)
			user := server.ClientAs(t, strings.ReplaceAll(what, " ", "-"), "pw")
			reply, err := user.Eval(t.Context(), command.Script, command.Keys, command.Args...).Result()
			if err == nil {
				t.Errorf("%s without %s: reply %v, want an error", name, what, reply)
			}
			if admin.Dump(t.Context(), key).Val() != before {
				t.Errorf("%s without %s: the lock was touched", name, what)
			}
			if exists(t, admin, record.Companion(record.DefaultPrefix, record.KindExec, key)) {
				t.Errorf("%s without %s: an exec record reports what was not done", name, what)
			}
			wantReply(t, run(t, admin, command), formats.OutcomeReleased, formats.OutcomeReleased)
		}
	}
}

// A key that stands where the record would is not ours to overwrite.
func TestReleaseStopsAtAForeignExecKey(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	for name, takeLock := range take {
		key := "lock:" + name
		takeLock(t, c, key, time.Minute)
		s, r := look(t, c, key)
		command := plan(t, s, r)
		must(t, c.Set(t.Context(), command.Keys[1], "foreign", 0).Err())
		reply, err := c.Eval(t.Context(), command.Script, command.Keys, command.Args...).Result()
		if err == nil || !exists(t, c, key) || c.Get(t.Context(), command.Keys[1]).Val() != "foreign" {
			t.Errorf("%s: reply %v, %v, want an error and nothing touched", name, reply, err)
		}
	}
}

// A server that is full still lets go of a lock: that frees memory.
// fault: 42
func TestReleaseOnAFullServer(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	for name, takeLock := range take {
		takeLock(t, c, "lock:"+name, time.Minute)
		takeLock(t, c, "changed:"+name, time.Minute)
	}
	must(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for name := range take {
		s, r := look(t, c, "lock:"+name)
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
		s, r = look(t, c, "changed:"+name)
		command := plan(t, s, r)
		must(t, c.Persist(t.Context(), "changed:"+name).Err())
		wantReply(t, run(t, c, command), formats.OutcomeChanged, formats.OutcomeChanged)
	}
}
