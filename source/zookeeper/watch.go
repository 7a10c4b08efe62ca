package zksource

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/locksteward/locksteward/source"
)

const (
	// gather is how long the watch waits for more after an event: a busy lock is read as
	// often at most.
	gather = 20 * time.Millisecond
	// retryEvery is between two attempts to watch, refusedEvery between those that lack a right.
	retryEvery   = time.Second
	refusedEvery = 10 * time.Second
)

// Watch implements [source.Source]: the servers send one event for the next change of each
// directory, which is then read and watched again.
func (s *Source) Watch(ctx context.Context) error {
	s.mu.Lock()
	s.watching, s.rearm = true, true
	s.mu.Unlock()
	defer s.unwatched("nothing watches the target; only sweeps report it")
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watching = false
	}()
	for s.host.Throttle().Resumed(ctx) == nil {
		err := s.watch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.unwatched(s.Explain(err))
		s.failed(err)
		s.hasTried()
		every := retryEvery
		if isAuth(err) {
			every = refusedEvery
		}
		_ = source.Sleep(ctx, every) // the loop looks at ctx
	}
	return nil
}

// watch watches until something fails.
func (s *Source) watch(ctx context.Context) error {
	w := &watch{s: s, r: reader{client: s.client, watch: true}}
	s.mu.Lock()
	s.rearm = true
	s.mu.Unlock()
	for {
		if err := s.host.Throttle().Resumed(ctx); err != nil {
			return err
		}
		if err := w.turn(ctx); err != nil {
			return err
		}
		s.hasTried()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.wake:
		}
		if err := source.Sleep(ctx, gather); err != nil {
			return err
		}
	}
}

// watch is one that is under way.
type watch struct {
	s *Source
	r reader

	planned int // number of the plan that is watched
	parents map[string]bool
	watched map[string]bool // directories
}

// turn reads what changed.
func (w *watch) turn(ctx context.Context) error {
	s := w.s
	if _, err := s.client.get(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	dirty, wanted, rearm, p, planned := s.dirty, s.wanted, s.rearm, s.plan, s.planned
	s.dirty, s.wanted, s.rearm = map[string]bool{}, map[string]bool{}, false
	s.mu.Unlock()

	directories := map[string]bool{} // to be read, and watched again
	replan := rearm || planned != w.planned
	for path := range dirty {
		above, base := splitPath(path)
		switch {
		case w.watched[path]:
			directories[path] = true
			replan = replan || w.parents[path]
		case (base == locksName || base == leasesName) && w.watched[above]:
			directories[above] = true
		default:
			replan = true
		}
	}
	if replan {
		e, err := w.r.expand(ctx, p)
		if err != nil {
			return err
		}
		before := w.watched
		w.planned, w.parents, w.watched = planned, e.parents, make(map[string]bool, len(e.directories))
		for _, dir := range e.directories {
			w.watched[dir] = true
			if rearm || !before[dir] {
				directories[dir] = true
			}
		}
		for dir := range before {
			if !w.watched[dir] {
				directories[dir] = true
			}
		}
	}
	if err := w.read(ctx, directories); err != nil {
		return err
	}
	if len(wanted) > 0 {
		names := make([]string, 0, len(wanted))
		for name := range wanted {
			names = append(names, name)
		}
		got, err := s.Read(ctx, names, false)
		for _, b := range got {
			s.host.Apply(ctx, b)
		}
		if err != nil && !alone(err) {
			return err
		}
	}
	s.watches(replan, int64(len(directories)+len(wanted)), int64(len(dirty)))
	return nil
}

// read reads directories, has them watched, and passes on what they have.
func (w *watch) read(ctx context.Context, directories map[string]bool) error {
	s := w.s
	results := make(chan found, sideBySide)
	workers, inner := errgroup.WithContext(ctx)
	workers.SetLimit(sideBySide)
	done := make(chan error, 1)
	go func() {
		for dir := range directories {
			workers.Go(func() error {
				f := found{dir: dir, at: time.Now()}
				r := w.r
				r.watch = w.watched[dir]
				f.holds, f.err = r.directory(inner, dir)
				if f.err != nil && !alone(f.err) {
					return f.err
				}
				if f.err == nil {
					results <- f
				}
				return nil
			})
		}
		err := workers.Wait()
		close(results)
		done <- err
	}()
	b := source.Batch{Node: s.node(), Began: time.Now()}
	for f := range results {
		names := s.index.at(f.dir)
		for i := range f.holds {
			h := &f.holds[i]
			s.index.set(h, f.dir)
			b.Readings = append(b.Readings, s.reading(h))
		}
		for _, name := range names {
			if !slices.ContainsFunc(f.holds, func(h hold) bool { return h.name == name }) {
				s.index.remove(name)
				b.Readings = append(b.Readings, source.Reading{Name: name, State: source.Absent, At: f.at})
			}
		}
	}
	if len(b.Readings) > 0 {
		s.host.Apply(ctx, b)
	}
	return <-done
}

// watches notes that the target is watched.
func (s *Source) watches(anew bool, reads, events int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rearm { // the connection broke meanwhile
		return
	}
	now := time.Now()
	since := now
	if n := s.state.Nodes; !anew && len(n) > 0 {
		since = n[0].Since
	}
	s.reads += reads
	s.state = source.WatchState{
		Mode: source.WatchTracking, Reads: s.reads, Events: s.state.Events + events,
		Nodes: []source.NodeWatch{{Addr: s.node(), Mode: source.WatchTracking, Since: since, LastGood: now, Repaired: true}},
	}
}

func (s *Source) unwatched(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch(reason)
}

// unwatch notes that sweeps alone see changes. The caller holds s.mu.
func (s *Source) unwatch(reason string) {
	s.state = source.WatchState{
		Mode: source.WatchSweep, Reason: reason, Reads: s.reads, Events: s.state.Events,
		Nodes: []source.NodeWatch{{Addr: s.node(), Mode: source.WatchSweep, Reason: reason}},
	}
}

// hasTried lets [Source.AwaitWatch] return.
func (s *Source) hasTried() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isClosed(s.tried) {
		close(s.tried)
	}
}

// AwaitWatch implements [source.Source].
func (s *Source) AwaitWatch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.tried:
	}
}

// Request implements [source.Source].
func (s *Source) Request(name string, _ bool) {
	s.mu.Lock()
	s.wanted[name] = true
	s.mu.Unlock()
	s.awaken()
}

// WatchState implements [source.Source].
func (s *Source) WatchState() source.WatchState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	if st.Mode == "" {
		st.Mode, st.Reason = source.WatchSweep, "nothing watches the target; only sweeps report it"
	}
	for _, c := range s.plan.classes {
		if st.Mode == source.WatchSweep {
			c.Coverage, c.Reason = source.CoverageNone, st.Reason
		}
		st.Classes = append(st.Classes, c)
	}
	st.Waiting = len(s.wanted) + len(s.dirty)
	return st
}
