package scanner_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
)

// await writes records of waiters, as lock/ does.
func await(t testing.TB, c redis.Cmdable, key string, waiters map[string]string) {
	t.Helper()
	name := record.Companion(record.DefaultPrefix, record.KindWaiter, key)
	must(t, c.HSet(t.Context(), name, waiters).Err())
	must(t, c.PExpire(t.Context(), name, time.Minute).Err())
}

func TestWaitersAreRead(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	now := time.Now()
	alive, dead := now.Add(time.Hour).UnixMilli(), now.Add(-time.Hour).UnixMilli()
	since := now.Add(-time.Minute).UnixMicro()
	for i, key := range []string{"order:1", "order:2", "crowd", "quiet"} {
		take(t, c, key, record.Meta{ID: fmt.Sprint("id", i), Session: "s1", Holding: []string{"x\x00y", "z"}}, time.Minute)
	}
	await(t, c, "order:1", map[string]string{
		"w2": fmt.Sprintf("s2 i2 %d %d more words", since+5, alive), "w1": fmt.Sprintf("- - %d %d", since, alive),
		"dead": fmt.Sprintf("s3 i3 %d %d", since, dead), "bad": "nobody", "far": fmt.Sprintf("s4 i4 %d %d", int64(1)<<62, alive),
	})
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint("m", i)] = fmt.Sprintf("- - %d %d", since, alive)
	}
	await(t, c, "crowd", many)
	await(t, c, "free", map[string]string{"w9": fmt.Sprintf("s9 i9 %d %d", since, alive)})

	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "orders", Match: []string{"order:*"}}}
	s := r.build(t)
	got := sweep(t, s)
	want := func(w locksteward.Waiter, key, name, id, session, instance string, at int64) {
		t.Helper()
		if w.Target != "test" || w.Key != key || w.Class != name || w.ID != id || w.Session != session || w.Instance != instance ||
			w.Since.UnixMicro() != at || w.Until.UnixMilli() != alive {
			t.Errorf("waiter %+v", w)
		}
	}
	if len(got.Waiters) != 3 {
		t.Fatalf("waiters %+v", got.Waiters)
	}
	want(got.Waiters[0], "free", class.Default, "w9", "s9", "i9", since)
	want(got.Waiters[1], "order:1", "orders", "w1", "", "", since)
	want(got.Waiters[2], "order:1", "orders", "w2", "s2", "i2", since+5)
	// One that cannot be read waits all the same; the dead do not.
	for key, n := range map[string]int{"order:1": 4, "order:2": 0, "crowd": 65, "quiet": 0} {
		if l := find(t, got.Locks, key); l.Waiters != n {
			t.Errorf("%d wait for %s, want %d", l.Waiters, key, n)
		}
	}
	if l := find(t, got.Locks, "quiet"); l.Claim.Session != "s1" || len(l.Claim.Holding) != 2 || l.Claim.Holding[0] != "x\x00y" {
		t.Errorf("claim %+v", l.Claim)
	}

	again, err := s.Recheck(t.Context(), got.Locks)
	must(t, err)
	if len(again.Waiters) != 2 || again.Waiters[0] != got.Waiters[1] || again.Waiters[1] != got.Waiters[2] {
		t.Errorf("read directly: %+v", again.Waiters)
	}
	for key, n := range map[string]int{"order:1": 4, "order:2": 0, "crowd": 65, "quiet": 0} {
		if l := find(t, again.Locks, key); l.Waiters != n {
			t.Errorf("read directly: %d wait for %s, want %d", l.Waiters, key, n)
		}
	}
}

func TestWaitersThatMayNotBeReadAreNotNone(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	for i, key := range []string{"lock:1", "lock:2"} {
		take(t, c, key, record.Meta{ID: fmt.Sprint("id", i)}, time.Minute)
	}
	await(t, c, "lock:1", map[string]string{"w": fmt.Sprintf("s i 1 %d", time.Now().Add(time.Hour).UnixMilli())})
	must(t, c.Do(t.Context(), "ACL", "SETUSER", "scan", "on", ">pw", "+@all", "~lock:*", "~locksteward:hold:*", "~locksteward:instance:*").Err())
	r := fast(srv.URL())
	r.connect.Username, r.connect.Password = "scan", locksteward.Secret("pw")
	got := sweep(t, r.build(t))
	if a, b := find(t, got.Locks, "lock:1"), find(t, got.Locks, "lock:2"); a.Waiters != -1 || b.Waiters != 0 || len(got.Waiters) != 0 {
		t.Errorf("%d and %d wait: %+v", a.Waiters, b.Waiters, got.Waiters)
	}
}

func TestInstancesTellTheirCounts(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	beat := record.Instance{
		ID: "i1", App: "shop", Host: "web-1", PID: 7, Started: 1000, Slot: "shop-0",
		Counts: map[string]record.Counts{"orders": {Acquired: 1, Failed: 2, Contended: 3, Renewed: 4, RenewFailures: 5, Lost: 6}},
	}
	key := record.InstanceKey(record.DefaultPrefix, "i1")
	must(t, c.HSet(t.Context(), key, beat.Fields()...).Err())
	must(t, c.PExpire(t.Context(), key, record.HeartbeatTTL).Err())
	heartbeat(t, c, "i0")
	got := sweep(t, fast(srv.URL()).build(t))
	if len(got.Instances) != 2 || got.Instances[0].ID != "i0" || got.Instances[0].Counts != nil {
		t.Fatalf("instances %+v", got.Instances)
	}
	i := got.Instances[1]
	if i.Slot != "shop-0" || i.App != "shop" || i.Counts["orders"] != (locksteward.Counts{Acquired: 1, Failed: 2, Contended: 3, Renewed: 4, RenewFailures: 5, Lost: 6}) {
		t.Errorf("instance %+v", i)
	}
}

// TestDeadlockIsFound: two sessions of lock/ take two locks in different orders;
// scanner and rules find them within two reads, and that it is over once one
// gives up.
func TestDeadlockIsFound(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		t.Run(map[bool]string{false: "two sweeps", true: "a sweep and a direct read"}[direct], func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			client, err := lock.New(c, lock.Options{App: "shop"})
			must(t, err)
			t.Cleanup(func() { must(t, client.Close()) })
			lease := lock.Lease{TTL: time.Minute, Class: "orders"}

			ended := make(chan error, 2)
			giveUp, cancel := context.WithCancel(t.Context())
			defer cancel()
			took, both := make(chan struct{}), make(chan struct{})
			run := func(ctx context.Context, first, then string) {
				ctx = lock.WithSession(ctx)
				h, err := client.Acquire(ctx, first, lease)
				if err == nil {
					took <- struct{}{}
					<-both
					var next *lock.Handle
					if next, err = client.Acquire(ctx, then, lease); err == nil {
						err = next.Release(t.Context())
					}
					err = errors.Join(err, h.Release(t.Context()))
				}
				ended <- err
			}
			go run(t.Context(), "lock:a", "lock:b")
			<-took
			go run(giveUp, "lock:b", "lock:a")
			<-took
			close(both)
			waits := func() bool {
				n, err := c.Exists(t.Context(), record.Companion(record.DefaultPrefix, record.KindWaiter, "lock:a"),
					record.Companion(record.DefaultPrefix, record.KindWaiter, "lock:b")).Result()
				return err == nil && n == 2
			}
			testredis.Eventually(t, 10*time.Second, waits, "both sessions wait")

			s := fast(srv.URL()).build(t)
			engine, err := rules.New(nil, nil, nil)
			must(t, err)
			judge := func() []locksteward.Transition { return cycles(engine.Evaluate(sweep(t, s))) }
			if reported := judge(); len(reported) != 0 {
				t.Fatalf("reported after one read: %+v", reported)
			}
			if direct {
				judge = func() []locksteward.Transition {
					again, err := s.Recheck(t.Context(), due(engine, s))
					must(t, err)
					return cycles(engine.EvaluateDirect(again))
				}
			}
			reported := judge()
			if len(reported) != 1 || reported[0].Finding.Rule != rules.WaitCycle || reported[0].Finding.Status != locksteward.StatusFiring ||
				reported[0].Finding.Severity != locksteward.SeverityCritical {
				t.Fatalf("reported after two reads: %+v", reported)
			}
			cancel()
			for range 2 {
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			if reported := cycles(engine.Evaluate(sweep(t, s))); len(reported) != 1 || reported[0].Finding.Status != locksteward.StatusResolved {
				t.Errorf("reported after its end: %+v", reported)
			}
		})
	}
}

// cycles are the transitions of wait/cycle.
func cycles(all []locksteward.Transition) []locksteward.Transition {
	return slices.DeleteFunc(all, func(t locksteward.Transition) bool { return t.Finding.Rule != rules.WaitCycle })
}

// due are the locks that the engine wants to see again.
func due(engine *rules.Engine, s *scanner.Scanner) []locksteward.Lock {
	var out []locksteward.Lock
	for _, key := range engine.Due("test") {
		if l, ok := s.Table().Get(key.DB, key.Key); ok {
			out = append(out, l)
		}
	}
	return out
}

// Metadata of a free lock is of no hold, and that of a hand-off that lapsed is no
// lost hold.
func TestMetadataWithoutAHold(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	write := func(key string, m record.Meta) {
		m.V = record.Version
		must(t, c.Set(ctx, record.Companion(record.DefaultPrefix, record.KindHold, key), m.Encode(), record.Grace).Err())
	}
	at := time.Now().Add(-time.Minute).UnixMilli()
	write("lock:free", record.Meta{Free: at})
	write("lock:lapsed", record.Meta{ID: "A", Instance: "i1", Offered: at, Fence: at * 1000, TTL: 30000})
	take(t, c, "lock:next", record.Meta{ID: "C", Lost: &record.Lost{ID: "B", Holder: "i1", Deadline: at, Offered: true}}, time.Minute)
	take(t, c, "lock:offered", record.Meta{ID: "D", Offered: time.Now().Add(time.Minute).UnixMilli()}, time.Minute)
	got := sweep(t, fast(srv.URL()).build(t))
	lost := map[string]locksteward.EndedHow{}
	for _, l := range got.Losses {
		lost[l.Key] = l.How
	}
	want := map[string]locksteward.EndedHow{"lock:lapsed": locksteward.EndedLapsed, "lock:next": locksteward.EndedLapsed}
	if !maps.Equal(lost, want) {
		t.Errorf("losses %v, want %v", lost, want)
	}
	if n := len(got.Locks); n != 2 {
		t.Errorf("%d locks, want the two that are held", n)
	}
}
