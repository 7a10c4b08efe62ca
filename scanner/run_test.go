package scanner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// running is a Run in the background.
type running struct {
	sweeps chan locksteward.Sweep
	stop   func()
}

func start(t *testing.T, s *scanner.Scanner) running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := running{sweeps: make(chan locksteward.Sweep, 1000)}
	done := make(chan error, 1)
	go func() {
		done <- s.Run(ctx, func(ctx context.Context, got locksteward.Sweep) {
			select {
			case r.sweeps <- got.Collect():
			case <-ctx.Done():
			}
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// await returns the first sweep for which ok is true.
func (r running) await(t *testing.T, what string, ok func(locksteward.Sweep) bool) locksteward.Sweep {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		select {
		case got := <-r.sweeps:
			if ok(got) {
				return got
			}
		case <-ctx.Done():
			t.Fatalf("no sweep %s", what)
		}
	}
}

func complete(got locksteward.Sweep) bool { return got.Complete() }

func TestRunSweepsAtOnceAndOnSchedule(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	must(t, srv.Client(t).Set(t.Context(), "lock:a", "tok", 0).Err())
	r := fast(srv.URL())
	r.scan.Schedule = "@every 2s" // so that the first may be late, and the second is not by as much
	run := start(t, r.build(t))
	run.await(t, "at once", complete)
	first := run.await(t, "at a whole second", complete)
	second := run.await(t, "on schedule", complete)
	if gap := second.Started.Sub(first.Started); gap < 500*time.Millisecond || gap > 5*time.Second {
		t.Errorf("%s between two sweeps, want about 2s", gap)
	}
	// And not again before its time where the schedule is rare.
	r.scan.Schedule = "@every 1h"
	rare := start(t, r.build(t))
	rare.await(t, "at once", complete)
	rare.stop()
	if n := len(rare.sweeps); n != 0 {
		t.Errorf("%d more sweeps", n)
	}
}

func TestRunOutlivesItsTarget(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	srv.Kill()
	r := fast(srv.URL())
	r.scan.Schedule = "@every 1h"
	s := r.build(t)
	if state := s.State(); state.Up || state.Reason == "" {
		t.Errorf("before the first contact: %+v", state)
	}
	run := start(t, s)
	away := func(got locksteward.Sweep) bool { return len(got.Masters) == 0 }
	got := run.await(t, "of a target that is away", away)
	if got.Complete() || got.At.IsZero() || len(got.Endings) != 0 {
		t.Errorf("away: %+v", got)
	}
	if state := s.State(); state.Up || !strings.Contains(state.Reason, "connection refused") {
		t.Errorf("away: %+v", state)
	}
	srv.Restart()
	must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
	run.await(t, "after the target came back", func(got locksteward.Sweep) bool { return len(got.Masters) == 1 })
	testredis.Eventually(t, 10*time.Second, func() bool { return s.State().Up && s.State().Reason == "" }, "the target is not reported up")
}

// fault: 46
func TestWrongPasswordIsReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("default off", "scanner on >right %R~* +@read"))
	r := fast(srv.URL())
	r.connect.Username, r.connect.Password = "scanner", "wrong-secret"
	s := r.build(t)
	_, err := s.Sweep(t.Context())
	reason := s.State().Reason
	if err == nil || s.State().Up || !strings.Contains(reason, "password_file") {
		t.Errorf("%v, %+v", err, s.State())
	}
	if strings.Contains(err.Error()+reason, "wrong-secret") {
		t.Errorf("the password is shown: %v, %s", err, reason)
	}
	// The right one, but without SCAN.
	r.connect.Password = "right"
	s = r.build(t)
	got, err := s.Sweep(t.Context())
	if err == nil || s.State().Up || len(got.Masters) != 0 || !strings.Contains(s.State().Reason, "locksteward acl") {
		t.Errorf("%v, %+v", err, s.State())
	}
}

// loadingServer answers everything with LOADING until ready is closed, and then
// closes connections, which is enough to see that it is asked again.
func loadingServer(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					var n int
					if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
						return
					}
					for range 2 * n {
						if _, err := r.ReadString('\n'); err != nil {
							return
						}
					}
					if _, err := io.WriteString(c, "-LOADING Redis is loading the dataset in memory\r\n"); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		wg.Wait()
	})
	return l.Addr().String()
}

// fault: 39
func TestLoadingIsWaitedFor(t *testing.T) {
	t.Parallel()
	addr := loadingServer(t)
	s := fast("redis://" + addr).build(t)
	run := start(t, s)
	for range 3 {
		got := run.await(t, "of a loading server", func(locksteward.Sweep) bool { return true })
		if len(got.Masters) != 0 {
			t.Errorf("a loading server has been swept: %+v", got.Masters)
		}
	}
	run.stop()
	if state := s.State(); state.Up || !strings.Contains(state.Reason, "loading its data") {
		t.Errorf("%+v", state)
	}
	if d := s.Stats().Throttled[source.ReasonLoading]; d < 500*time.Millisecond {
		t.Errorf("waited %s for loading", d)
	}
}

func TestRunKeepsHistories(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	for _, k := range []string{"lock:old", "lock:other", "lock:gone"} {
		must(t, c.Set(ctx, k, "tok", 0).Err())
	}
	r := fast(srv.URL())
	r.scan.Schedule = "@every 1s"
	seed := r.build(t)
	sweep(t, seed)
	store := &memoryStore{rows: map[scanner.HistoryKey]scanner.HistoryRow{}}
	began := time.Now().Add(-time.Hour)
	for _, row := range seed.HistoryRows() {
		row.FirstSeen, row.LastSeen = began, began.Add(time.Minute)
		store.rows[scanner.HistoryKey{Key: row.Key}] = row
	}
	must(t, c.Set(ctx, "lock:other", "another", 0).Err())
	must(t, c.Del(ctx, "lock:gone").Err())
	must(t, c.Set(ctx, "lock:new", "tok", 0).Err())
	r.opts.History = store
	run := start(t, r.build(t))
	got := run.await(t, "at once", complete)
	if h := find(t, got.Locks, "lock:old").History; h.FirstSeen.Unix() != began.Unix() {
		t.Errorf("lock:old is known since %s, want %s", h.FirstSeen, began)
	}
	has := func(key string) bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		_, ok := store.rows[scanner.HistoryKey{Key: key}]
		return ok
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return !has("lock:gone") && !has("lock:other") }, "rows of holds that are over stay")
	if has("lock:new") || !has("lock:old") {
		t.Error("a hold of a moment has a row, or an old one has none")
	}
	testredis.Eventually(t, 20*time.Second, func() bool { return has("lock:new") && has("lock:other") }, "holds over 5 s get no row")
	store.mu.Lock()
	row := store.rows[scanner.HistoryKey{Key: "lock:old"}]
	store.mu.Unlock()
	if row.FirstSeen.Unix() != began.Unix() || row.LastSeen.Before(began.Add(2*time.Minute)) {
		t.Errorf("row of lock:old: %+v", row)
	}
}
