package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/locksteward/locksteward/lock"
)

type span struct {
	op, key, class string
	ended          int
	end            lock.SpanEnd
}

// spans is a tracer that remembers.
type spans struct {
	mu          sync.Mutex
	list        []*span
	traceparent string
}

func (s *spans) trace(_ context.Context, op, key, class string) (string, func(lock.SpanEnd)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &span{op: op, key: key, class: class}
	s.list = append(s.list, one)
	return s.traceparent, func(e lock.SpanEnd) {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.ended++
		one.end = e
	}
}

func TestTracer(t *testing.T) {
	t.Parallel()
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	s := &spans{traceparent: traceparent}
	b := setup(t, lock.Options{Tracer: s.trace})
	l := lease()
	l.Class = "orders"
	h := mustAcquire(t, b.client, "k", l)
	if m := meta(t, b.rdb, "k"); m.Trace != traceparent {
		t.Errorf("traceparent in the metadata: %q", m.Trace)
	}
	if _, err := b.client.TryAcquire(t.Context(), "k", l); !errors.Is(err, lock.ErrHeld) {
		t.Fatal(err)
	}
	ctx := lock.WithSession(t.Context())
	for range 2 {
		h, err := b.client.Acquire(ctx, "other", lock.Lease{TTL: l.TTL, Trace: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		defer mustRelease(t, h)
	}
	if m := meta(t, b.rdb, "other"); m.Trace != "mine" {
		t.Errorf("traceparent of the lease: %q", m.Trace)
	}
	mustRelease(t, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	want := []span{
		{op: "acquire", key: "k", class: "orders", ended: 1, end: lock.SpanEnd{ID: h.ID(), Fence: h.Fence()}},
		{op: "acquire", key: "k", class: "orders", ended: 1, end: lock.SpanEnd{Contended: true, Err: lock.ErrHeld}},
		{op: "acquire", key: "other", ended: 1},
		{op: "acquire", key: "other", ended: 1},
		{op: "release", key: "k", class: "orders", ended: 1, end: lock.SpanEnd{ID: h.ID(), Fence: h.Fence()}},
	}
	if len(s.list) != len(want) {
		t.Fatalf("%d spans", len(s.list))
	}
	for i, got := range s.list {
		w := want[i]
		if got.op != w.op || got.key != w.key || got.class != w.class || got.ended != 1 || got.end.Contended != w.end.Contended || !errors.Is(got.end.Err, w.end.Err) {
			t.Errorf("span %d: %+v, want %+v", i, got, w)
		}
		if w.end.ID != "" && (got.end.ID != w.end.ID || got.end.Fence != w.end.Fence) {
			t.Errorf("span %d: %+v, want %+v", i, got.end, w.end)
		}
	}
}

// What a tracer says cannot make an acquire fail.
func TestTracerSaysTooMuch(t *testing.T) {
	t.Parallel()
	s := &spans{traceparent: strings.Repeat("x", 1<<20)}
	b := setup(t, lock.Options{Tracer: s.trace})
	h := mustAcquire(t, b.client, "k", lease())
	if m := meta(t, b.rdb, "k"); m.Trace != "" {
		t.Errorf("%d bytes of traceparent", len(m.Trace))
	}
	mustRelease(t, h)
}
