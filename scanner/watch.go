package scanner

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Watch passes changes between sweeps to sink until ctx is done, and returns nil then.
// What a push named, what is due and what [Scanner.Touch] asks for is read and
// passed on. sink is called by one goroutine at a time, never
// while a sweep of [Scanner.Run] is being passed on, and in the order of what was
// seen. Its context ends with Watch's. One Watch runs at a time.
func (s *Scanner) Watch(ctx context.Context, sink func(context.Context, locksteward.Update)) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	s.watchSink = sink
	s.table.startDeadlines(true)
	defer s.table.startDeadlines(false)
	wg.Go(func() { s.keepDeadlines(ctx) })
	return s.source.Watch(ctx)
}

// AwaitWatch returns when [Scanner.Watch] has tried to set up its connections for
// the first time, or when ctx is done: a sweep that begins then finds what no
// push named before.
func (s *Scanner) AwaitWatch(ctx context.Context) { s.source.AwaitWatch(ctx) }

// WatchState returns how far the target is watched. Without a running
// [Scanner.Watch] its mode is sweep.
func (s *Scanner) WatchState() source.WatchState { return s.source.WatchState() }

// keepDeadlines has locks read that are due, until ctx ends.
func (s *Scanner) keepDeadlines(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.table.deadlines.wake:
		case <-timer.C:
		}
		keys, next := s.table.takeDue(time.Now())
		for _, key := range keys {
			s.source.Request(key, true)
		}
		if next.IsZero() {
			timer.Stop()
			continue
		}
		timer.Reset(time.Until(next))
	}
}
