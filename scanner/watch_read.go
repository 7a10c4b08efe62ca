package scanner

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Times of reading after pushes.
const (
	// window is the least time between two batches of a master: the first change is
	// read at once, and what follows within it is read together. After a batch of
	// manyChanges or more the next one has longWindow: of most locks both ends are in
	// one batch then, and one look tells of them.
	window      = 20 * time.Millisecond
	longWindow  = 60 * time.Millisecond
	manyChanges = 32
	// batchMost is how many keys are sifted and handed on together: each round trip
	// costs the server as much as some ten commands.
	batchMost = 4 * subjectsPerLook
	// afterError is the wait before a failed batch is tried again.
	afterError = 100 * time.Millisecond
	// maxTries bounds looks at a key that changes under each of them.
	maxTries = 5
)

// read reads what is queued until ctx ends.
func (n *nodeWatch) read(ctx context.Context) {
	var last time.Time
	pause := window
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.queue.wake:
		}
		for !n.queue.empty() {
			if sleep(ctx, pause-time.Since(last)) != nil {
				return
			}
			last = time.Now()
			pause = windowAfter(n.queue.changes())
			if !n.readQueued(ctx, n.queue.size()) {
				return
			}
		}
	}
}

// windowAfter is the least time from a batch with so many changes to the next.
func windowAfter(changes int) time.Duration {
	if changes >= manyChanges {
		return longWindow
	}
	return window
}

// readQueued reads so many of the queued keys, or as many as it can. It returns
// false when ctx has ended.
func (n *nodeWatch) readQueued(ctx context.Context, rest int) bool {
	for ; rest > 0; rest -= batchMost {
		err := n.readBatch(ctx, n.queue.take(min(rest, batchMost)))
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return false
		}
		n.w.log.Debug("changed keys are not read", zap.String("node", n.addr), zap.Error(err))
		return sleep(ctx, afterError) == nil
	}
	return true
}

// readBatch reads some keys and hands on what they tell. Keys that could not be
// read go back into the queue, as urgent as they were; an error says that none could.
func (n *nodeWatch) readBatch(ctx context.Context, errands []errand) error {
	if len(errands) == 0 {
		return nil
	}
	defer n.queue.done(errands)
	err := n.w.affordable(ctx)
	if err == nil {
		err = n.readNow(ctx, errands)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errMoved) && len(errands) > 1:
		// One of them is elsewhere: find it.
		half := len(errands) / 2
		if err := n.readBatch(ctx, errands[:half]); err != nil && !errors.Is(err, errMoved) {
			if !n.queue.put(false, errands[half:]...) {
				n.overrun()
			}
			return err
		}
		if err := n.readBatch(ctx, errands[half:]); !errors.Is(err, errMoved) {
			return err
		}
		return nil
	case errors.Is(err, errMoved):
		n.w.lookAround()
		n.again(errands)
		return err
	}
	if !n.queue.put(false, errands...) {
		n.overrun()
	}
	return err
}

// again queues keys that could not be read, not for ever; the next sweep tells of
// the others. A key of another master goes there.
func (n *nodeWatch) again(errands []errand) {
	for _, e := range errands {
		if e.tries++; e.tries >= maxTries {
			continue
		}
		to := n
		if owner := n.w.ownerOf(e.key); owner != nil {
			to = owner
		}
		if !to.queue.put(false, e) {
			to.overrun()
		}
	}
}

// reader reads for the watch: under its budget, which the caller waited for. It
// is booked in also, if that is not nil.
func (n *nodeWatch) reader(also *budget) *reader {
	n.mu.Lock()
	client := n.master.Client
	n.mu.Unlock()
	return &reader{
		client: client, node: n.addr, table: n.w.s.table, caps: n.w.s.caps, prefixes: n.w.s.prefixes,
		call: func(_ context.Context, count int, pipeline func() error) error {
			began := time.Now()
			err := pipeline()
			cost := n.reads.of(count, time.Since(began))
			n.w.gaze.spend(cost)
			if also != nil {
				also.spend(cost)
			}
			n.w.s.book(n.addr, cost)
			return err
		},
	}
}

// readNow reads keys and hands on what they tell: first what most likely stands, and
// together with it whether the others are gone; then what is left of these.
func (n *nodeWatch) readNow(ctx context.Context, errands []errand) error {
	r := n.reader(nil)
	began := time.Now()
	some := n.sift(errands)
	for len(some.left)+len(some.groups) > 0 {
		now, asked := some.questions(ctx)
		r.along = asked
		left := some.left
		some.left = nil
		for chunk := range slices.Chunk(left, subjectsPerLook) {
			if err := n.inspect(ctx, r, chunk); err != nil {
				return err
			}
		}
		if err := r.flush(ctx); err != nil {
			return err
		}
		if now == nil {
			break
		}
		if err := n.answered(r, &some, now.Val()); err != nil {
			return err
		}
	}
	n.w.reads.Add(int64(len(some.over)))
	if len(some.over) > 0 {
		n.settle(ctx, began, some.over, some.glances, nil)
	}
	return nil
}

// inspect reads keys in full and hands on what they tell.
func (n *nodeWatch) inspect(ctx context.Context, r *reader, errands []errand) error {
	s := n.w.s
	classes := s.classes.Load()
	subjects := make([]subject, len(errands))
	odds := make([]*share, len(errands))
	for i, e := range errands {
		sub := subject{key: e.key, match: classes.Classify(e.key), metaPrefix: e.metaPrefix, memory: s.table.remember(e.key)}
		odds[i] = &n.vanished[n.vanished.index(&e, sub.known)]
		if !sub.known && e.written {
			// Most locks are strings, and one that was written just now has no idle
			// time: two questions less. Another type says so itself.
			sub.known, sub.typ = true, "string"
		}
		subjects[i] = sub
	}
	began := time.Now()
	sights, err := r.inspect(ctx, subjects)
	if err != nil {
		return err
	}
	n.w.reads.Add(int64(len(sights)))
	for i := range sights {
		odds[i].note(sights[i].as == gone)
	}
	waiters, err := n.readWaiters(ctx, r, errands, sights)
	if err != nil {
		return err
	}
	o := observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}}
	glances := make([]watchGlance, len(sights))
	for i := range sights {
		glances[i] = n.glance(&o, &sights[i])
	}
	n.w.instances.join(ctx, n.w, glances)
	n.settle(ctx, began, errands, glances, waiters)
	return nil
}

// watchGlance is one look of the watch: l is nil unless it saw a lock.
type watchGlance struct {
	node  string // that was asked
	sight *sight
	l     *look
	shape shape
	lost  []locksteward.Loss
}

func (n *nodeWatch) glance(o *observer, seen *sight) watchGlance {
	g := watchGlance{node: n.addr, sight: seen, lost: lossesOf(seen, n.w.s.target, n.addr)}
	if seen.as != there {
		return g
	}
	obs, ok := o.observe(seen, n.addr)
	if !ok || obs.Kind != locksteward.KindLock {
		return g
	}
	l, shape := pack(obs)
	if shape.dialect == formats.Locksteward {
		l.waiters = n.waitersOf(seen.key)
	}
	g.l, g.shape = &l, shape
	return g
}

// waitersOf returns how many wait for a lock of ours, by what was read last.
func (n *nodeWatch) waitersOf(key string) int32 {
	n.mu.Lock()
	count, counted := n.waiting[key]
	n.mu.Unlock()
	if counted {
		return count
	}
	t := n.w.s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e, ok := t.entries[key]; ok && e.kind.dialect == formats.Locksteward {
		return max(0, e.waiters) // as a sweep counted them
	}
	return 0
}

// readWaiters reads who waits where a push told of it; until the watch knows of
// all waiters, for every lock of ours.
func (n *nodeWatch) readWaiters(ctx context.Context, r *reader, errands []errand, sights []sight) ([]locksteward.Waiter, error) {
	n.mu.Lock()
	all := !n.repaired
	n.mu.Unlock()
	var keys []waitKey
	for i, e := range errands {
		s := &sights[i]
		if s.as == unread || !e.waiters && !all {
			continue
		}
		prefix := s.meta.prefix
		if prefix == "" {
			prefix = r.prefixes[0]
		}
		if e.waiters || s.id() != "" {
			keys = append(keys, waitKey{lock: e.key, key: record.Companion(prefix, record.KindWaiter, e.key)})
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	crowds, err := r.waiters(ctx, keys)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range keys {
		if count := crowds[k.lock].count; count >= 0 {
			n.waiting[k.lock] = int32(count)
		}
	}
	return n.w.s.listed(crowds), nil
}

// forgetWaiters drops counts that are 0, now that they are in the table.
func (n *nodeWatch) forgetWaiters(glances []watchGlance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range glances {
		if n.waiting[g.sight.key] == 0 {
			delete(n.waiting, g.sight.key)
		}
	}
}

// settle takes what was seen into the table and hands it on.
func (n *nodeWatch) settle(ctx context.Context, began time.Time, errands []errand, glances []watchGlance, waiters []locksteward.Waiter) {
	s := n.w.s
	sweep := locksteward.Sweep{Target: s.target.Name, Started: began, Duration: time.Since(began), Waiters: waiters}
	var unsure []errand
	var since int64
	s.order.Lock()
	defer s.order.Unlock()
	s.table.mu.Lock()
	for i, g := range glances {
		if g.sight.as == unread || g.sight.as == retyped {
			unsure = append(unsure, errands[i])
			continue
		}
		since = sooner(since, errands[i].since)
		s.take(&sweep, g)
	}
	if len(sweep.Endings) > 0 {
		sweep.Events = s.table.flushes()
	}
	s.table.mu.Unlock()
	n.forgetWaiters(glances)
	n.again(unsure)
	if len(sweep.Locks)+len(sweep.Endings)+len(sweep.Losses) > 0 {
		sortLocks(sweep.Locks)
		sortLosses(sweep.Losses)
		n.w.sink(ctx, sweep)
	}
	n.handedOn(since)
}

// take takes one look into the table and puts what it tells into sweep. The
// table is locked.
func (s *Scanner) take(sweep *locksteward.Sweep, g watchGlance) {
	t, key, at := s.table, g.sight.key, micros(g.sight.at)
	sweep.At = maxTime(sweep.At, g.sight.at)
	sweep.Losses = append(sweep.Losses, g.lost...)
	if g.l != nil {
		g.l.kind = t.intern(g.shape)
	}
	known := t.entries[key]
	now, ended := t.apply(reading{key: key, lock: g.l, at: at, began: sweep.Started})
	switch {
	case ended != nil:
		end, flushed := s.ending(ended, g.sight, g.node, g.lost)
		if flushed && g.sight.as == gone && ended.claim != nil && lossOf(ended, g.lost) == nil {
			loss := t.lossByFlush(ended, g.sight.at)
			if t.flushed[ended.kind.node].ordered {
				sweep.Losses = append(sweep.Losses, loss)
			} // else the next sweep reports what the restart took, and these with it
		}
		sweep.Endings = append(sweep.Endings, end)
	case now != nil && known != nil && now != known:
		t.outlived(known, sweep.Started)
	}
	if now != nil {
		sweep.Locks = append(sweep.Locks, now.lock(s.target))
	}
}
