package etcdsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

const (
	// DefaultMaxKeys is how many keys a sweep reads at most, unless configured.
	DefaultMaxKeys = 200_000
	// DefaultPerSecond is how many requests a second are made at most, unless configured.
	DefaultPerSecond = 1000
)

// Options are what a [Source] needs beside its login.
type Options struct {
	// Digest is the installation's key for digests of holds.
	Digest locksteward.DigestKey
	// MaxKeys and PerSecond bound what a sweep reads and how many requests are made; 0 are
	// the defaults. Negative PerSecond is as many as etcd answers.
	MaxKeys, PerSecond int
	// Clock is the agent's clock; nil is time.Now.
	Clock func() time.Time
}

// Source reads the locks of one etcd. Make one with [Open], and close it.
type Source struct {
	conn    *conn
	node    string
	digest  locksteward.DigestKey
	maxKeys int
	reader  *reader
	rate    rate
	host    source.Host

	mu       sync.Mutex // guards what follows
	classes  *class.Set
	prefixes []string
	changed  chan struct{}        // closed when a watch must begin anew
	waiting  map[queued]time.Time // since when each waiter is known to wait
	wanted   map[string]time.Time // names to be read by Watch, and since when
	watch    watchState

	wake  chan struct{} // holds one token when wanted grew
	tried chan struct{} // closed when Watch has tried to watch once
	once  sync.Once     // closes tried
}

// queued is a waiter.
type queued struct {
	key    string
	create int64
}

var _ source.Source = (*Source)(nil)

// Open returns a source of the etcd that login names, or what is wrong with login. It
// does no I/O: connections are made when they are needed.
func Open(login source.Login, opts Options) (*Source, error) {
	c, err := newConn(login)
	if err != nil {
		return nil, err
	}
	s := &Source{
		conn: c, node: c.node(), digest: opts.Digest, maxKeys: cmp.Or(opts.MaxKeys, DefaultMaxKeys),
		rate: rate{perSecond: cmp.Or(opts.PerSecond, DefaultPerSecond)}, prefixes: []string{""}, changed: make(chan struct{}),
		waiting: map[queued]time.Time{}, wanted: map[string]time.Time{}, wake: make(chan struct{}, 1), tried: make(chan struct{}),
	}
	clock := opts.Clock
	if clock == nil {
		clock = time.Now
	}
	s.reader = newReader(c, clock)
	s.reader.before = s.turn
	s.reader.after = func() { s.host.Alive() }
	return s, nil
}

// Close ends the connections; nothing works afterwards.
func (s *Source) Close() { s.conn.close() }

// Traits implements [source.Source].
func (*Source) Traits() source.Traits {
	return source.Traits{
		Lifetimes:       []locksteward.Lifetime{locksteward.LifetimeLease, locksteward.LifetimePersistent},
		ExpiryTolerance: expiryTolerance, Watch: true, Waiters: true, Fences: true,
	}
}

// Topology implements [source.Source]: the members serve the same data, as one.
func (*Source) Topology() locksteward.Mode { return "" }

// DB implements [source.Source].
func (*Source) DB() int { return 0 }

// Bind implements [source.Source].
func (s *Source) Bind(host source.Host) { s.host = host }

// SetClasses implements [source.Source]: what is read follows from the patterns.
func (s *Source) SetClasses(classes *class.Set) {
	prefixes := prefixesOf(classes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.classes = classes
	if !slices.Equal(prefixes, s.prefixes) {
		s.prefixes, s.watch.next = prefixes, 0
		s.restart()
	}
}

// restart has a watch begin anew. The caller holds s.mu.
func (s *Source) restart() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// prefixesOf returns what the patterns of classes begin with, sorted, none of which
// begins with another. Without classes, or with a pattern that begins with a star, it is
// all there is.
func prefixesOf(classes *class.Set) []string {
	var all []string
	for _, c := range classes.All() {
		for _, pattern := range c.Match {
			all = append(all, class.LiteralPrefix(pattern))
		}
	}
	slices.Sort(all)
	var out []string
	for _, p := range all {
		if p == "" {
			return []string{""}
		}
		if len(out) == 0 || !strings.HasPrefix(p, out[len(out)-1]) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

// area returns what is read now, and what is closed when that changes.
func (s *Source) area() (prefixes []string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prefixes, s.changed
}

// kindOf says what a lock is by its name, and by its key where the pattern of a class
// ends behind the name of a queue; "" if the name is not that of a queue.
func (s *Source) kindOf(f *found) (kind locksteward.Kind, name string, configured bool) {
	s.mu.Lock()
	classes := s.classes
	s.mu.Unlock()
	m := classes.Classify(f.name)
	if !m.Configured && f.queue {
		if below := classes.Classify(f.head().key); below.Configured {
			m = below
		}
	}
	certain := recognise(f.name, f.head(), f.queue).confidence == locksteward.ConfidenceHigh
	switch {
	case m.Configured || m.Word || certain:
		return locksteward.KindLock, cmp.Or(m.Class, class.Default), m.Configured
	case m.Candidate:
		return locksteward.KindCandidate, m.Class, false
	}
	return "", "", false
}

// since returns when a waiter was first seen; now for a new one.
func (s *Source) since(e entry, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := queued{e.key, e.create}
	if at, ok := s.waiting[w]; ok {
		return at
	}
	s.waiting[w] = now
	return now
}

// forgetWaiters forgets those that a complete sweep did not see and that are older.
func (s *Source) forgetWaiters(seen map[queued]struct{}, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, at := range s.waiting {
		if _, ok := seen[w]; !ok && at.Before(began) {
			delete(s.waiting, w)
		}
	}
}

// turn returns when the next request may be made.
func (s *Source) turn(ctx context.Context) error {
	throttle := s.host.Throttle()
	if err := throttle.Pass(ctx); err != nil {
		return err
	}
	if d := s.rate.next(time.Now()); d > 0 {
		return throttle.Sleep(ctx, source.Reason(pace.Headroom), d)
	}
	return nil
}

// rate spaces requests.
type rate struct {
	perSecond int // not positive: no bound

	mu   sync.Mutex // guards what follows
	free time.Time  // when the next one may be made
}

// burst is how far requests may run ahead of their rate.
const burst = 100 * time.Millisecond

// next takes the place of one request and returns how long it has to wait.
func (r *rate) next(now time.Time) time.Duration {
	if r.perSecond <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := now.Add(-burst); r.free.Before(first) {
		r.free = first
	}
	r.free = r.free.Add(time.Second / time.Duration(r.perSecond))
	return r.free.Sub(now)
}

// Read implements [source.Source].
func (s *Source) Read(ctx context.Context, names []string, _ bool) ([]source.Batch, error) {
	b := source.Batch{Node: s.node, Began: time.Now()}
	looks, err := s.reader.names(ctx, names)
	if err != nil {
		return nil, err
	}
	leases, err := s.reader.settle(ctx, looks)
	if err != nil {
		return nil, err
	}
	for _, l := range looks {
		b.Readings = append(b.Readings, s.readingOf(l, leases))
	}
	return []source.Batch{b}, nil
}

// readingOf turns a look into what the scanner takes.
func (s *Source) readingOf(l looked, leases map[int64]lease) source.Reading {
	r := source.Reading{Name: l.name, At: l.at, State: source.Absent}
	switch {
	case l.err != nil:
		r.State = source.Unread
		return r
	case l.found == nil:
		return r
	}
	o, waiters := l.found.reading(l.at, leases, s.digest)
	kind, name, configured := s.kindOf(l.found)
	if kind == "" {
		r.State = source.NotLock
		return r
	}
	o.Target, o.Node, o.Kind, o.Class, o.Configured = s.host.Target().Name, s.node, kind, name, configured
	r.Lock = &o
	if kind == locksteward.KindCandidate {
		r.State = source.NotLock
		return r
	}
	r.State = source.Held
	for i := range waiters {
		waiters[i].Target, waiters[i].Class = o.Target, o.Class
		waiters[i].Since = s.since(l.found.keys[1+i], l.at)
	}
	r.Waiters = waiters
	return r
}

// Renewed implements [source.Source]: a password is read anew with each login.
func (*Source) Renewed() <-chan struct{} { return nil }

// Ready implements [source.Source]: what a sweep may take is bounded while it runs.
func (*Source) Ready(time.Time) time.Duration { return 0 }

// Stats implements [source.Source].
func (s *Source) Stats() source.Stats {
	out := source.Stats{Pace: map[string]pace.State{}}
	if prefixes, _ := s.area(); prefixes[0] == "" {
		out.Degraded = append(out.Degraded, fmt.Sprintf("no class has a pattern, or one begins with a star: all keys are read, %d at most; write patterns that begin as the locks do", s.maxKeys))
	}
	return out
}

// Explain implements [source.Source].
func (*Source) Explain(err error) string { return explain(err) }
