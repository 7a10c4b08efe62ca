package memory

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

// Node is the address of the one server that the store pretends to be.
const Node = "memory"

// Source reads a [Store].
type Source struct {
	store *Store
	host  source.Host

	mu      sync.Mutex // guards what follows
	classes *class.Set
	wanted  map[string]struct{} // names to be read by Watch
	running bool

	wake chan struct{} // holds one token when wanted grew
}

var _ source.Source = (*Source)(nil)

// Source returns a source of the store. Each has its own watch.
func (s *Store) Source() *Source {
	return &Source{store: s, wanted: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// Traits implements [source.Source].
func (*Source) Traits() source.Traits {
	return source.Traits{Lifetimes: []locksteward.Lifetime{locksteward.LifetimeLease, locksteward.LifetimePersistent}, Watch: true}
}

// Topology implements [source.Source].
func (*Source) Topology() locksteward.Mode { return locksteward.ModeStandalone }

// DB implements [source.Source].
func (*Source) DB() int { return 0 }

// Bind implements [source.Source].
func (s *Source) Bind(host source.Host) { s.host = host }

// SetClasses implements [source.Source].
func (s *Source) SetClasses(classes *class.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.classes = classes
}

// Sweep implements [source.Source].
func (s *Source) Sweep(ctx context.Context, _ source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	if err := s.host.Throttle().Pass(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	names := s.store.names()
	sink.Parts(1)
	sink.Total(0, int64(len(names)))
	sink.Answered(0, nil)
	part := source.Part{
		Node: Node, Answered: true, Scanned: int64(len(names)), Owns: func(string) bool { return true },
		Server: source.Server{
			State: locksteward.UnknownNode(Node), Process: Node, Uptime: -1, Evicted: -1, Flushes: -1, Offset: -1, InStep: -1,
		},
		Absent: map[string]time.Time{}, NotLock: map[string]time.Time{},
	}
	seen := map[string]struct{}{}
	batch := source.Batch{Node: Node, Began: began}
	for _, name := range names {
		if r := s.read(name); r.State == source.Held {
			r.Number = int32(len(batch.Readings))
			batch.Readings = append(batch.Readings, r)
			seen[name] = struct{}{}
		}
	}
	s.host.Each(func(k source.Known) {
		if _, ok := seen[k.Name]; !ok {
			part.Absent[k.Name] = time.Time{}
		}
	})
	for name := range part.Absent {
		if r := s.read(name); r.State == source.Held { // taken meanwhile
			delete(part.Absent, name)
			r.Number = int32(len(batch.Readings))
			batch.Readings = append(batch.Readings, r)
		} else {
			part.Absent[name] = r.At
		}
	}
	sink.Scanned(len(names))
	if len(batch.Readings) > 0 {
		sink.Found(ctx, 0, batch)
	}
	part.At, part.AnsweredAt = time.Now(), time.Now()
	return &source.Sweep{
		Parts: []source.Part{part}, Duration: time.Since(began),
	}, nil
}

// read reads one lock.
func (s *Source) read(name string) source.Reading {
	r := source.Reading{Name: name, At: time.Now(), State: source.Absent}
	lock, ok := s.store.Read(s.host.Target().Name, name)
	if !ok {
		return r
	}
	s.mu.Lock()
	match := s.classes.Classify(name)
	s.mu.Unlock()
	lock.Node, lock.Class, lock.Configured = Node, cmp.Or(match.Class, class.Default), match.Configured
	r.State, r.At, r.Lock = source.Held, lock.At, &lock.Observation
	return r
}

// Read implements [source.Source].
func (s *Source) Read(_ context.Context, names []string, _ bool) ([]source.Batch, error) {
	b := source.Batch{Node: Node, Began: time.Now()}
	for _, name := range names {
		b.Readings = append(b.Readings, s.read(name))
	}
	return []source.Batch{b}, nil
}

// Watch implements [source.Source]: each change of the store is read.
func (s *Source) Watch(ctx context.Context) error {
	stop := s.store.notify(func(name string) { s.Request(name, true) })
	defer stop()
	s.setRunning(true)
	defer s.setRunning(false)
	for s.host.Throttle().Resumed(ctx) == nil {
		select {
		case <-ctx.Done():
		case <-s.wake:
			b := source.Batch{Node: Node, Began: time.Now()}
			for name := range s.takeWanted() {
				b.Readings = append(b.Readings, s.read(name))
			}
			if len(b.Readings) > 0 {
				s.host.Apply(ctx, b)
			}
		}
	}
	return nil
}

func (s *Source) takeWanted() map[string]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.wanted
	s.wanted = map[string]struct{}{}
	return names
}

func (s *Source) setRunning(running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = running
}

// AwaitWatch implements [source.Source].
func (s *Source) AwaitWatch(ctx context.Context) {
	for ctx.Err() == nil && s.WatchState().Mode == source.WatchSweep {
		_ = source.Sleep(ctx, time.Millisecond) // the loop looks at ctx
	}
}

// Request implements [source.Source].
func (s *Source) Request(name string, _ bool) {
	s.mu.Lock()
	s.wanted[name] = struct{}{}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// WatchState implements [source.Source].
func (s *Source) WatchState() source.WatchState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return source.WatchState{Mode: source.WatchSweep, Reason: "nothing watches the target; only sweeps report it"}
	}
	return source.WatchState{Mode: source.WatchTracking}
}

// Renewed implements [source.Source]: there are no credentials.
func (*Source) Renewed() <-chan struct{} { return nil }

// Ready implements [source.Source]: a sweep costs nothing.
func (*Source) Ready(time.Time) time.Duration { return 0 }

// Stats implements [source.Source].
func (*Source) Stats() source.Stats { return source.Stats{Pace: map[string]pace.State{}} }

// Explain implements [source.Source].
func (*Source) Explain(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
