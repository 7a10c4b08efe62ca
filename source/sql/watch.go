package sqlsource

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward/source"
)

// watch polls the parts in turn: one statement for each turn.
type watch struct {
	mu     sync.Mutex // guards what follows; never held over I/O
	mode   source.WatchMode
	reason string
	wanted []string // names that are to be read before others
	due    map[string]time.Time
	reads  int64

	tried chan struct{} // closed after the first poll
	once  sync.Once
}

func newWatch() *watch {
	return &watch{mode: source.WatchSweep, reason: "nothing watches the target; only sweeps report it", tried: make(chan struct{})}
}

// fingerprint is what of a lock must differ for it to be passed on again.
type fingerprint struct {
	digest, state string
	expireAt      int64
	waiters       int
}

// Watch implements [source.Source].
func (s *Source) Watch(ctx context.Context) error {
	w := s.watch
	defer w.set(source.WatchSweep, "nothing watches the target; only sweeps report it")
	w.mu.Lock()
	w.due = map[string]time.Time{}
	w.mu.Unlock()
	seen := map[string]map[string]fingerprint{} // by node and name
	for s.host.Throttle().Resumed(ctx) == nil {
		next := s.poll(ctx, seen)
		w.once.Do(func() { close(w.tried) })
		if source.Sleep(ctx, time.Until(next)) != nil {
			break
		}
	}
	return nil
}

// poll reads the part whose turn it is, and returns when the next turn is.
func (s *Source) poll(ctx context.Context, seen map[string]map[string]fingerprint) time.Time {
	began := time.Now()
	s.mu.Lock()
	plan, st := s.plan, s.state
	s.mu.Unlock()
	p := s.watch.choose(plan, began)
	if p == nil { // before the first sweep, or all rest
		return began.Add(s.opts.PollEvery)
	}
	b := source.Batch{Node: p.node, Began: began}
	snap, err := s.read(ctx, s.db, p, st, nil)
	took := time.Since(began)
	s.watch.took(p, began, took)
	if ctx.Err() != nil {
		return began
	}
	if err != nil {
		s.watch.set(source.WatchSweep, s.Explain(err))
		if s.dialect.missing(err) {
			s.host.RequestSweep()
		}
		return time.Now().Add(s.opts.PollEvery)
	}
	s.host.Alive()
	s.watch.set(source.WatchPoll, "the database pushes nothing: its locks are read in turn, one table a second")
	b.Readings = s.changes(plan, p, snap, seen)
	if len(b.Readings) > 0 {
		s.host.Apply(ctx, b)
	}
	return began.Add(s.opts.PollEvery)
}

// changes returns the readings of locks that are other than when the part was polled before.
func (s *Source) changes(plan plan, p *part, snap snapshot, seen map[string]map[string]fingerprint) []source.Reading {
	before, now := seen[p.node], make(map[string]fingerprint, len(snap.holds))
	var out []source.Reading
	for i := range snap.holds {
		h := &snap.holds[i]
		r := s.reading(p, h)
		f := fingerprint{digest: h.obs.TokenDigest, expireAt: h.obs.ExpireAt, waiters: h.obs.Waiters}
		if h.obs.Session != nil {
			f.state = string(h.obs.Session.State)
		}
		now[h.obs.Key] = f
		_, known := s.host.Lookup(h.obs.Key) // a sweep may have missed it between two of its holds
		if old, ok := before[h.obs.Key]; !ok || old != f || !known {
			out = append(out, r)
		}
	}
	owns := plan.owner(p)
	s.host.Each(func(k source.Known) {
		if _, ok := now[k.Name]; !ok && owns(k.Name) {
			out = append(out, source.Reading{Name: k.Name, State: source.Absent, At: snap.at})
		}
	})
	seen[p.node] = now
	return out
}

// choose returns the part whose turn it is: one that has a wanted name, else the one whose last turn
// was the longest ago. A slow one rests between its turns.
func (w *watch) choose(plan plan, now time.Time) *part {
	w.mu.Lock()
	defer w.mu.Unlock()
	var best *part
	for _, p := range plan.parts {
		if p.err != nil || w.due[p.node].After(now) {
			continue
		}
		if slices.ContainsFunc(w.wanted, plan.owner(p)) {
			best = p
			break
		}
		if best == nil || w.due[p.node].Before(w.due[best.node]) {
			best = p
		}
	}
	if best != nil {
		w.wanted = slices.DeleteFunc(w.wanted, plan.owner(best))
	}
	return best
}

func (w *watch) took(p *part, began time.Time, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	w.due[p.node] = began.Add(share * took)
}

func (w *watch) set(mode source.WatchMode, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode, w.reason = mode, reason
}

// AwaitWatch implements [source.Source].
func (s *Source) AwaitWatch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.watch.tried:
	}
}

// maxWanted bounds the names that are to be read before others: all parts have their turn anyway.
const maxWanted = 1000

// Request implements [source.Source].
func (s *Source) Request(name string, _ bool) {
	w := s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wanted) < maxWanted {
		w.wanted = append(w.wanted, name)
	}
}

// WatchState implements [source.Source].
func (s *Source) WatchState() source.WatchState {
	w := s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	return source.WatchState{Mode: w.mode, Reason: w.reason, Reads: w.reads, Waiting: len(w.wanted)}
}
