package zksource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

// DefaultTimeout is how long a request may take.
const DefaultTimeout = 5 * time.Second

// Options are the options of [Open].
type Options struct {
	// Digest is the installation's key.
	Digest locksteward.DigestKey
	// Timeout is how long a request may take, and half the time that our session outlives its
	// connection; 0 is [DefaultTimeout].
	Timeout time.Duration
}

// Source reads the locks of one ZooKeeper ensemble.
type Source struct {
	client *client
	digest locksteward.DigestKey
	host   source.Host
	index  index

	mu       sync.Mutex // guards what follows
	classes  *class.Set
	plan     plan
	planned  int               // counts plans
	addrs    map[int64]string  // of clients, by session
	stats    source.Stats      // of the last sweep
	state    source.WatchState // but for its classes
	tried    chan struct{}     // closed when Watch has tried to reach the servers
	dirty    map[string]bool   // paths that changed
	wanted   map[string]bool   // names to be read by Watch
	rearm    bool              // the watches are gone
	watching bool
	reads    int64 // by the watch

	wake chan struct{} // holds one token when the watch has something to do
}

var _ source.Source = (*Source)(nil)

// Open returns a source of the target that login names, or what is wrong with its settings.
// It does no I/O; a session begins when it is needed, and ends with [Source.Close].
func Open(login source.Login, opts Options) (*Source, error) {
	s := &Source{
		digest: opts.Digest, index: newIndex(), classes: &class.Set{}, addrs: map[int64]string{},
		stats: source.Stats{Pace: map[string]pace.State{}}, tried: make(chan struct{}), dirty: map[string]bool{}, wanted: map[string]bool{}, wake: make(chan struct{}, 1),
	}
	s.plan = newPlan(s.classes)
	var err error
	if s.client, err = newClient(login, cmp.Or(opts.Timeout, DefaultTimeout), s.event); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the session, and with it all calls that are under way.
func (s *Source) Close() { s.client.close() }

// Traits implements [source.Source].
func (*Source) Traits() source.Traits {
	return source.Traits{
		Lifetimes: []locksteward.Lifetime{locksteward.LifetimeSession, locksteward.LifetimePersistent},
		Watch:     true, Waiters: true,
	}
}

// Topology implements [source.Source]: an ensemble is one store.
func (*Source) Topology() locksteward.Mode { return "" }

// DB implements [source.Source].
func (*Source) DB() int { return 0 }

// Bind implements [source.Source].
func (s *Source) Bind(host source.Host) { s.host = host }

// SetClasses implements [source.Source].
func (s *Source) SetClasses(classes *class.Set) {
	p := newPlan(classes)
	s.mu.Lock()
	s.classes, s.plan = classes, p
	s.planned++
	s.mu.Unlock()
	s.awaken()
}

// currentPlan returns the plan and its number.
func (s *Source) currentPlan() (plan, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan, s.planned
}

// node is how the servers are called in readings: as one, since they have the same data.
func (s *Source) node() string { return s.client.spec.String() }

// reading is a hold as the scanner takes it.
func (s *Source) reading(h *hold) source.Reading {
	o := h.observation(s.digest)
	s.mu.Lock()
	match := s.classes.Classify(h.name)
	addr := s.addrs[h.stat.EphemeralOwner]
	s.mu.Unlock()
	o.Target, o.Node = s.host.Target().Name, s.node()
	o.Class, o.Configured = cmp.Or(match.Class, class.Default), match.Configured
	if o.Session != nil {
		o.Session.Addr = addr
		o.Session.Locks = s.index.others(h.stat.EphemeralOwner, h.name)
	}
	r := source.Reading{Name: h.name, State: source.Held, At: h.at, Lock: o}
	for _, w := range h.waiters {
		r.Waiters = append(r.Waiters, locksteward.Waiter{
			Target: o.Target, Key: h.name, Class: o.Class, ID: w.name, Session: sessionID(w.stat.EphemeralOwner),
			Since: time.UnixMilli(w.stat.Ctime), Until: h.at.Add(believed),
		})
	}
	return r
}

// believed is how long a waiter is believed to wait, unless it is read again.
const believed = time.Hour

// Read implements [source.Source].
func (s *Source) Read(ctx context.Context, names []string, _ bool) ([]source.Batch, error) {
	b := source.Batch{Node: s.node(), Began: time.Now()}
	holds := map[string][]hold{} // by directory
	for _, name := range names {
		dir := directoryOf(name)
		at := time.Now()
		got, read := holds[dir]
		if !read {
			var err error
			if got, err = (reader{client: s.client}).directory(ctx, dir); err != nil {
				s.failed(err)
				return batches(b), err
			}
			holds[dir] = got
			for i := range got {
				s.index.set(&got[i], dir)
			}
		}
		if i := slices.IndexFunc(got, func(h hold) bool { return h.name == name }); i >= 0 {
			b.Readings = append(b.Readings, s.reading(&got[i]))
		} else {
			s.index.remove(name)
			b.Readings = append(b.Readings, source.Reading{Name: name, State: source.Absent, At: at})
		}
	}
	return batches(b), nil
}

func batches(b source.Batch) []source.Batch {
	if len(b.Readings) == 0 {
		return nil
	}
	return []source.Batch{b}
}

// failed drops the session if its user lacks a right.
func (s *Source) failed(err error) {
	if isAuth(err) {
		s.client.reset()
	}
}

// Renewed implements [source.Source]: a password is read again when a right is missing.
func (*Source) Renewed() <-chan struct{} { return nil }

// Ready implements [source.Source]: a sweep waits for no budget.
func (*Source) Ready(time.Time) time.Duration { return 0 }

// Stats implements [source.Source].
func (s *Source) Stats() source.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// index knows which locks end with which session, and which shared holds are at which
// directory. It is safe for concurrent use.
type index struct {
	mu        sync.Mutex // guards what follows
	sessionOf map[string]int64
	bySession map[int64][]string // sorted
	shared    map[string]map[string]bool
}

func newIndex() index {
	return index{sessionOf: map[string]int64{}, bySession: map[int64][]string{}, shared: map[string]map[string]bool{}}
}

func (x *index) set(h *hold, dir string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h.name != dir {
		if x.shared[dir] == nil {
			x.shared[dir] = map[string]bool{}
		}
		x.shared[dir][h.name] = true
	}
	session := h.stat.EphemeralOwner
	if old, ok := x.sessionOf[h.name]; ok && old == session || session == 0 && !ok {
		return
	}
	x.forget(h.name)
	if session == 0 {
		return
	}
	x.sessionOf[h.name] = session
	names := x.bySession[session]
	i, _ := slices.BinarySearch(names, h.name)
	x.bySession[session] = slices.Insert(names, i, h.name)
}

func (x *index) remove(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(name)
	dir := directoryOf(name)
	if above, _ := splitPath(name); x.shared[dir] == nil {
		dir = above // a lease of kazoo
	}
	delete(x.shared[dir], name)
	if len(x.shared[dir]) == 0 {
		delete(x.shared, dir)
	}
}

// forget takes the lock from its session. The caller holds x.mu.
func (x *index) forget(name string) {
	session, ok := x.sessionOf[name]
	if !ok {
		return
	}
	delete(x.sessionOf, name)
	names := x.bySession[session]
	if i, found := slices.BinarySearch(names, name); found {
		names = slices.Delete(names, i, i+1)
	}
	if x.bySession[session] = names; len(names) == 0 {
		delete(x.bySession, session)
	}
}

// maxOthers bounds how many other locks of a session are named.
const maxOthers = 50

// others returns the other locks that end with the session of a lock, sorted.
func (x *index) others(session int64, name string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []string
	for _, n := range x.bySession[session] {
		if n != name && len(out) < maxOthers {
			out = append(out, n)
		}
	}
	return out
}

// at returns the names under which holds were read at a directory: its own, and those of
// shared holds.
func (x *index) at(dir string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := []string{dir}
	for name := range x.shared[dir] {
		out = append(out, name)
	}
	return out
}

// event takes the events of the session.
func (s *Source) event(e zk.Event) {
	s.mu.Lock()
	switch {
	case e.Type != zk.EventSession && e.Type != zk.EventNotWatching && e.Path != "":
		s.dirty[cmp.Or(strings.TrimPrefix(e.Path, s.client.spec.chroot), "/")] = true
	case e.Type == zk.EventSession && e.State == zk.StateHasSession:
		s.rearm = true // whatever the library restored
	case e.Type == zk.EventSession && e.State == zk.StateDisconnected && s.watching:
		s.rearm = true
		s.unwatch("the connection is interrupted; changes are reported when it is back")
	default:
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.awaken()
}

func (s *Source) awaken() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Explain implements [source.Source].
func (s *Source) Explain(err error) string { return explain(err, s.client.spec) }

// degraded are sentences on what a sweep did without.
func degraded(unread map[string]error, p plan, user string) []string {
	var out []string
	if len(p.paths) == 0 {
		out = append(out, "no class names a path, so nothing is read; configure one with a pattern such as /locks/*, or scan with --match '/locks/*'")
	}
	paths := make([]string, 0, len(unread))
	for path := range unread {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for i, path := range paths {
		if i == 10 {
			out = append(out, fmt.Sprintf("%d more directories could not be read", len(paths)-i))
			break
		}
		out = append(out, "locks at "+locksteward.DisplayKey(path)+" are not seen: "+explain(unread[path], spec{user: user}))
	}
	return out
}
