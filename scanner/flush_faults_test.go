package scanner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
)

// notified are the rules of transitions of which people are notified, once each.
func notified(list []locksteward.Transition) (out []string) {
	for _, tr := range list {
		if rules.Notifies(tr.Finding) {
			out = append(out, fmt.Sprint(tr.Finding.Rule, " ", tr.Finding.Status))
		}
	}
	return out
}

// A flush that takes locks, of whichever library and by whichever command, is one
// finding of sweeps that nothing was notified of in between. A flush of another database
// is none.
// fault: 48
func TestSweepsTellOfAFlushOnce(t *testing.T) {
	t.Parallel()
	const locks = 5
	for name, tc := range map[string]struct {
		harm []any
		db   int
		some bool // one of the locks is taken again before anybody looks
		want int
		fire bool
	}{
		"FLUSHALL":                 {harm: []any{"flushall"}, want: locks, fire: true},
		"FLUSHDB":                  {harm: []any{"flushdb", "async"}, want: locks, fire: true},
		"SWAPDB":                   {harm: []any{"swapdb", 0, 1}, want: locks, fire: true},
		"taken again":              {harm: []any{"flushall"}, some: true, want: locks, fire: true},
		"FLUSHDB of another":       {harm: []any{"flushdb"}, db: 1},
		"SWAPDB of others":         {harm: []any{"swapdb", 2, 3}},
		"SWAPDB from another side": {harm: []any{"swapdb", 1, 0}, db: 1, want: locks, fire: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c, ctx := srv.Client(t), t.Context()
			opts := srv.Options()
			opts.DB = tc.db
			other := redis.NewClient(opts)
			t.Cleanup(func() { must(t, other.Close()) })
			s := fast(srv.URL()).build(t)
			e, err := rules.New(nil, nil, nil)
			must(t, err)
			for i := range locks - 1 {
				must(t, c.Set(ctx, fmt.Sprint("lock:", i), fmt.Sprint("tok", i), time.Hour).Err())
			}
			take(t, c, "lock:ours", record.Meta{ID: "1", Instance: "i1"}, time.Hour)
			e.Evaluate(sweep(t, s))
			if got := notified(e.Evaluate(sweep(t, s))); len(got) != 0 {
				t.Fatalf("before: %v", got)
			}
			must(t, other.Do(ctx, tc.harm...).Err())
			if tc.some {
				must(t, c.Set(ctx, "lock:0", "another", time.Hour).Err())
			}
			// What ends while locks stand has ended by itself.
			if tc.want == 0 {
				must(t, c.Del(ctx, "lock:0", "lock:1", "lock:2").Err())
			}
			var reported []string
			for range 4 {
				got := sweep(t, s)
				reported = append(reported, notified(e.Evaluate(got))...)
				flushed := happened(got, locksteward.ServerFlushed)
				if len(flushed) != 1 || flushed[0].Locks != tc.want || flushed[0].Count != 1 {
					t.Fatalf("%+v, want one flush of %d locks", flushed, tc.want)
				}
			}
			want := []string{"server/flushed firing"}
			if !tc.fire {
				want = nil
			}
			if !slices.Equal(reported, want) {
				t.Errorf("reported %v, want %v", reported, want)
			}
		})
	}
}

// The watch hears of a flush at once: one finding, and none for each lock of ours
// whose holder lives. A flush of another database is none.
// fault: 48
func TestWatchTellsOfAFlushOnce(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c, ctx := srv.Client(t), t.Context()
	opts := srv.Options()
	opts.DB = 1
	other := redis.NewClient(opts)
	t.Cleanup(func() { must(t, other.Close()) })
	heartbeat(t, c, "i1")
	w := tracked(t, fast(srv.URL()))
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	var reported []string
	func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.judge = func(u locksteward.Update) { reported = append(reported, notified(e.EvaluateWatched(u))...) }
	}()
	const locks = 20
	for i := range locks {
		key := fmt.Sprint("lock:", i)
		take(t, c, key, record.Meta{ID: fmt.Sprint("id", i), Instance: "i1"}, time.Hour)
		w.awaitLock(key)
	}
	w.taken(c, "lock:foreign")
	heartbeat(t, c, "i1")
	e.Evaluate(sweep(t, w.s))

	must(t, other.FlushDB(ctx).Err())
	must(t, c.Del(ctx, "lock:foreign").Err())
	w.awaitEnd("lock:foreign", 1)
	w.taken(c, "lock:again") // and what the flush led to is done
	testredis.Eventually(t, soon, func() bool { return w.s.Table().Len() == locks+1 }, "not all are known")
	got := sweep(t, w.s)
	if flushed := happened(got, locksteward.ServerFlushed); len(flushed) != 1 || flushed[0].Locks != 0 {
		t.Errorf("after a flush of another database: %+v", flushed)
	}
	reported = append(reported, notified(e.Evaluate(got))...)
	if len(reported) != 0 {
		t.Fatalf("reported %v of a flush of another database", reported)
	}

	w.awaitClock()
	heartbeat(t, c, "i1")
	must(t, c.FlushAll(ctx).Err())
	for i := range locks {
		w.awaitEnd(fmt.Sprint("lock:", i), 1)
	}
	w.awaitEnd("lock:again", 1)
	for range 3 {
		heartbeat(t, c, "i1") // its process lives
		got := sweep(t, w.s)
		func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			reported = append(reported, notified(e.Evaluate(got))...)
		}()
		flushed := happened(got, locksteward.ServerFlushed)
		if len(flushed) != 2 || flushed[1].Locks != locks+1 || len(got.Losses) != locks {
			t.Errorf("sweep: %+v, %d losses", flushed, len(got.Losses))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(reported, []string{"server/flushed firing"}) {
		t.Errorf("reported %v, want the flush alone", reported)
	}
	if n := len(e.FindingsFor("test", 0, "lock:7")); n != 1 {
		t.Errorf("%d findings on a lock that was lost, want one that is inhibited", n)
	}
}
