package zksource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

const (
	// sideBySide is how many directories are read at a time.
	sideBySide = 16
	// passEvery is how long what was found is kept before it is passed on.
	passEvery = 100 * time.Millisecond
	passAt    = 256 // readings
)

// found is what was read of one directory.
type found struct {
	dir   string
	at    time.Time
	holds []hold
	err   error // it could not be read, alone
}

// Sweep implements [source.Source].
func (s *Source) Sweep(ctx context.Context, _ source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	if err := s.host.Throttle().Pass(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	p, _ := s.currentPlan()
	if _, err := s.client.get(ctx); err != nil {
		return nil, err
	}
	s.askAdmin(ctx)
	sw := &sweep{
		s: s, sink: sink, ctx: ctx, batch: source.Batch{Node: s.node(), Began: began}, passed: began,
		seen: map[string]bool{}, read: map[string]time.Time{}, unread: map[string]error{},
		part: source.Part{
			Node: s.node(), Answered: true, Owns: func(string) bool { return true },
			Server: source.Server{State: locksteward.UnknownNode(s.node()), Uptime: -1, Evicted: -1, Flushes: -1, Offset: -1, InStep: -1},
			Absent: map[string]time.Time{},
		},
	}
	sink.Parts(1)
	sink.Answered(0, nil)
	r := reader{client: s.client, reads: s.host.Alive}
	e, err := r.expand(ctx, p)
	if err == nil {
		sink.Total(0, int64(len(e.directories)))
		err = sw.all(r, e.directories)
	}
	if err == nil {
		err = sw.known(r)
	}
	sw.pass()
	s.failed(err)
	if err == nil && len(sw.unread) > 0 && len(sw.read) == 0 {
		for _, err = range sw.unread { // nothing at all could be read
			s.failed(err)
			break
		}
	}
	part := &sw.part
	part.Err, part.At, part.AnsweredAt = err, time.Now(), time.Now()
	s.mu.Lock()
	s.stats.Degraded, s.stats.Forbidden = degraded(sw.unread, p, s.client.spec.user), int64(len(sw.unread))
	s.mu.Unlock()
	return &source.Sweep{Parts: []source.Part{*part}, Duration: time.Since(began)}, nil
}

// sweep is one that is under way.
type sweep struct {
	s      *Source
	sink   source.Sink
	ctx    context.Context //nolint:containedctx // It lives as long as the call.
	batch  source.Batch
	passed time.Time
	number int32
	part   source.Part

	seen   map[string]bool      // locks
	read   map[string]time.Time // directories
	unread map[string]error     // directories that could not be read, alone
}

// all reads directories and takes what they have. An error is trouble with more than one.
func (sw *sweep) all(r reader, directories []string) error {
	results := make(chan found, sideBySide)
	workers, ctx := errgroup.WithContext(sw.ctx)
	workers.SetLimit(sideBySide)
	done := make(chan error, 1)
	go func() {
		for _, dir := range directories {
			if sw.s.host.Throttle().Pass(ctx) != nil {
				break
			}
			workers.Go(func() error {
				f := found{dir: dir, at: time.Now()}
				f.holds, f.err = r.directory(ctx, dir)
				if f.err != nil && !alone(f.err) {
					return f.err
				}
				results <- f
				return nil
			})
		}
		err := workers.Wait()
		if err == nil {
			err = context.Cause(sw.ctx)
		}
		close(results)
		done <- err
	}()
	for f := range results {
		sw.take(f)
	}
	return <-done
}

// alone reports whether an error says something of one directory and nothing of the others.
func alone(err error) bool {
	return isAuth(err) || errors.Is(err, errChanging) || errors.Is(err, errManyHolds)
}

// take takes what was read of a directory.
func (sw *sweep) take(f found) {
	sw.part.Scanned++
	sw.sink.Scanned(1)
	if f.err != nil {
		sw.unread[f.dir] = f.err
		return
	}
	sw.read[f.dir] = f.at
	for i := range f.holds {
		h := &f.holds[i]
		if sw.seen[h.name] {
			continue
		}
		sw.seen[h.name] = true
		sw.s.index.set(h, f.dir)
		r := sw.s.reading(h)
		r.Number = sw.number
		sw.number++
		sw.batch.Readings = append(sw.batch.Readings, r)
	}
	if len(sw.batch.Readings) >= passAt || time.Since(sw.passed) > passEvery {
		sw.pass()
	}
}

// pass passes on what was found.
func (sw *sweep) pass() {
	if len(sw.batch.Readings) > 0 {
		sw.sink.Found(sw.ctx, 0, sw.batch)
	}
	sw.batch.Readings, sw.passed = nil, time.Now()
}

// known looks for the known locks that were not seen: those whose directories are gone or
// no class names any more are read now.
func (sw *sweep) known(r reader) error {
	missing := map[string]string{} // directory by name
	sw.s.host.Each(func(k source.Known) {
		if !sw.seen[k.Name] {
			missing[k.Name] = directoryOf(k.Name)
		}
	})
	again := map[string]bool{}
	for name := range missing {
		if above, base := splitPath(name); kazooLease.MatchString(base) && !sw.read[above].IsZero() {
			missing[name] = above
		}
	}
	for _, dir := range missing {
		_, failed := sw.unread[dir]
		if _, read := sw.read[dir]; !read && !failed {
			again[dir] = true
		}
	}
	if err := sw.all(r, slices.Collect(maps.Keys(again))); err != nil {
		return err
	}
	for name, dir := range missing {
		if at, read := sw.read[dir]; read && !sw.seen[name] {
			sw.part.Absent[name] = at
			sw.s.index.remove(name)
		}
	}
	return nil
}
