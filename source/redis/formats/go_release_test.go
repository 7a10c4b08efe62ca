package formats_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// A lock that does its work is not released, and the request may come again when
// it does not any more.
func TestReleaseWaitsUntilTheTaskIsOver(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	for _, tt := range []struct {
		name, key, value, task string
		alive                  []command // each of them
		over                   command
		why                    string
	}{
		{
			"asynq-unique", asynqUnique, uuidToken2, "asynq:{mail}:t:" + uuidToken2,
			[]command{
				{"HSET", "asynq:{mail}:t:" + uuidToken2, "state", "pending"},
				{"HSET", "asynq:{mail}:t:" + uuidToken2, "state", "retry"},
				{"HDEL", "asynq:{mail}:t:" + uuidToken2, "state"}, // of no state that we know
				{"SET", "asynq:{mail}:t:" + uuidToken2, "no hash"},
			},
			command{"HSET", "asynq:{mail}:t:" + uuidToken2, "state", "completed"},
			"delete the task",
		},
		{
			"bullmq-dedup", dedupKey, "17", "bull:mail:17",
			[]command{
				{"HSET", "bull:mail:17", "name", "send"},
				{"HSET", "bull:mail:17", "processedOn", 1794970000000},
				{"SET", "bull:mail:17", "no hash"},
			},
			command{"HSET", "bull:mail:17", "finishedOn", 1794970000000},
			"remove the job",
		},
	} {
		do(t, c, []command{{"SET", tt.key, tt.value}, {"HSET", tt.task, "msg", "x"}})
		s, r := seen(t, c, tt.key, "req-1")
		release := plan(t, s, r)
		for _, alive := range tt.alive {
			if alive[0] == "SET" {
				do(t, c, []command{{"DEL", tt.task}})
			}
			do(t, c, []command{alive})
			reply, err := c.Eval(t.Context(), release.Script, release.Keys, release.Args...).Result()
			if err == nil || alive[0] != "SET" && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%s after %v: reply %v, %v, want an error that says to %s", tt.name, alive, reply, err, tt.why)
			}
			if err != nil {
				// What follows is the script's hash, which may have the value in it.
				if text, _, _ := strings.Cut(err.Error(), " script: "); strings.Contains(text, tt.value) {
					t.Errorf("%s: the error tells the value: %v", tt.name, err)
				}
			}
			if !exists(t, c, tt.key) || exists(t, c, release.Keys[1]) {
				t.Errorf("%s after %v: the lock was touched or the request recorded", tt.name, alive)
			}
		}
		do(t, c, []command{{"DEL", tt.task}, tt.over})
		wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
		if exists(t, c, tt.key) {
			t.Errorf("%s: the lock is still there", tt.name)
		}
	}
}

// What go-redislock's own scripts do after a release: its old holder is not let
// in again by its counter, and who waits for a fair lock is the next.
func TestGoRedisLockAfterARelease(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	// As lua/reentrantLock.lua and lua/fairLock.lua do it, in fewer words.
	reenter := redis.NewScript(`local n = KEYS[1] .. ':count:' .. ARGV[1]
		if tonumber(redis.call('GET', n) or '0') > 0 then redis.call('INCR', n) return 1 end
		return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 5000) and 1 or 0`)
	queue := redis.NewScript(`redis.call('ZADD', KEYS[1] .. ':queue', 'NX', ARGV[2], ARGV[1])
		if redis.call('ZRANGE', KEYS[1] .. ':queue', 0, 0)[1] ~= ARGV[1] then return 0 end
		return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 5000) and 1 or 0`)

	plain := scripts[slices.IndexFunc(scripts, func(s script) bool { return s.key == "{order}" })]
	do(t, c, plain.take)
	s, r := seen(t, c, "{order}", "req-1")
	wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	do(t, c, []command{{"SET", "{order}", goToken2, "PX", 5000}}) // the next holder
	if n, err := reenter.Run(t.Context(), c, []string{"{order}"}, goToken).Int(); err != nil || n != 0 {
		t.Errorf("the old holder gets %d, %v, want to be refused", n, err)
	}

	for id, want := range map[string]int{"req-1": 1} {
		if n, err := queue.Run(t.Context(), c, []string{"{ticket}"}, id, 1).Int(); err != nil || n != want {
			t.Fatalf("%s gets %d, %v, want %d", id, n, err, want)
		}
	}
	if n := queue.Run(t.Context(), c, []string{"{ticket}"}, "req-2", 2).Val(); n != int64(0) {
		t.Fatalf("req-2 gets %v before its turn", n)
	}
	s, r = seen(t, c, "{ticket}", "req-2")
	wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	if n := queue.Run(t.Context(), c, []string{"{ticket}"}, "req-2", 2).Val(); n != int64(1) {
		t.Errorf("req-2 gets %v, want the lock", n)
	}
}

// What the server refuses, it refuses while the lock is still there.
func TestGoRedisLockWithoutPermission(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t, testredis.WithACL(
		"nocounter on >pw ~{order} ~{order}:queue ~locksteward:* &* +@all", "noqueue on >pw ~{ticket} ~{ticket}:count:* ~locksteward:* &* +@all",
		"nozrem on >pw ~* &* +@all -zrem",
	))
	c := server.Client(t)
	for key, users := range map[string][]string{"{order}": {"nocounter"}, "{ticket}": {"noqueue", "nozrem"}} {
		lock := scripts[slices.IndexFunc(scripts, func(s script) bool { return s.key == key })]
		do(t, c, lock.take)
		s, r := seen(t, c, key, "req-1")
		release := plan(t, s, r)
		for _, user := range users {
			reply, err := server.ClientAs(t, user, "pw").Eval(t.Context(), release.Script, release.Keys, release.Args...).Result()
			if err == nil || !exists(t, c, key) || exists(t, c, release.Keys[1]) {
				t.Errorf("%s without %s: reply %v, %v; the lock is there %t, recorded %t", key, user, reply, err, exists(t, c, key), exists(t, c, release.Keys[1]))
			}
		}
		wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
	}
}

// All keys that a script touches are where the lock is, on a Cluster too.
func TestGoAndNodeScriptsOnACluster(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t).Client(t)
	for _, sc := range slices.Concat(golangScripts, nodeScripts) {
		if strings.HasPrefix(sc.key, "bull:") {
			continue // BullMQ wants its prefix in braces there
		}
		do(t, c, sc.take)
		s, r := seen(t, c, sc.key, "req-1")
		t.Log(sc.format, sc.key)
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	}
}

func TestGoAndNodeRefusals(t *testing.T) {
	t.Parallel()
	wantRefusals(t, map[string]string{
		"asynq-lease/two-tasks":                 "take back a lease that ran out within 90 seconds",
		"go-redislock-rw/two-readers":           "2 read locks are held in this one key",
		"redis-semaphore-semaphore/two-holders": "2 hold it together",
	})
}
