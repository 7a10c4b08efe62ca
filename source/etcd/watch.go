package etcdsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

const (
	// gather is for how long changes are gathered before they are read together.
	gather = 5 * time.Millisecond
	// retryAfter is before the next attempt to watch or to read.
	retryAfter = time.Second
	// askEvery is how often a watch without news is asked for a sign of life, and
	// silentFor how long it may give none.
	askEvery  = 10 * time.Second
	silentFor = 30 * time.Second
)

// watchState is how far the target is watched.
type watchState struct {
	on       bool
	since    time.Time
	lastGood time.Time
	reason   string
	// next is the revision behind that of the last complete sweep, with which a watch
	// begins; 0: it begins now, and a sweep follows.
	next          int64
	events, reads int64
	delays        [2]time.Duration // the longest of this half minute and the one before
	half          time.Time        // when this half minute began
}

var (
	errChanged = errors.New("the classes changed")
	errSilent  = fmt.Errorf("the watch gave no sign of life for %s", silentFor)
)

// Watch implements [source.Source]: etcd sends the keys that changed, and those are read.
func (s *Source) Watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.readWanted(ctx) })
	for s.host.Throttle().Resumed(ctx) == nil {
		err := s.watchOnce(ctx)
		s.unwatched(err)
		if !errors.Is(err, errChanged) {
			_ = source.Sleep(ctx, retryAfter) // the loop looks at ctx
		}
	}
	return nil
}

// watchOnce watches until something fails, the classes change or ctx is done.
func (s *Source) watchOnce(ctx context.Context) error {
	prefixes, changed := s.area()
	client, err := s.conn.get(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	s.mu.Lock()
	from := s.watch.next
	s.mu.Unlock()
	news := make(chan clientv3.WatchResponse)
	for _, prefix := range prefixes {
		key, opts := prefix, []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithCreatedNotify()}
		if prefix == "" {
			key, opts[0] = "\x00", clientv3.WithFromKey()
		}
		responses := client.Watch(ctx, key, opts...)
		wg.Go(func() {
			for r := range responses {
				select {
				case news <- r:
				case <-ctx.Done():
				}
			}
			if ctx.Err() == nil {
				select {
				case news <- clientv3.WatchResponse{Canceled: true}:
				case <-ctx.Done():
				}
			}
		})
	}
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	lastAnswer, created := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			return errChanged
		case <-ask.C:
			if time.Since(lastAnswer) > silentFor {
				return errSilent
			}
			if created == len(prefixes) {
				if err := client.RequestProgress(ctx); err != nil {
					return err
				}
			}
		case r := <-news:
			lastAnswer = time.Now()
			if r.CompactRevision != 0 {
				s.mu.Lock()
				s.watch.next = 0 // etcd does not send earlier events any more
				s.mu.Unlock()
			}
			if err := r.Err(); err != nil {
				if loginRefused(err) || strings.Contains(err.Error(), "permission denied") {
					s.conn.drop(client) // another login may have other rights
				}
				return err
			}
			if r.Created {
				if created++; created == len(prefixes) {
					s.watched(from == 0)
				}
			}
			s.hear(r)
		}
	}
}

// hear notes the names of the locks that changed.
func (s *Source) hear(r clientv3.WatchResponse) {
	names := s.namesOf(r.Events)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.lastGood = now
	s.watch.events += int64(len(r.Events))
	for _, name := range names {
		s.want(name, now)
	}
}

// namesOf returns the names that the locks of changed keys may have. The event of a deletion
// does not say the lease: whether the key stood in a queue, the host knows.
func (s *Source) namesOf(events []*clientv3.Event) []string {
	var out []string
	for _, event := range events {
		e := entryOf(event.Kv)
		if strings.HasPrefix(e.key, recordPrefix) {
			continue
		}
		out = append(out, e.key)
		if name, ok := queueOf(&e); ok {
			out = append(out, name)
		} else if i := strings.LastIndexByte(e.key, '/'); i > 0 && event.Type == mvccpb.DELETE {
			if k, known := s.host.Lookup(e.key[:i]); known && k.Type == typeQueue {
				out = append(out, k.Name)
			}
		}
	}
	return out
}

// want has a name read. The caller holds s.mu.
func (s *Source) want(name string, at time.Time) {
	if _, ok := s.wanted[name]; !ok {
		s.wanted[name] = at
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Request implements [source.Source].
func (s *Source) Request(name string, _ bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want(name, time.Now())
}

// readWanted reads what changed or was asked for, until ctx is done.
func (s *Source) readWanted(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if source.Sleep(ctx, gather) != nil {
			return
		}
		s.mu.Lock()
		wanted := s.wanted
		s.wanted = map[string]time.Time{}
		s.mu.Unlock()
		for names := range slices.Chunk(slices.Sorted(maps.Keys(wanted)), namesAtOnce) {
			batches, err := s.Read(ctx, names, false)
			if err != nil {
				s.again(wanted)
				_ = source.Sleep(ctx, retryAfter) // the loop looks at ctx
				break
			}
			for _, b := range batches {
				// What is no lock and was none before is no news: half of the names are guesses.
				b.Readings = slices.DeleteFunc(b.Readings, func(r source.Reading) bool {
					_, known := s.host.Lookup(r.Name)
					return r.State != source.Held && !known
				})
				if len(b.Readings) > 0 {
					s.host.Apply(ctx, b)
				}
			}
			s.wasRead(wanted, names)
		}
	}
}

// again has all of wanted read once more: what was read already is read twice.
func (s *Source) again(wanted map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, at := range wanted {
		s.want(name, at)
	}
}

// wasRead counts names that were read, and how long that took since they were wanted.
func (s *Source) wasRead(wanted map[string]time.Time, names []string) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	w.reads += int64(len(names))
	if now.Sub(w.half) > 30*time.Second {
		w.half, w.delays = now, [2]time.Duration{0, w.delays[0]}
	}
	for _, name := range names {
		w.delays[0] = max(w.delays[0], now.Sub(wanted[name]))
		delete(wanted, name)
	}
}

// sweptAt notes up to which revision a sweep has seen all.
func (s *Source) sweptAt(rev int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev+1 < s.watch.next {
		s.restart() // restored from a backup: a watch would wait for revisions to come
	}
	s.watch.next = rev + 1
}

// watched notes that etcd sends all changes from now on; those before are for a sweep
// to find if blind is set.
func (s *Source) watched(blind bool) {
	s.mu.Lock()
	s.watch.on, s.watch.since, s.watch.reason = true, time.Now(), ""
	s.mu.Unlock()
	s.once.Do(func() { close(s.tried) })
	if blind {
		s.host.RequestSweep()
	}
}

// unwatched notes that it does not.
func (s *Source) unwatched(err error) {
	s.mu.Lock()
	s.watch.on, s.watch.reason = false, ""
	if err != nil && !errors.Is(err, errChanged) {
		s.watch.reason = explain(err)
	}
	s.mu.Unlock()
	s.once.Do(func() { close(s.tried) })
}

// AwaitWatch implements [source.Source].
func (s *Source) AwaitWatch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.tried:
	}
}

// WatchState implements [source.Source]. A watch of etcd is called by the word for pushes
// of all changes.
func (s *Source) WatchState() source.WatchState {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	out := source.WatchState{Mode: source.WatchSweep, Events: w.events, Reads: w.reads, Waiting: len(s.wanted), Delay: max(w.delays[0], w.delays[1])}
	for _, at := range s.wanted {
		out.Delay = max(out.Delay, time.Since(at))
	}
	switch {
	case w.on:
		out.Mode = source.WatchTracking
	case w.reason != "":
		out.Reason = w.reason
	default:
		out.Reason = "nothing watches the target; only sweeps report it"
	}
	out.Nodes = []source.NodeWatch{{Addr: s.node, Mode: out.Mode, Reason: out.Reason, Since: w.since, LastGood: w.lastGood, Repaired: true, Prefixes: slices.Clone(s.prefixes)}}
	if s.classes == nil {
		return out
	}
	coverage := source.CoverageNone
	if w.on {
		coverage = source.CoverageFull
	}
	for _, c := range s.classes.All() {
		out.Classes = append(out.Classes, source.ClassWatch{Class: c.Name, Coverage: coverage, Reason: out.Reason})
	}
	if slices.ContainsFunc(out.Classes, func(c source.ClassWatch) bool { return c.Class == class.Default }) {
		return out
	}
	rest := source.ClassWatch{Class: class.Default, Coverage: coverage, Reason: out.Reason}
	if s.prefixes[0] != "" {
		rest.Coverage, rest.Reason = source.CoveragePart, "only what begins as the classes' patterns do is read; configure a class for other locks"
	}
	out.Classes = append(out.Classes, rest)
	return out
}
