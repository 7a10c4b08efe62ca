package scanner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// A server comes back without its locks: one critical finding counts those that would
// still be held, by class, and explains each lost hold. A lease that ended while the
// server was away is not among them.
func TestRestartLosesLocks(t *testing.T) {
	t.Parallel()
	for _, watching := range []bool{true, false} {
		t.Run(fmt.Sprint("watch ", watching), func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			ctx := t.Context()
			r := fast(srv.URL())
			r.classes = []class.Class{{Name: "orders", Match: []string{"lock:order:*"}}}
			set, err := class.NewSet(r.classes)
			must(t, err)
			e, err := rules.New(nil, set, nil)
			must(t, err)
			w := &reported{t: t, s: r.build(t), locks: map[string]locksteward.Lock{}}
			if watching {
				w.run(t)
				w.awaitTracking()
			}
			must(t, c.Set(ctx, "lock:order:1", "tok1", time.Hour).Err())
			must(t, c.Set(ctx, "lock:bare", "tok2", 0).Err())
			must(t, c.Set(ctx, "lock:short", "tok3", 3*time.Second).Err())
			take(t, c, "lock:order:ours", record.Meta{ID: "0123456789abcdef0123456789abcdef", Instance: "i"}, time.Hour)
			if got := judged(t, w.s, e); len(got.Locks) != 4 {
				t.Fatalf("locks %q", names(got.Locks))
			}
			gone(t, c, "lock:short")
			srv.Kill()
			srv.Restart()
			var event []locksteward.ServerEvent
			testredis.Eventually(t, soon, func() bool {
				got, err := w.s.Sweep(ctx)
				e.Evaluate(got)
				event = happened(got, locksteward.ServerRestarted)
				return err == nil && got.Complete() && len(event) == 1 && len(got.Locks) == 0
			}, "the restart is not seen")
			testredis.Eventually(t, soon, func() bool {
				event = happened(judged(t, w.s, e), locksteward.ServerRestarted)
				return event[0].Locks == 3
			}, "the lost locks are not counted")
			if want := []string{"lock:bare", "lock:order:1", "lock:order:ours"}; !slices.Equal(slices.Sorted(slices.Values(event[0].Keys)), want) {
				t.Errorf("named %q, want %q", event[0].Keys, want)
			}
			f := finding(e, "server/restarted", "")
			if f == nil || f.Severity != locksteward.SeverityCritical || !strings.Contains(catalogue.Text("en", f.Summary), "lost 3 locks") {
				t.Fatalf("found %+v", f)
			}
			for _, part := range []string{"class default: 1", "class orders: 2", "another process answers (its run_id is another one), running: "} {
				if !strings.Contains(evidenceOf(f), part) {
					t.Errorf("no %q in %+v", part, f.Evidence)
				}
			}
			for _, l := range e.Findings() {
				if l.Rule == "hold/lost" && l.InhibitedBy != f.Fingerprint() {
					t.Errorf("reported beside it: %s", catalogue.Text("en", l.Summary))
				}
			}
		})
	}
}

// Locks that a server brings back after a restart are not lost, and do not make a few
// that ended meanwhile a loss of all.
func TestRestartKeepsLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	s := fast(srv.URL()).build(t)
	for i := range 5 {
		must(t, c.Set(ctx, fmt.Sprint("lock:", i), fmt.Sprint("tok", i), time.Hour).Err())
	}
	must(t, c.Save(ctx).Err())
	must(t, c.Set(ctx, "lock:late", "tok", time.Hour).Err())
	judged(t, s, e)
	srv.Kill()
	srv.Restart()
	var event []locksteward.ServerEvent
	testredis.Eventually(t, soon, func() bool {
		got, err := s.Sweep(ctx)
		e.Evaluate(got)
		event = happened(got, locksteward.ServerRestarted)
		return err == nil && len(event) == 1
	}, "the restart is not seen")
	if event[0].Locks != 1 || event[0].Stood != 5 {
		t.Errorf("%+v", event[0])
	}
	if f := finding(e, "server/restarted", ""); f == nil || f.Severity != locksteward.SeverityInfo {
		t.Errorf("found %+v", f)
	}
}

// The watch learns of a restart first, and the sweep that counts what was lost does not
// wait for its schedule.
func TestSweepFollowsRestart(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	r := fast(srv.URL())
	r.scan = scanner.Config{NoThrottle: true, Schedule: "@every 1h"}
	w := tracked(t, r)
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	var mu sync.Mutex
	var events []locksteward.ServerEvent
	first := make(chan struct{})
	started := sync.OnceFunc(func() { close(first) })
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- w.s.Run(running, func(_ context.Context, got locksteward.Sweep) {
			mu.Lock()
			defer mu.Unlock()
			events = happened(got, locksteward.ServerRestarted)
			started()
		})
	}()
	<-first
	// A read of the new process that begins before the watch knows of it proves nothing of the restart.
	w.awaitState("the push is read", func(s source.WatchState) bool { return s.Reads > 0 && s.Waiting == 0 })
	srv.Kill()
	srv.Restart()
	testredis.Eventually(t, soon, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(events) == 1 && events[0].Locks == 1
	}, "no sweep follows the restart")
	stop()
	must(t, <-ended)
}
