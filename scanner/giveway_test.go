package scanner_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// slowStore takes its time to write.
type slowStore struct {
	memoryStore
	writing, release chan struct{}
	once             sync.Once
}

func (m *slowStore) SaveHistory(ctx context.Context, target string, upserts []scanner.HistoryRow, gone []scanner.HistoryKey) error {
	m.once.Do(func() { close(m.writing) })
	select {
	case <-m.release:
	case <-ctx.Done():
	}
	return m.memoryStore.SaveHistory(ctx, target, upserts, gone)
}

// TestWatchDoesNotWaitForTheStore: while histories are written, which takes minutes where
// there are 200,000 and the database is slow, the watch goes on to tell.
func TestWatchDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	old := scanner.HistoryRow{Target: "test", Key: "lock:before", TokenDigest: "hmac-sha256:00", FirstSeen: time.Now().Add(-time.Hour), LastSeen: time.Now()}
	store := &slowStore{
		memoryStore: memoryStore{rows: map[scanner.HistoryKey]scanner.HistoryRow{{Key: old.Key}: old}},
		writing:     make(chan struct{}), release: make(chan struct{}),
	}
	defer close(store.release)
	r := fast(srv.URL())
	r.opts.History = store
	w := tracked(t, r)
	start(t, w.s)
	select {
	case <-store.writing:
	case <-time.After(soon):
		t.Fatal("the row of a lock that is gone is not written")
	}
	w.taken(c, "lock:a")
	must(t, c.Del(t.Context(), "lock:a").Err())
	w.awaitEnd("lock:a", 1)
}

// TestWatchComesBetween: while a sweep is handed on that gives way, the watch reports
// what happens meanwhile, and the sweep yields locks as they are then.
func TestWatchComesBetween(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	for _, key := range []string{"lock:a", "lock:b", "lock:c", "lock:d"} {
		must(t, c.Set(ctx, key, "tok:"+key, 0).Err())
	}
	w := tracked(t, fast(srv.URL()))
	handed := make(chan locksteward.Sweep, 1)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- w.s.Run(running, func(_ context.Context, sweep locksteward.Sweep) {
			defer stop()
			must(t, c.PExpire(ctx, "lock:a", time.Hour).Err())
			must(t, c.Del(ctx, "lock:b").Err())
			must(t, c.Set(ctx, "lock:c", "another", 0).Err())
			deadline := time.Now().Add(soon)
			for time.Now().Before(deadline) {
				a, seen := w.lock("lock:a")
				if seen && a.TTL > 0 && len(w.ended("lock:b")) > 0 && len(w.ended("lock:c")) > 0 {
					break
				}
				w.s.Yield()
			}
			if got := sweep.LockCount(); got != 4 {
				t.Errorf("%d locks, want the 4 of the sweep", got)
			}
			handed <- sweep.Collect()
		})
	}()
	got := <-handed
	must(t, <-done)
	if ended := w.ended("lock:b"); len(ended) != 1 {
		t.Errorf("the end of lock:b was reported as %v", ended)
	}
	if a := find(t, got.Locks, "lock:a"); a.TTL <= 0 || a.History.Looks < 2 {
		t.Errorf("lock:a as the sweep saw it, and not as it is: %+v", a)
	}
	if d := find(t, got.Locks, "lock:d"); d.TTL != locksteward.NoExpiry {
		t.Errorf("lock:d: %+v", d)
	}
	for _, l := range got.Locks {
		if l.Key == "lock:b" || l.Key == "lock:c" {
			t.Errorf("%s is over, and the sweep has it", l.Key)
		}
	}
}

// TestDelayOfTheWatchIsKnown, also while what was reported is not taken.
// fault: 57
func TestDelayOfTheWatchIsKnown(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	w.taken(c, "lock:a")
	const long = 300 * time.Millisecond
	w.hold.Lock()
	must(t, c.Set(t.Context(), "lock:b", "tok", 0).Err())
	w.awaitState("a change waits", func(s source.WatchState) bool { return s.Delay >= long })
	w.hold.Unlock()
	w.awaitLock("lock:b")
	if got := w.s.WatchState().Delay; got < long {
		t.Errorf("%s after it was handed on, want at least %s for a while", got, long)
	}
}

// TestChangesGoBeforeWhatIsReadAgain: a watch that was set up has all known locks read
// again. What changes meanwhile does not wait for them.
func TestChangesGoBeforeWhatIsReadAgain(t *testing.T) {
	t.Parallel()
	sinceTracking(t)
	srv := testredis.Start(t)
	c := srv.Client(t)
	const known = 3000
	pipe := c.Pipeline()
	for i := range known {
		pipe.Set(t.Context(), fmt.Sprintf("lock:known:%04d", i), "tok", 0)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	s := fast(srv.URL()).build(t)
	sweep(t, s)
	begun, reported := make(chan struct{}), make(chan int, 1)
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	before := 0
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		done <- s.Watch(ctx, func(_ context.Context, update locksteward.Update) {
			begin()
			<-release
			for _, l := range update.Locks {
				if l.Key == "lock:new" {
					reported <- before
					cancel()
				}
			}
			before += len(update.Locks)
		})
	}()
	<-begun // some of the known ones were read
	waiting := s.WatchState().Waiting
	must(t, c.Set(t.Context(), "lock:new", "tok", 0).Err())
	testredis.Eventually(t, soon, func() bool { return s.WatchState().Waiting > waiting }, "no push came")
	close(release)
	select {
	case n := <-reported:
		if n > known/3 {
			t.Errorf("reported after %d locks that did not change", n)
		}
	case <-time.After(soon):
		t.Error("not reported")
		cancel()
	}
	must(t, <-done)
}
