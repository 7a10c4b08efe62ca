package scanner_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// A slow first sweep says that it is under way and how far, and the target is up
// meanwhile; the second one is no first one.
func TestProgressOfTheFirstSweep(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	fill(t, c, 8_000)
	must(t, c.Set(t.Context(), "lock:a", "1", 0).Err())
	r := fast(srv.URL())
	r.scan = scanner.Config{Pace: pace.Config{Idle: 0.05, Busy: 0.05}, Schedule: "@every 1s"}
	r.reads.Watch = source.WatchOff
	// It waits with its first two pages until somebody has looked.
	pages, goOn := make(chan struct{}), make(chan struct{})
	r.page = func() {
		select {
		case pages <- struct{}{}:
			<-goOn
		case <-goOn:
		}
	}
	freely := sync.OnceFunc(func() { close(goOn) })
	s := r.build(t)
	if _, under := s.Progress(); under || s.State().Up {
		t.Fatal("a sweep is under way before the first one began")
	}
	run := start(t, s)
	defer freely()

	var before scanner.Progress
	for seen := range 2 {
		if seen > 0 {
			goOn <- struct{}{}
		}
		select {
		case <-pages:
		case <-time.After(30 * time.Second):
			t.Fatal("no progress is made")
		}
		p, under := s.Progress()
		percent, reported := p.Percent()
		if !under || !reported || p.OfKeys != 8_001 || p.Keys <= before.Keys || percent > 99 || !p.First {
			t.Errorf("progress %+v, %d %%", p, percent)
		}
		before = p
	}
	if state := s.State(); !state.Up || len(state.Nodes) != 1 || state.Nodes[0].Version == "" {
		t.Errorf("state while the first sweep is under way: %+v", state)
	}
	if n := s.Stats().Sweeps; n != 0 {
		t.Fatalf("the sweep ended too soon to be looked at, after %d keys", before.Keys)
	}
	freely()
	got := run.await(t, "the first sweep", complete)
	if len(got.Locks) != 1 {
		t.Errorf("%d locks", len(got.Locks))
	}
	testredis.Eventually(t, 30*time.Second, func() bool {
		p, under := s.Progress()
		return under && !p.First
	}, "the second sweep does not say that it is under way")
}

// An estimate goes by the pace so far, without pauses, and is not given where there
// is none yet.
func TestEstimateOfASweep(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, tc := range map[string]struct {
		p       scanner.Progress
		after   time.Duration
		percent int
		left    time.Duration // -1: none
	}{
		"a quarter":        {scanner.Progress{Keys: 250, OfKeys: 1000}, time.Minute, 25, 3 * time.Minute},
		"paused meanwhile": {scanner.Progress{Keys: 250, OfKeys: 1000, Idle: 40 * time.Second}, time.Minute, 25, time.Minute},
		"just begun":       {scanner.Progress{Keys: 250, OfKeys: 1000}, time.Second, 25, -1},
		"next to nothing":  {scanner.Progress{Keys: 4, OfKeys: 1000}, time.Minute, 0, -1},
		"nothing reported": {scanner.Progress{Keys: 250, OfKeys: -1}, time.Minute, -1, -1},
		"all":              {scanner.Progress{Keys: 1000, OfKeys: 1000}, time.Minute, 99, 0},
		"more than all":    {scanner.Progress{Keys: 1200, OfKeys: 1000}, time.Minute, 99, 0},
		"nearly all":       {scanner.Progress{Keys: 9999, OfKeys: 10_000}, time.Minute, 99, time.Minute / 9999},
		"no keys":          {scanner.Progress{OfKeys: 0}, time.Minute, 99, 0},
	} {
		tc.p.Started = began
		percent, reported := tc.p.Percent()
		if !reported {
			percent = -1
		}
		left, can := tc.p.Left(began.Add(tc.after))
		if !can {
			left = -1
		}
		if percent != tc.percent || left.Round(time.Millisecond) != tc.left.Round(time.Millisecond) {
			t.Errorf("%s: %d %%, %s left, want %d %%, %s", name, percent, left, tc.percent, tc.left)
		}
	}
}

// Anyone who cannot be reached is not up, and one whose keys may not be listed is not
// for a moment.
func TestProgressWithoutAnswers(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on nopass ~* &* +@all -scan"))
	r := fast(strings.Replace(srv.URL(), "redis://", "redis://scanner@", 1))
	s := r.build(t)
	for range 3 {
		_, err := s.Sweep(t.Context())
		if err == nil || s.State().Up {
			t.Fatalf("up %v, %v", s.State().Up, err)
		}
		if _, under := s.Progress(); under {
			t.Fatal("a sweep that ended is under way")
		}
	}
}

// Without INFO nobody tells how many keys there are: how far it is cannot be said,
// and is not made up.
func TestProgressOfUnknown(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on nopass ~* &* +@all -info"))
	fill(t, srv.Client(t), 3_000)
	r := fast(strings.Replace(srv.URL(), "redis://", "redis://scanner@", 1))
	r.scan = scanner.Config{Pace: pace.Config{Idle: 0.001, Busy: 0.001}, Schedule: "@every 1s"}
	r.reads.Watch = source.WatchOff
	s := r.build(t)
	start(t, s)
	testredis.Eventually(t, 30*time.Second, func() bool {
		p, under := s.Progress()
		if _, reported := p.Percent(); under && reported {
			t.Errorf("%+v", p)
		}
		_, can := p.Left(time.Now())
		return under && p.Keys > 0 && s.State().Up && !can
	}, "no progress is reported")
}
