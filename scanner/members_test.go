package scanner_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// Sorted sets, sets and lists have members, and their digest tells one set of
// holders from the next, whatever their renewals did.
func TestMembersAreRead(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	const id, id2 = "WEB_01_4711_0f8fad5bd9cb469fa16570867728950e", "WEB_02_17_9f86d081884c7d659a2feaa0c55ad015"
	must(t, c.ZAdd(ctx, "lock:tickets", redis.Z{Member: id, Score: 1794970030000}, redis.Z{Member: id2, Score: 1794970031000}).Err())
	must(t, c.PExpire(ctx, "lock:tickets", time.Minute).Err())
	must(t, c.SAdd(ctx, "books.readers", id).Err())
	must(t, c.PExpire(ctx, "books.readers", time.Minute).Err())
	permit := "\x00\xff\x03\xc8\x11\x04\x09\xfa\x80!M\x01\x02c\xfe\x1f"
	must(t, c.ZAdd(ctx, "{upload}:timeout", redis.Z{Member: permit, Score: 922337203685477}).Err())
	must(t, c.RPush(ctx, "lock:list", "b", "a").Err())

	s := fast(srv.URL()).build(t)
	first := sweep(t, s)
	tickets := find(t, first.Locks, "lock:tickets")
	if tickets.Library != "distributedlock-semaphore" || tickets.Count != 2 || tickets.Size != 2 || tickets.TokenDigest == "" {
		t.Errorf("tickets: %+v", tickets.Observation)
	}
	readers := find(t, first.Locks, "books.readers")
	if readers.Library != "distributedlock-readers" || readers.Holder.Host != "WEB_01" || readers.Holder.PID != 4711 {
		t.Errorf("readers: %+v", readers.Observation)
	}
	permits := find(t, first.Locks, "{upload}:timeout")
	if permits.Library != "redisson-permit-semaphore" || permits.Class != "default" || permits.Kind != locksteward.KindLock {
		t.Errorf("permits: %+v", permits.Observation)
	}

	// Renewed: the scores moved and with them the order of the members.
	must(t, c.ZAdd(ctx, "lock:tickets", redis.Z{Member: id, Score: 1794970099000}).Err())
	must(t, c.PExpire(ctx, "lock:tickets", 2*time.Minute).Err())
	again := sweep(t, s)
	if l := find(t, again.Locks, "lock:tickets"); !locksteward.SameHold(l.Observation, tickets.Observation) || l.History.Renewals != 1 {
		t.Errorf("renewed tickets: %+v, %d renewals", l.Observation, l.History.Renewals)
	}
	rechecked, err := s.Recheck(ctx, again.Locks)
	if err != nil || len(rechecked.Locks) != len(again.Locks) || len(rechecked.Endings) > 0 {
		t.Errorf("recheck: %q, %+v, %v", names(rechecked.Locks), rechecked.Endings, err)
	}

	// Without an expiry the scores are all that reports a renewal.
	must(t, c.ZAdd(ctx, "{upload}:timeout", redis.Z{Member: permit, Score: 1794970030000}).Err())
	must(t, c.ZRem(ctx, "lock:tickets", id2).Err())
	must(t, c.SAdd(ctx, "books.readers", id2).Err())
	third := sweep(t, s)
	if len(third.Endings) != 3 {
		t.Errorf("endings %+v, want of all three", third.Endings)
	}
}

// Queue and fence beside a Redisson lock tell what it is and who waits.
func TestKeysBesideRedissonLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("narrow on >pw %R~lock:order* &* +@all"))
	c := srv.Client(t)
	ctx := t.Context()
	holder := "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37"
	for _, key := range []string{"lock:order:plain", "lock:order:fair", "lock:order:fenced"} {
		must(t, c.HSet(ctx, key, holder, 1).Err())
		must(t, c.PExpire(ctx, key, time.Minute).Err())
	}
	must(t, c.RPush(ctx, "redisson_lock_queue:{lock:order:fair}", "a", "b").Err())
	must(t, c.Set(ctx, "redisson_lock_token:{lock:order:fenced}", "17", 0).Err())
	must(t, c.Set(ctx, "redisson_lock_queue:{lock:order:plain}", "not a list", 0).Err())
	r := fast(srv.URL())
	got := sweep(t, r.build(t))
	if l := find(t, got.Locks, "lock:order:fair"); l.Library != "redisson-fair" || l.Waiters != 2 {
		t.Errorf("fair: %+v", l.Observation)
	}
	if l := find(t, got.Locks, "lock:order:fenced"); l.Library != "redisson-fenced" || l.Fence != 17 {
		t.Errorf("fenced: %+v", l.Observation)
	}
	if l := find(t, got.Locks, "lock:order:plain"); l.Library != "redisson" || l.Waiters != -1 {
		t.Errorf("plain: %+v", l.Observation)
	}

	// A scanner that may not read them goes on, and says what it misses.
	r.connect.Username, r.connect.Password = "narrow", locksteward.Secret("pw")
	s := r.build(t)
	got = sweep(t, s)
	if l := find(t, got.Locks, "lock:order:fair"); l.Library != "redisson" {
		t.Errorf("fair, with less rights: %+v", l.Observation)
	}
}

// A key that is another type at every look disturbs nothing: each look sees one
// of them whole, or none.
// fault: 51
func TestTypesThatChangeUnderTheSweep(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	other := srv.Client(t)
	const key, id = "lock:flip", "WEB_01_4711_0f8fad5bd9cb469fa16570867728950e"
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, write := range [][]any{
				{"set", key, id}, {"hset", key, "mode", "read", "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37", 1}, {"zadd", key, 4102000000000, id}, {"sadd", key, id}, {"rpush", key, "1"},
			} {
				_, err := other.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Del(t.Context(), key)
					p.Do(t.Context(), write...)
					p.Rename(t.Context(), key, key+":away")
					p.Rename(t.Context(), key+":away", key)
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				for range 20 { // about as long as a look takes
					other.Ping(t.Context())
				}
			}
		}
	})
	s := fast(srv.URL()).build(t)
	want := map[string]string{"string": "distributedlock-mutex", "hash": "redisson-rw-read", "zset": "distributedlock-semaphore", "set": "unknown", "list": "unknown"}
	seen := map[string]bool{}
	testredis.Eventually(t, 30*time.Second, func() bool {
		for _, l := range sweep(t, s).Locks {
			if want[l.Type] != l.Library {
				t.Errorf("a %s is %s, want %s", l.Type, l.Library, want[l.Type])
			}
			seen[l.Type] = true
		}
		return seen["string"] && seen["hash"] && seen["zset"]
	}, "not every type is seen")
	stop()
	wg.Wait()
}
