package formats_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

const (
	timeUUID   = "c232ab00941411f0b3deb2de8f0d1c7a"
	timeUUID2  = "c232ab01941411f0b3deb2de8f0d1c7a"
	uuidToken2 = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	jobID      = "b4a577edbccf1d805744efa9"
	jobID2     = "0a4577edbccf1d805744efb1"
	digestKey  = "uniquejobs:9f86d081884c7d659a2feaa0c55ad015"
	symfony    = "ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs="
	symfony2   = "PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0="
	symfonyEnd = 4102000000000 // the end of 2099, in ms
)

type command []any

// script is one library's lock as the library's own commands take it.
type script struct {
	format  string
	key     string
	take    []command // these take the lock
	another []command // run on the lock taken: another hold, with the same expiry
	// left are the keys that stand after a release, besides the exec record.
	left []string
}

// set is a string lock with SET NX, which is how most take it.
func set(name, key, value, other string, ttl int) script {
	take := command{"SET", key, value, "NX"}
	if ttl > 0 {
		take = append(take, "PX", ttl)
	}
	return script{format: name, key: key, take: []command{take}, another: []command{{"SET", key, other, "KEEPTTL"}}}
}

var scripts = append(slices.Concat(golangScripts, nodeScripts, jvmScripts, dotnetScripts), []script{
	set("redis-py", "my-lock", timeUUID, timeUUID2, 0),
	set("redis-py", "lock:order:42", timeUUID, timeUUID2, 30000),
	set("dogpile", "_lockuser:1", timeUUID, timeUUID2, 0),
	set("celery-once", "qo_tasks.report_user-7", timeUUID, timeUUID2, 3600000),
	set("redbeat", "redbeat::lock", timeUUID, timeUUID2, 1500000),
	{
		format: "python-redis-lock", key: "lock:report",
		take:    []command{{"SET", "lock:report", "q8Zt4vN1xKp0Rw7LmB3yHs2U", "NX", "EX", 30}},
		another: []command{{"SET", "lock:report", "zZt4vN1xKp0Rw7LmB3yHs2Uq", "KEEPTTL"}},
		left:    []string{"lock-signal:report"},
	},
	set("aioredlock", "aioredlock:order", uuidToken, uuidToken2, 30000),
	set("pottery-redlock", "redlock:pottery:order", uuidToken2, "0f8fad5b-d9cb-469f-a165-70867728950f", 30000),
	set("aiocache-redlock", "main:user:7-lock", uuidToken2, "0f8fad5b-d9cb-469f-a165-70867728950f", 30000),
	set("sherlock", "sherlock_order", uuidToken2, "0f8fad5b-d9cb-469f-a165-70867728950f", 60000),
	set("redlock-py", "lock:redlock-py:order", "k3Jd92LmXz0QpR7sTbV5yB", "B3Jd92LmXz0QpR7sTbV5yk", 30000),
	set("celery-singleton", "SINGLETONLOCK_0f8fad5bd9cb469fa16570867728950e", uuidToken, uuidToken2, 0),
	set("rq-scheduler", "rq:scheduler-lock:default", "4711", "4712", 61000),
	set("sentry-lock", "l:relocation:7", "9f86d081884c4d659a2feaa0c55ad015", "9f86d081884c4d659a2feaa0c55ad016", 30000),
	set("redlock-rb", "redlock-rb:order", uuidToken2, "0f8fad5b-d9cb-469f-a165-70867728950f", 30000),
	set("redis-mutex", "RedisMutex:order", "1794970000.123456", "1794970010.123456", 0),
	set("activejob-uniqueness", "activejob_uniqueness:my_job:no_arguments", uuidToken, uuidToken2, 86400000),
	set("resque-scheduler", "resque:resque_scheduler_master_lock", "app1:99", "app2:99", 180000),
	set("gitlab-lease", "gitlab:exclusive_lease:project:1", uuidToken, uuidToken2, 30000),
	set("discourse-mutex", "default:user-create-7", "1794970000", "1794970001", 61000),
	set("laravel-lock", "laravel-database-laravel-cache-order", "aB3dE5gH7jK9mN1p", "pB3dE5gH7jK9mN1a", 0),
	set("laravel-lock", "laravel_cache_:order", `s:16:"aB3dE5gH7jK9mN1p";`, `s:16:"pB3dE5gH7jK9mN1a";`, 30000),
	set("laravel-funnel", "laravel_database_report1", "aB3dE5gH7jK9mN1pQ2rS", "SB3dE5gH7jK9mN1pQ2ra", 30000),
	{
		format: "symfony-lock", key: "invoice",
		take:    []command{{"ZADD", "invoice", symfonyEnd, symfony, symfonyEnd, "__write__"}, {"PEXPIREAT", "invoice", symfonyEnd}},
		another: []command{{"ZREM", "invoice", symfony}, {"ZADD", "invoice", symfonyEnd, symfony2}},
	},
	{
		format: "symfony-lock", key: "invoice:read", // one reader alive, one whose time is over
		take:    []command{{"ZADD", "invoice:read", symfonyEnd, symfony, 1700000000000, symfony2}, {"PEXPIREAT", "invoice:read", symfonyEnd}},
		another: []command{{"ZADD", "invoice:read", symfonyEnd - 1, symfony}},
	},
	{
		format: "sidekiq-unique-v8", key: digestKey + ":LOCKED",
		take: []command{
			{"SET", digestKey, jobID},
			{"ZADD", "uniquejobs:digests", 1794970000.5, digestKey, 1794970000.5, digestKey + ":RUN"},
			{"ZADD", "uniquejobs:expiring_digests", 1794970000.5, digestKey},
			{"HSET", digestKey + ":LOCKED", jobID, "1794970000.5"},
			{"SET", digestKey + ":INFO", "{}"},
			// The same digest while it runs is another lock.
			{"HSET", digestKey + ":RUN:LOCKED", jobID2, "1794960000.5"},
		},
		another: []command{{"HSET", digestKey + ":LOCKED", jobID, "1794970001.5"}},
		left:    []string{digestKey + ":QUEUED", digestKey + ":RUN:LOCKED", "uniquejobs:digests"},
	},
	{
		format: "sidekiq-unique-v9", key: "uniquejobs:0f8fad5bd9cb469fa16570867728950e:LOCKED",
		take: []command{
			{"HSET", "uniquejobs:0f8fad5bd9cb469fa16570867728950e:LOCKED", jobID, `{"worker":"A","time":1794970000.5}`},
			{"ZADD", "uniquejobs:digests", 1794970000.5, "uniquejobs:0f8fad5bd9cb469fa16570867728950e"},
		},
		another: []command{{"DEL", "uniquejobs:0f8fad5bd9cb469fa16570867728950e:LOCKED"}, {"HSET", "uniquejobs:0f8fad5bd9cb469fa16570867728950e:LOCKED", jobID2, `{"worker":"A","time":1794970000.5}`}},
	},
	{
		format: "ruby-redis-semaphore", key: "SEMAPHORE:printer:GRABBED",
		take:    []command{{"SET", "SEMAPHORE:printer:EXISTS", 1}, {"HSET", "SEMAPHORE:printer:GRABBED", "0", "1794970000.123456"}},
		another: []command{{"HSET", "SEMAPHORE:printer:GRABBED", "0", "1794970001.123456"}},
		left:    []string{"SEMAPHORE:printer:AVAILABLE", "SEMAPHORE:printer:EXISTS"},
	},
}...)

func do(t *testing.T, c redis.Cmdable, commands []command) {
	t.Helper()
	for _, args := range commands {
		must(t, c.(interface {
			Do(ctx context.Context, args ...any) *redis.Cmd
		}).Do(t.Context(), args...).Err())
	}
}

// seen is look for a request of that id.
func seen(t *testing.T, c redis.Cmdable, key, request string) (formats.Sample, formats.Release) {
	t.Helper()
	s, r := look(t, c, key)
	r.RequestID = request
	return s, r
}

// refusedTo runs a release as users that may not do all of it: each gets an error
// while the lock is still there, and nothing is recorded.
func refusedTo(t *testing.T, server *testredis.Server, c redis.Cmdable, release formats.Command, users ...string) {
	t.Helper()
	for _, user := range users {
		u := server.ClientAs(t, user, "pw")
		if reply, err := u.Eval(t.Context(), release.Script, release.Keys, release.Args...).Result(); err == nil {
			t.Errorf("%s: reply %v, want an error", user, reply)
		}
		if !exists(t, c, release.Keys[0]) || exists(t, c, release.Keys[1]) {
			t.Errorf("%s: the lock was touched or the request recorded", user)
		}
	}
}

// Every script removes the hold that was seen, once, and nothing else; a request
// that comes again does nothing, a hold that is another stays as it is.
func TestFamilyScripts(t *testing.T) {
	t.Parallel()
	for _, sc := range scripts {
		t.Run(sc.format+"/"+sc.key, func(t *testing.T) {
			t.Parallel()
			c := testredis.Start(t).Client(t)
			exec := record.Companion(record.DefaultPrefix, record.KindExec, sc.key)

			do(t, c, sc.take)
			s, r := seen(t, c, sc.key, "req-1")
			if d := formats.Recognise(s); d.Format != sc.format {
				t.Fatalf("recognised as %q, want %q", d.Format, sc.format)
			}
			release := plan(t, s, r)
			wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
			left, err := c.Keys(t.Context(), "*").Result()
			must(t, err)
			want := append([]string{exec}, sc.left...)
			slices.Sort(left)
			slices.Sort(want)
			if !slices.Equal(left, want) {
				t.Errorf("keys left = %q, want %q", left, want)
			}
			checkExec(t, c, sc.key, "1")
			for _, key := range sc.left { // what a library leaves for a second does not end between two looks
				must(t, c.Persist(t.Context(), key).Err())
			}

			// The next hold, and the same request again.
			do(t, c, sc.take)
			before := c.Dump(t.Context(), sc.key).Val()
			wantReply(t, run(t, c, release), formats.OutcomeRepeated, formats.OutcomeReleased)
			if c.Dump(t.Context(), sc.key).Val() != before {
				t.Error("a repeated request touched the next hold")
			}

			// Another hold with the same expiry.
			s, r = seen(t, c, sc.key, "req-2")
			release = plan(t, s, r)
			do(t, c, sc.another)
			if r.ExpireAt != locksteward.NoExpireAt {
				must(t, c.Do(t.Context(), "PEXPIREAT", sc.key, r.ExpireAt).Err())
			}
			others := dumpAll(t, c, exec)
			wantReply(t, run(t, c, release), formats.OutcomeChanged, formats.OutcomeChanged)
			if got := dumpAll(t, c, exec); !equalMaps(got, others) {
				t.Errorf("keys after a refused release = %q, want them as they were", keysOf(got))
			}

			// The same hold, renewed.
			s, r = seen(t, c, sc.key, "req-3")
			if d := formats.Recognise(s); d.Format == sc.format {
				release = plan(t, s, r)
				must(t, c.PExpire(t.Context(), sc.key, 77*time.Second).Err())
				wantReply(t, run(t, c, release), formats.OutcomeChanged, formats.OutcomeChanged)
			}

			// Gone.
			s, r = seen(t, c, sc.key, "req-4")
			release = plan(t, s, r)
			must(t, c.Del(t.Context(), sc.key).Err())
			others = dumpAll(t, c, exec)
			wantReply(t, run(t, c, release), formats.OutcomeAlreadyGone, formats.OutcomeAlreadyGone)
			if got := dumpAll(t, c, exec); !equalMaps(got, others) {
				t.Errorf("keys after the release of a lock that is gone = %q, want them as they were", keysOf(got))
			}
		})
	}
}

// dumpAll reads all keys but one, with their bytes.
func dumpAll(t *testing.T, c redis.Cmdable, but string) map[string]string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	must(t, err)
	out := map[string]string{}
	for _, key := range keys {
		if key != but {
			out[key] = c.Dump(t.Context(), key).Val()
		}
	}
	return out
}

func keysOf(m map[string]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		if a[key] != b[key] {
			return false
		}
	}
	return true
}

// blocked waits until n clients sleep in a blocking command.
func blocked(t *testing.T, c *redis.Client, n string) {
	t.Helper()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(c.Info(t.Context(), "clients").Val(), "blocked_clients:"+n+"\r\n")
	}, "nobody sleeps")
}

// Waiters that sleep on a list wake, and the next one of the library gets the lock.
func TestFamilyScriptsWakeListWaiters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		format string
		wait   command // of a waiter that sleeps, with the longest time the library gives
		want   string  // what it gets
		next   command // what the library does then, and gets the lock by
		list   string
		ends   time.Duration // of the list if nobody waits; 0: it does not
	}{
		{
			"python-redis-lock",
			command{"BLPOP", "lock-signal:report", 0},
			"[lock-signal:report 1]",
			command{"SET", "lock:report", "zZt4vN1xKp0Rw7LmB3yHs2Uq", "NX", "EX", 30},
			"lock-signal:report", time.Second,
		},
		{
			"sidekiq-unique-v8",
			command{"BLMOVE", digestKey + ":QUEUED", digestKey + ":PRIMED", "RIGHT", "LEFT", 0},
			"1",
			command{"HSETNX", digestKey + ":LOCKED", jobID2, "1794970002.5"},
			digestKey + ":QUEUED", 5 * time.Second,
		},
		{
			"ruby-redis-semaphore",
			command{"BLPOP", "SEMAPHORE:printer:AVAILABLE", 0},
			"[SEMAPHORE:printer:AVAILABLE 0]",
			command{"HSETNX", "SEMAPHORE:printer:GRABBED", "0", "1794970002.123456"},
			"SEMAPHORE:printer:AVAILABLE", 0,
		},
	} {
		t.Run(tt.format, func(t *testing.T) {
			t.Parallel()
			if tt.wait[0] == "BLMOVE" {
				testredis.Since(t, 6, 2, "BLMOVE")
			}
			c := testredis.Start(t).Client(t)
			sc := scripts[slices.IndexFunc(scripts, func(s script) bool { return s.format == tt.format })]
			do(t, c, sc.take)

			type answer struct {
				value any
				err   error
			}
			got := make(chan answer, 1)
			waiter := c.Conn()
			defer func() { must(t, waiter.Close()) }()
			go func() {
				value, err := waiter.Do(t.Context(), tt.wait...).Result()
				got <- answer{value, err}
			}()
			blocked(t, c, "1")
			s, r := seen(t, c, sc.key, "req-1")
			wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
			a := <-got
			must(t, a.err)
			if text := strings.TrimSpace(toText(a.value)); text != tt.want {
				t.Errorf("the waiter got %s, want %s", text, tt.want)
			}
			taken, err := c.Do(t.Context(), tt.next...).Result()
			if must(t, err); taken != "OK" && taken != int64(1) {
				t.Errorf("the waiter's %v = %v, want the lock", tt.next[0], taken)
			}

			// With nobody waiting the list is there for the next, as long as the library leaves it.
			do(t, c, []command{{"DEL", sc.key, tt.list}})
			do(t, c, sc.take)
			s, r = seen(t, c, sc.key, "req-2")
			wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
			if n := c.LLen(t.Context(), tt.list).Val(); n != 1 {
				t.Errorf("elements in %s = %d, want 1", tt.list, n)
			}
			ttl := c.PTTL(t.Context(), tt.list).Val()
			if tt.ends > 0 && (ttl <= 0 || ttl > tt.ends) || tt.ends == 0 && ttl > 0 {
				t.Errorf("%s lives %s, want %s", tt.list, ttl, tt.ends)
			}
		})
	}
}

func toText(value any) string {
	list, ok := value.([]any)
	if !ok {
		return value.(string)
	}
	var parts []string
	for _, v := range list {
		parts = append(parts, v.(string))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// A permit that stands in the list already is not put there a second time: its
// holder came back between the two.
func TestSemaphorePermitIsNeverDoubled(t *testing.T) {
	t.Parallel()
	const list = "SEMAPHORE:printer:AVAILABLE"
	server := testredis.Start(t, testredis.WithACL("nopush on >pw ~* &* +@all -lpush", "nohset on >pw ~* &* +@all -hset", "nolrange on >pw ~* &* +@all -lrange"))
	c := server.Client(t)
	sc := scripts[slices.IndexFunc(scripts, func(s script) bool { return s.format == "ruby-redis-semaphore" })]
	do(t, c, sc.take)
	must(t, c.PExpire(t.Context(), "SEMAPHORE:printer:EXISTS", time.Hour).Err())

	s, r := seen(t, c, sc.key, "req-1")
	release := plan(t, s, r)
	for _, user := range []string{"nopush", "nohset", "nolrange"} {
		refusedTo(t, server, c, release, user)
		if exists(t, c, list) {
			t.Errorf("%s: the permit is back", user)
		}
	}
	must(t, c.RPush(t.Context(), list, "1", "0").Err())
	wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
	if got := c.LRange(t.Context(), list, 0, -1).Val(); !slices.Equal(got, []string{"1", "0"}) {
		t.Errorf("free permits = %q, want each once", got)
	}

	// A semaphore that ends takes the list with it.
	must(t, c.Del(t.Context(), list).Err())
	do(t, c, sc.take[1:])
	s, r = seen(t, c, sc.key, "req-2")
	wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	if ttl := c.PTTL(t.Context(), list).Val(); ttl <= 59*time.Minute || ttl > time.Hour {
		t.Errorf("the list lives %s, want the hour of its semaphore", ttl)
	}
}

// What the server refuses, it refuses while the lock is still there; on a Cluster
// that is a signal list on another node.
func TestSignalThatCannotBeGivenLeavesTheLock(t *testing.T) {
	t.Parallel()
	sc := scripts[slices.IndexFunc(scripts, func(s script) bool { return s.format == "python-redis-lock" })]
	server := testredis.Start(t, testredis.WithACL("nopush on >pw ~* &* +@all -lpush", "nosignal on >pw ~lock:* ~locksteward:* &* +@all"))
	c := server.Client(t)
	do(t, c, sc.take)
	s, r := seen(t, c, sc.key, "req-1")
	release := plan(t, s, r)
	refusedTo(t, server, c, release, "nopush", "nosignal")
	wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)

	cluster := testredis.StartCluster(t).Client(t)
	for key, works := range map[string]bool{"lock:{report}": true, "lock:report": false} {
		do(t, cluster, []command{{"SET", key, "q8Zt4vN1xKp0Rw7LmB3yHs2U", "EX", 30}})
		s, r := seen(t, cluster, key, "req-1")
		release := plan(t, s, r)
		reply, err := cluster.Eval(t.Context(), release.Script, release.Keys, release.Args...).Result()
		if works != (err == nil) || exists(t, cluster, key) == works {
			t.Errorf("%s: reply %v, %v; the lock is there: %t", key, reply, err, exists(t, cluster, key))
		}
	}
}

// A server that is full still lets go of every lock.
// fault: 42
func TestFamilyScriptsOnAFullServer(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	for _, sc := range scripts {
		do(t, c, sc.take)
	}
	must(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for _, sc := range scripts {
		s, r := seen(t, c, sc.key, "req-1")
		t.Log(sc.format, sc.key)
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	}
}

// What cannot be released says why, and where the way by hand is.
func TestFamilyRefusals(t *testing.T) {
	t.Parallel()
	wantRefusals(t, map[string]string{
		"rq-maintenance/cleaning":             "ends by itself within 15 minutes",
		"huey-lock/key":                       "the same for every holder",
		"huey-lock/in-results":                "the same for every holder",
		"laravel-schedule-mutex-legacy/event": "the same for every holder",
		"sidekiq-unique-v8/two-jobs":          "2 job locks are held in this one key",
		"ruby-redis-semaphore/three":          "3 permits are held in this one key",
		"symfony-lock/two-readers":            "2 read locks are held in this one key",
	})
}

// wantRefusals checks that each fixture, by its path, is refused with the reason.
func wantRefusals(t *testing.T, reasons map[string]string) {
	t.Helper()
	fixtures := readFixtures(t)
	for path, why := range reasons {
		f, ok := fixtures["testdata/"+path+".json"]
		if !ok {
			t.Errorf("no fixture %s", path)
			continue
		}
		name, _, _ := strings.Cut(path, "/")
		d, _ := formats.Get(name)
		_, err := d.Release(f.sample(t), formats.Release{RequestID: "r", ExpireAt: 1})
		if !errors.Is(err, locksteward.ErrRefused) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "docs/libraries/"+name+".md") {
			t.Errorf("%s: %v, want a refusal with %q and the page", path, err, why)
		}
	}
}
