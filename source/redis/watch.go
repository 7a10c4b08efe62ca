package redis

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// How often the watch looks who the masters are: regularly, and at least that
// long after the last time when something broke.
const (
	refreshEvery = 5 * time.Second
	refreshLeast = 200 * time.Millisecond
)

// watcher watches a target. There is one for each scanner.
type watcher struct {
	s           *Source
	log         *zap.Logger
	watchBudget *budget // of what the watch reads
	pollBudget  *budget // of what it reads without a push
	refresh     chan struct{}

	began  time.Time
	delays delays

	events, reads, missed atomic.Int64

	mu        sync.Mutex
	running   bool
	ready     chan struct{} // closed when the first pairs were tried; another for each run
	plan      watchPlan
	optional  []string              // those of optionalPrefixes that are in the plan
	nodes     map[string]*nodeWatch // by address
	cancels   map[string]context.CancelFunc
	mastersAt time.Time     // when the masters were known last
	blind     time.Duration // of masters that are no more

	instances instanceCache
}

func newWatcher(s *Source) *watcher {
	share := func(part float64) float64 {
		if s.unpaced {
			return 1 // no limit
		}
		return min(1, float64(s.pace.Busy)*part)
	}
	return &watcher{
		s: s, began: time.Now(), log: s.log.Named("watch"), watchBudget: newBudget(share(watchPart), s.throttle), pollBudget: newBudget(share(pollPart), s.throttle), refresh: make(chan struct{}, 1), ready: make(chan struct{}),
		nodes: map[string]*nodeWatch{}, cancels: map[string]context.CancelFunc{},
		instances: newInstanceCache(),
	}
}

// Watch implements [source.Source].
func (s *Source) Watch(ctx context.Context) error { return s.watch.run(ctx) }

// AwaitWatch implements [source.Source].
func (s *Source) AwaitWatch(ctx context.Context) {
	s.watch.mu.Lock()
	ready := s.watch.ready
	s.watch.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
	}
}

// Request implements [source.Source].
func (s *Source) Request(name string, urgent bool) {
	if n := s.watch.ownerOf(name); n != nil && !n.queue.put(urgent, workItem{key: name}) {
		n.overrun()
	}
}

func (w *watcher) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	w.mu.Lock()
	w.running = true
	ready := w.ready // this run's, which stop replaces
	w.mu.Unlock()
	defer w.stop()
	wg.Go(func() { w.pollLoop(ctx) })
	for first := true; w.allowed(ctx) == nil; first = false {
		masters, err := w.s.conn.Masters(ctx)
		if err == nil {
			w.setMasters(ctx, &wg, masters)
		} else if ctx.Err() == nil {
			w.log.Debug("masters are not known", zap.Error(err))
		}
		if first {
			wg.Go(func() { w.awaitFirst(ctx, ready) })
		}
		if source.Sleep(ctx, refreshLeast) != nil {
			break
		}
		w.awaitRefresh(ctx)
	}
	return nil
}

// allowed returns when no operator's pause lasts, or with ctx's error.
func (w *watcher) allowed(ctx context.Context) error { return w.s.throttle.Resumed(ctx) }

// affordable returns when the watch may ask something of a server.
func (w *watcher) affordable(ctx context.Context) error {
	if err := w.allowed(ctx); err != nil {
		return err
	}
	return w.watchBudget.wait(ctx)
}

func (w *watcher) awaitRefresh(ctx context.Context) {
	timer := time.NewTimer(refreshEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.refresh:
	case <-timer.C:
	}
}

// awaitFirst closes ready when all masters that are known now were tried once, or when
// ctx is done.
func (w *watcher) awaitFirst(ctx context.Context, ready chan struct{}) {
	defer close(ready)
	for _, n := range w.all() {
		select {
		case <-n.tried:
		case <-ctx.Done():
		}
	}
}

// stop forgets all masters.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for addr := range w.nodes {
		w.remove(addr)
	}
	w.running, w.mastersAt = false, time.Time{}
	w.ready = make(chan struct{})
}

// refreshMasters asks who the masters are, soon.
func (w *watcher) refreshMasters() {
	select {
	case w.refresh <- struct{}{}:
	default:
	}
}

// setMasters starts to watch masters that are new and stops watching what is not a master any
// more.
func (w *watcher) setMasters(ctx context.Context, wg *sync.WaitGroup, masters []connect.Master) {
	w.mu.Lock()
	defer w.mu.Unlock()
	blindFrom := w.mastersAt
	for addr, n := range w.nodes {
		if !slices.ContainsFunc(masters, func(m connect.Master) bool { return m.Addr == addr }) {
			if from := n.blindSince(); !from.IsZero() && from.Before(blindFrom) {
				blindFrom = from // its keys are another's now, and nobody reports them yet
			}
			w.remove(addr)
		}
	}
	for _, m := range masters {
		if n, ok := w.nodes[m.Addr]; ok {
			n.setMaster(m)
			continue
		}
		n := newNodeWatch(w, m, w.plan)
		n.blindFrom = blindFrom
		var life context.Context
		life, w.cancels[m.Addr] = context.WithCancel(ctx)
		w.nodes[m.Addr] = n
		wg.Go(func() { n.watch(life) })
		wg.Go(func() { n.read(life) })
	}
	w.mastersAt = time.Now()
}

// remove stops a master's watch. w.mu is held.
func (w *watcher) remove(addr string) {
	w.cancels[addr]()
	w.blind += w.nodes[addr].blindUntil(time.Now())
	delete(w.cancels, addr)
	delete(w.nodes, addr)
}

// setClasses takes other classes. What sweeps taught stays as long as that is no
// other plan: to set up a watch anew is a blind moment.
func (w *watcher) setClasses(classes *class.Set) {
	w.mu.Lock()
	old, known := w.plan, w.optional
	w.mu.Unlock()
	if plan := newWatchPlan(classes, w.s.prefixes, known); len(known) > 0 && slices.Equal(plan.prefixes, old.prefixes) {
		w.setPlan(plan, known)
		return
	}
	optional := optionalPrefixes
	if patterned(classes) {
		optional = w.s.usedPrefixes(classes)
	}
	w.setPlan(newWatchPlan(classes, w.s.prefixes, optional), optional)
}

// learn has watched, too, what the last sweep found beside the classes. It stays
// so until there are other classes: to set up a watch anew is a blind moment.
func (w *watcher) learn() {
	classes := w.s.classes.Load()
	w.mu.Lock()
	known := w.optional
	w.mu.Unlock()
	if len(known) == len(optionalPrefixes) {
		return
	}
	optional := slices.Clone(known)
	for _, p := range w.s.usedPrefixes(classes) {
		if !slices.Contains(known, p) {
			optional = append(optional, p)
		}
	}
	if len(optional) > len(known) {
		w.setPlan(newWatchPlan(classes, w.s.prefixes, optional), optional)
	}
}

// setPlan has all masters watched by a plan with these optional prefixes.
func (w *watcher) setPlan(plan watchPlan, optional []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan, w.optional = plan, optional
	for _, n := range w.nodes {
		n.setPlan(plan)
	}
}

func (w *watcher) node(addr string) *nodeWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[addr]
}

func (w *watcher) all() []*nodeWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*nodeWatch, 0, len(w.nodes))
	for _, n := range w.nodes {
		out = append(out, n)
	}
	return out
}

// ownerOf returns the watch of the master that owns key, nil if none does.
func (w *watcher) ownerOf(key string) *nodeWatch {
	for _, n := range w.all() {
		n.mu.Lock()
		owns := n.master.Owns(key)
		n.mu.Unlock()
		if owns {
			return n
		}
	}
	return nil
}

// mayBeLock says by its name whether a key that changed is worth a look.
func (s *Source) mayBeLock(key string) bool {
	if s.remember(key).known {
		return true
	}
	if match := s.classes.Load().Classify(key); match == (class.Match{}) && !formats.MayBeLock(key) {
		return false
	}
	_, _, helper := formats.AuxiliaryKey(key)
	return !helper
}
