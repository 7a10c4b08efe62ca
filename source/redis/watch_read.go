package redis

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// Times of reading after pushes.
const (
	// window is the least time between two batches of a master: the first change is
	// read at once, and what follows within it is read together. After a batch of
	// manyChanges or more the next one has longWindow: of most locks both ends are in
	// one batch then, and one look reports them.
	window      = 20 * time.Millisecond
	longWindow  = 60 * time.Millisecond
	manyChanges = 32
	// batchMost is how many keys are prefiltered and handed on together: each round trip
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
			if source.Sleep(ctx, pause-time.Since(last)) != nil {
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
		return source.Sleep(ctx, afterError) == nil
	}
	return true
}

// readBatch reads some keys and reports their changes. Keys that could not be
// read go back into the queue, as urgent as they were; an error says that none could.
func (n *nodeWatch) readBatch(ctx context.Context, items []workItem) error {
	if len(items) == 0 {
		return nil
	}
	defer n.queue.done(items)
	err := n.w.affordable(ctx)
	if err == nil {
		err = n.readNow(ctx, items)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errMoved) && len(items) > 1:
		// One of them is elsewhere: find it.
		half := len(items) / 2
		if err := n.readBatch(ctx, items[:half]); err != nil && !errors.Is(err, errMoved) {
			if !n.queue.put(false, items[half:]...) {
				n.overrun()
			}
			return err
		}
		if err := n.readBatch(ctx, items[half:]); !errors.Is(err, errMoved) {
			return err
		}
		return nil
	case errors.Is(err, errMoved):
		n.w.refreshMasters()
		n.again(items)
		return err
	}
	if !n.queue.put(false, items...) {
		n.overrun()
	}
	return err
}

// again queues keys that could not be read, not for ever; the next sweep reports
// the others. A key of another master goes there.
func (n *nodeWatch) again(items []workItem) {
	for _, e := range items {
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
		client: client, node: n.addr, clockRead: n.w.s.host.ClockRead, caps: n.w.s.caps, prefixes: n.w.s.prefixes,
		call: func(_ context.Context, count int, pipeline func() error) error {
			began := time.Now()
			err := pipeline()
			cost := n.reads.of(count, time.Since(began))
			n.w.watchBudget.spend(cost)
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
func (n *nodeWatch) readNow(ctx context.Context, items []workItem) error {
	r := n.reader(nil)
	began := time.Now()
	some := n.prefilter(items)
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
		n.apply(ctx, began, some.over, some.results)
	}
	return nil
}

// inspect reads keys in full and reports their changes.
func (n *nodeWatch) inspect(ctx context.Context, r *reader, items []workItem) error {
	s := n.w.s
	classes := s.classes.Load()
	subjects := make([]subject, len(items))
	goneRate := make([]*share, len(items))
	for i, e := range items {
		sub := subject{key: e.key, match: classes.Classify(e.key), metaPrefix: e.metaPrefix, memory: s.remember(e.key)}
		goneRate[i] = &n.goneRates[n.goneRates.index(&e, sub.known)]
		if !sub.known && e.written {
			// Most locks are strings, and one that was written just now has no idle
			// time: two questions less. Another type says so itself.
			sub.known, sub.typ = true, "string"
		}
		subjects[i] = sub
	}
	began := time.Now()
	readings, err := r.inspect(ctx, subjects)
	if err != nil {
		return err
	}
	n.w.reads.Add(int64(len(readings)))
	for i := range readings {
		goneRate[i].note(readings[i].as == gone)
	}
	if err := n.readWaiters(ctx, r, items, readings); err != nil {
		return err
	}
	o := observer{target: s.target, digest: s.digest, placeholder: s.placeholder, texts: texts{}}
	results := make([]*keyReading, len(readings))
	for i := range readings {
		results[i] = &readings[i]
		o.complete(results[i], n.addr)
		if l := results[i].lock; l != nil && l.Library == formats.Locksteward {
			l.Waiters = int(n.waitersOf(l.Key))
		}
	}
	n.w.instances.join(ctx, n.w, results)
	n.apply(ctx, began, items, results)
	return nil
}

// waitersOf returns how many wait for a lock of ours, by what was read last.
func (n *nodeWatch) waitersOf(key string) int32 {
	n.mu.Lock()
	count, counted := n.waiting[key]
	n.mu.Unlock()
	if counted {
		return count
	}
	if k, ok := n.w.s.host.Lookup(key); ok && k.Library == formats.Locksteward {
		return max(0, k.Waiters) // as a sweep counted them
	}
	return 0
}

// readWaiters reads who waits where a push announced it; until the watch knows of
// all waiters, for every lock of ours.
func (n *nodeWatch) readWaiters(ctx context.Context, r *reader, items []workItem, readings []keyReading) error {
	n.mu.Lock()
	all := !n.repaired
	n.mu.Unlock()
	var keys []waitKey
	for i, e := range items {
		s := &readings[i]
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
		return nil
	}
	waiterSets, err := r.waiters(ctx, keys)
	if err != nil {
		return err
	}
	n.w.s.complete(waiterSets)
	for i := range readings {
		readings[i].waiters = waiterSets[readings[i].key].Waiters
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range keys {
		if count := waiterSets[k.lock].Count; count >= 0 {
			n.waiting[k.lock] = int32(count)
		}
	}
	return nil
}

// forgetWaiters drops counts that are 0, now that they are in the table.
func (n *nodeWatch) forgetWaiters(results []*keyReading) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range results {
		if n.waiting[s.key] == 0 {
			delete(n.waiting, s.key)
		}
	}
}

// apply passes readings to the scanner.
func (n *nodeWatch) apply(ctx context.Context, began time.Time, items []workItem, results []*keyReading) {
	batch := source.Batch{Node: n.addr, Began: began}
	var unsure []workItem
	var since int64
	for i, seen := range results {
		r := seen.reading()
		if r.State == source.Unread {
			unsure = append(unsure, items[i])
			continue
		}
		since = sooner(since, items[i].since)
		batch.Readings = append(batch.Readings, r)
	}
	n.w.s.host.Apply(ctx, batch)
	n.forgetWaiters(results)
	n.again(unsure)
	n.handedOn(since)
}
