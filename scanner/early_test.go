package scanner_test

import (
	"context"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
)

// foundEarly is what was handed on while a sweep was under way, which waits for it.
type foundEarly struct {
	batches chan locksteward.Update
	goOn    chan struct{}
}

func (f *foundEarly) take(ctx context.Context, got locksteward.Update) {
	select {
	case f.batches <- got:
	case <-ctx.Done():
		return
	}
	select {
	case <-f.goOn:
	case <-ctx.Done():
	}
}

// freely lets the sweep go on at once.
func freely() *foundEarly {
	f := &foundEarly{batches: make(chan locksteward.Update, 100), goOn: make(chan struct{})}
	close(f.goOn)
	return f
}

// Locks are handed on and in the table before the sweep ends, and count as one look with what the sweep tells.
func TestLocksAreHandedOnBeforeTheSweepEnds(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	take(t, c, "lock:ours", record.Meta{ID: "A1", Instance: "I1"}, 0)
	heartbeat(t, c, "I1")
	early := &foundEarly{batches: make(chan locksteward.Update), goOn: make(chan struct{})}
	r := slow(srv.URL())
	r.reads.Watch, r.scan.Schedule, r.opts.Found = source.WatchOff, "@every 1h", early.take
	s := r.build(t)
	run := start(t, s)

	got := <-early.batches
	if len(got.Locks) != 1 {
		t.Fatalf("handed on %+v", got)
	}
	l := got.Locks[0]
	if l.Key != "lock:ours" || l.History.Looks != 1 || l.TTL != locksteward.NoExpiry || l.Waiters >= 0 {
		t.Errorf("handed on %+v", l)
	}
	if l.Instance == nil || l.Instance.ID != "I1" || !l.Instance.Beat.IsZero() {
		t.Errorf("its process is not unknown: %+v", l.Instance)
	}
	if now, ok := s.Table().Get(0, "lock:ours"); !ok || now.History.Looks != 1 {
		t.Errorf("in the table: %t, %+v", ok, now)
	}
	if n := s.Stats().Sweeps; n != 0 {
		t.Errorf("%d sweeps ended", n)
	}
	early.goOn <- struct{}{}

	swept := run.await(t, "the first sweep", complete)
	if l := find(t, swept.Locks, "lock:ours"); l.History.Looks != 1 || l.Waiters != 0 || l.Instance == nil || l.Instance.Beat.IsZero() {
		t.Errorf("swept %+v", l)
	}
}

// A hold that was replaced ends where the next one is handed on, and not once more in the sweep.
func TestNextHoldIsHandedOnBeforeTheSweepEnds(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	must(t, c.Set(t.Context(), "lock:a", "3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", 0).Err())
	early := freely()
	r := slow(srv.URL())
	r.reads.Watch, r.opts.Found = source.WatchOff, early.take
	s := r.build(t)
	sweep(t, s)
	first := <-early.batches
	must(t, c.Set(t.Context(), "lock:a", "11111111-9d1a-4b6e-8f0a-1c2d3e4f5a6b", 0).Err())
	swept := sweep(t, s)
	second := <-early.batches
	if len(first.Endings) != 0 || len(second.Endings) != 1 || second.Endings[0].How != locksteward.EndedReplaced || len(swept.Endings) != 0 {
		t.Errorf("endings: %+v, %+v, in the sweep %+v", first.Endings, second.Endings, swept.Endings)
	}
	if l := find(t, swept.Locks, "lock:a"); l.History.Looks != 1 {
		t.Errorf("%+v", l.History)
	}
}

// Where a watch reads the locks, the sweep hands on none that are as they were.
func TestKnownLocksWaitForTheEndOfTheSweep(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	must(t, c.Set(t.Context(), "lock:a", "3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", 0).Err())
	early := freely()
	r := fast(srv.URL())
	r.opts.Found = early.take
	w := tracked(t, r)
	sweep(t, w.s)
	for len(early.batches) > 0 {
		<-early.batches
	}
	sweep(t, w.s)
	if n := len(early.batches); n != 0 {
		t.Errorf("%d handed on: %+v", n, <-early.batches)
	}
}
