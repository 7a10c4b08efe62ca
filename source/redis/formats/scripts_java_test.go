package formats_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

const (
	otherHolder = "0f8fad5b-d9cb-469f-a165-70867728950e:5"
	permit      = "\x00\xff\x03\xc8\x11\x04\x09\xfa\x80!M\x01\x02c\xfe\x1f"
	permit2     = "\x01\xff\x03\xc8\x11\x04\x09\xfa\x80!M\x01\x02c\xfe\x1f"
	valueHash   = "eZ9Qd0yv2H0uW1mYpKx3Rg"
	future      = symfonyEnd
	noEnd       = 922337203685477
)

// jvmScripts take locks with the commands of the libraries' own scripts.
var jvmScripts = []script{
	{
		format: "redisson", key: "stock",
		take:    []command{{"HINCRBY", "stock", redissonHolder, 1}, {"PEXPIRE", "stock", 30000}},
		another: []command{{"HDEL", "stock", redissonHolder}, {"HSET", "stock", otherHolder, 1}},
	},
	{
		format: "redisson-fair", key: "fair",
		take: []command{
			{"DEL", "redisson_lock_queue:{fair}", "redisson_lock_timeout:{fair}"},
			{"HINCRBY", "fair", redissonHolder, 1},
			{"PEXPIRE", "fair", 30000},
			{"RPUSH", "redisson_lock_queue:{fair}", otherHolder + "1", otherHolder + "2"},
			{"ZADD", "redisson_lock_timeout:{fair}", 1700000000000, otherHolder + "1", future, otherHolder + "2"},
		},
		another: []command{{"HINCRBY", "fair", redissonHolder, 1}},
		left:    []string{"redisson_lock_queue:{fair}", "redisson_lock_timeout:{fair}"}, // with the one who waits
	},
	{
		format: "redisson-fenced", key: "fenced",
		take:    []command{{"HINCRBY", "fenced", redissonHolder, 1}, {"PEXPIRE", "fenced", 30000}, {"INCR", "redisson_lock_token:{fenced}"}},
		another: []command{{"INCR", "redisson_lock_token:{fenced}"}}, // released and taken again by the same thread
		left:    []string{"redisson_lock_token:{fenced}"},
	},
	{
		format: "redisson-rw-read", key: "rw:read",
		take: []command{
			{"HSET", "rw:read", "mode", "read", redissonHolder, 2},
			{"SET", "{rw:read}:" + redissonHolder + ":rwlock_timeout:1", 1, "PX", 30000},
			{"SET", "{rw:read}:" + redissonHolder + ":rwlock_timeout:2", 1, "PX", 30000},
			{"PEXPIRE", "rw:read", 30000},
		},
		another: []command{{"HINCRBY", "rw:read", redissonHolder, 1}},
		left:    []string{},
	},
	{
		format: "redisson-rw-write", key: "rw:write",
		take: []command{
			{"HSET", "rw:write", "mode", "write", redissonHolder + ":write", 1, redissonHolder, 1},
			{"SET", "{rw:write}:" + redissonHolder + ":rwlock_timeout:1", 1, "PX", 30000},
			{"PEXPIRE", "rw:write", 30000},
		},
		another: []command{{"HINCRBY", "rw:write", redissonHolder + ":write", 1}},
	},
	{
		format: "redisson-faster-multilock", key: "class_100",
		take: []command{
			{"HSET", "class_100", valueHash, redissonHolder, valueHash + ":" + redissonHolder + ":expire_time", 1794970030000, valueHash + ":" + redissonHolder + ":lock_count", 1},
			{"PEXPIRE", "class_100", 30000},
		},
		another: []command{{"HSET", "class_100", valueHash + ":" + redissonHolder + ":expire_time", 1794970040000}},
	},
	{
		format: "redisson-permit-semaphore", key: "{upload}:timeout",
		take:    []command{{"SET", "upload", 4}, {"ZADD", "{upload}:timeout", noEnd, permit}},
		another: []command{{"ZADD", "{upload}:timeout", future, permit}},
		left:    []string{"upload"},
	},
	set("shedlock", "job-lock:default:report", "ADDED:2026-11-21T03:00:00.123Z@batch-7:"+uuidToken, "ADDED:2026-11-21T03:00:00.124Z@batch-7:"+uuidToken2, 30000),
	set("spring-integration", "spring-registry:job", uuidToken, uuidToken2, 60000),
	set("redlock4j", "lock:redlock4j", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "8f86d081884c7d659a2feaa0c55ad015a3bf4f1b", 30000),
}

const (
	ticket  = "WEB_01_4711_0f8fad5bd9cb469fa16570867728950e"
	ticket2 = "WEB_01_4711_9f86d081884c7d659a2feaa0c55ad015"
)

var dotnetScripts = []script{
	set("hangfire", "{hangfire}:queue:default:dequeued:lock", uuidToken, uuidToken2, 30000),
	set("redlock-net", "redlock:net", uuidToken, uuidToken2, 30000),
	set("distributedlock-mutex", "invoice.writer", ticket, ticket2, 30000),
	{
		format: "distributedlock-readers", key: "invoice.readers",
		take:    []command{{"SADD", "invoice.readers", ticket}, {"PEXPIRE", "invoice.readers", 30000}},
		another: []command{{"SADD", "invoice.readers", ticket2}, {"SREM", "invoice.readers", ticket}},
	},
	{
		format: "distributedlock-semaphore", key: "import",
		take:    []command{{"ZADD", "import", future, ticket}, {"PEXPIRE", "import", 90000}},
		another: []command{{"ZADD", "import", future + 1000, ticket}}, // renewed, but for the key's own expiry
	},
}

func scriptOf(name string) script {
	return scripts[slices.IndexFunc(scripts, func(s script) bool { return s.format == name })]
}

// Each kind wakes its waiters on its own channel with its own message, plain and
// sharded.
func TestReleaseWakesWaitersOfEachRedissonKind(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		for name, tt := range map[string]struct{ channel, message string }{
			"redisson":                  {"redisson_lock__channel:{stock}", "0"},
			"redisson-fair":             {"redisson_lock__channel:{fair}:" + otherHolder + "2", "0"},
			"redisson-fenced":           {"redisson_lock__channel:{fenced}", "0"},
			"redisson-rw-read":          {"redisson_rwlock:{rw:read}", "0"},
			"redisson-rw-write":         {"redisson_rwlock:{rw:write}", "1"},
			"redisson-faster-multilock": {"redisson_lock__channel:{class_100}", "0"},
			"redisson-permit-semaphore": {"redisson_sc:{upload}", "5"},
			"spring-integration":        {"spring-registry-channel:spring-registry:job", "spring-registry:job"},
		} {
			sc := scriptOf(name)
			do(t, c, sc.take)
			plain := listener(t, c, false, tt.channel)
			s, r := look(t, c, sc.key)
			if d := formats.Recognise(s); d.Format != name {
				t.Fatalf("recognised as %q, want %q", d.Format, name)
			}
			wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
			t.Log(name)
			wantMessage(t, plain, tt.message)

			do(t, c, []command{{"DEL", sc.key}})
			if name == "redisson-permit-semaphore" {
				do(t, c, []command{{"SET", "upload", 4}})
			}
			if name == "spring-integration" {
				continue // its channel has another slot than its key; it knows no sharded ones
			}
			do(t, c, sc.take)
			sharded := listener(t, c, true, tt.channel)
			s, r = look(t, c, sc.key)
			r.RequestID = "req-2"
			wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
			wantMessage(t, sharded, tt.message)
		}
	})
}

// The queue keeps those who wait; who is dead at its head goes, as the library
// itself does it.
func TestReleaseOfAFairLockKeepsTheQueue(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		ctx := t.Context()
		sc := scriptOf("redisson-fair")
		do(t, c, sc.take)
		do(t, c, []command{
			{"RPUSH", "redisson_lock_queue:{fair}", otherHolder + "3"},
			{"ZADD", "redisson_lock_timeout:{fair}", 1700000000000, otherHolder + "3"}, // dead too, but not the head
		})
		s, r := look(t, c, sc.key)
		command := plan(t, s, r)

		// A lock that changed leaves queue and waiters alone.
		must(t, c.HIncrBy(ctx, sc.key, redissonHolder, 1).Err())
		wantReply(t, run(t, c, command), formats.OutcomeChanged, formats.OutcomeChanged)
		if n := c.LLen(ctx, "redisson_lock_queue:{fair}").Val(); n != 3 {
			t.Errorf("%d in the queue of a changed lock, want 3", n)
		}

		s, r = look(t, c, sc.key)
		r.RequestID = "req-2"
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
		if queue := c.LRange(ctx, "redisson_lock_queue:{fair}", 0, -1).Val(); !slices.Equal(queue, []string{otherHolder + "2", otherHolder + "3"}) {
			t.Errorf("queue = %q, want the head that is dead gone and no other", queue)
		}
		if dead := c.ZScore(ctx, "redisson_lock_timeout:{fair}", otherHolder+"1").Err(); !errors.Is(dead, redis.Nil) {
			t.Errorf("the deadline of the dead head: %v, want none", dead)
		}
	})
}

// Hold keys of a read lock go with it, those of other readers stay.
func TestReleaseOfAReadLockTakesItsHoldKeys(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		sc := scriptOf("redisson-rw-read")
		do(t, c, sc.take)
		foreign := "{rw:read}:" + otherHolder + ":rwlock_timeout:1"
		must(t, c.Set(t.Context(), foreign, 1, time.Minute).Err())
		s, r := look(t, c, sc.key)
		// A second reader came: what was seen is not all any more.
		must(t, c.HSet(t.Context(), sc.key, otherHolder, 1).Err())
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeChanged, formats.OutcomeChanged)
		must(t, c.HDel(t.Context(), sc.key, otherHolder).Err())
		r.RequestID = "req-2"
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
		for _, i := range []string{"1", "2"} {
			if exists(t, c, "{rw:read}:"+redissonHolder+":rwlock_timeout:"+i) {
				t.Errorf("the key of hold %s is still there", i)
			}
		}
		if !exists(t, c, foreign) {
			t.Error("another reader's key is gone")
		}
	})
}

// A permit comes back once, whatever is asked again, and never one too many.
func TestReleaseOfAPermitGivesItBackOnce(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t, testredis.WithACL("noincr on >pw ~* &* +@all -incrby", "nopub on >pw ~* &* +@all -publish", "nohset on >pw ~* &* +@all -hset", "nodel on >pw ~* &* +@all -del"))
	c := server.Client(t)
	sc := scriptOf("redisson-permit-semaphore")
	do(t, c, sc.take)
	s, r := look(t, c, sc.key)
	release := plan(t, s, r)
	for _, user := range []string{"noincr", "nopub", "nohset", "nodel"} {
		u := server.ClientAs(t, user, "pw")
		if reply, err := u.Eval(t.Context(), release.Script, release.Keys, release.Args...).Result(); err == nil {
			t.Errorf("%s: reply %v, want an error", user, reply)
		}
		if n := c.Get(t.Context(), "upload").Val(); n != "4" || !exists(t, c, sc.key) || exists(t, c, release.Keys[1]) {
			t.Errorf("%s: %s permits free, want 4 and nothing touched", user, n)
		}
	}
	// Another permit beside it: what was seen is not all any more.
	must(t, c.ZAdd(t.Context(), sc.key, redis.Z{Member: permit2, Score: noEnd}).Err())
	wantReply(t, run(t, c, release), formats.OutcomeChanged, formats.OutcomeChanged)
	must(t, c.ZRem(t.Context(), sc.key, permit2).Err())
	r.RequestID = "req-2"
	release = plan(t, s, r)
	wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
	wantReply(t, run(t, c, release), formats.OutcomeRepeated, formats.OutcomeReleased)
	if n := c.Get(t.Context(), "upload").Val(); n != "5" {
		t.Errorf("%s permits free, want 5", n)
	}
}

// Every script runs on a Cluster, where all its keys have to share a slot.
func TestFamilyScriptsOnACluster(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t).Client(t)
	for _, sc := range slices.Concat(jvmScripts, dotnetScripts) {
		do(t, c, sc.take)
		s, r := look(t, c, sc.key)
		release := plan(t, s, r)
		do(t, c, sc.another)
		if r.ExpireAt > 0 {
			must(t, c.PExpireAt(t.Context(), sc.key, time.UnixMilli(r.ExpireAt)).Err())
		}
		t.Log(sc.format)
		wantReply(t, run(t, c, release), formats.OutcomeChanged, formats.OutcomeChanged)
		do(t, c, []command{{"DEL", sc.key}})
		do(t, c, sc.take)
		s, r = look(t, c, sc.key)
		r.RequestID = "req-2"
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	}
}
