package agent

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

const (
	// diaryEvery is how often the diary is written.
	diaryEvery = time.Second
	// diaryRests is for how long it leaves a store alone that did not take it: each
	// attempt at a file that is locked keeps what matters more waiting.
	diaryRests = 10 * time.Second
	// diaryBatch is how much of it at once, and so the most in a second.
	diaryBatch = 2000
	// diaryQueue is how much may wait for a store that does not work.
	diaryQueue = 20_000
	// diaryKept, diaryRows and diaryPrune are how long it is kept, how much of it,
	// and how much is written before it is looked whether that is too much.
	diaryKept  = 30 * 24 * time.Hour
	diaryRows  = 200_000
	diaryPrune = 20_000
	// diaryTrim is how many events of one lock are written before those that are too
	// many are forgotten, diaryCounts of how many locks they are counted.
	diaryTrim   = 25
	diaryCounts = 50_000
	// diaryFarewell is how long the end of the agent waits for the last of it.
	diaryFarewell = 5 * time.Second
)

// diary writes what happens to locks to the store, beside the watch: who tells it
// something never waits.
type diary struct {
	log   *zap.Logger
	store *store.Store

	mu      sync.Mutex
	queue   []page
	dropped int64

	// writing guards what follows: who writes.
	writing sync.Mutex
	failing bool
	written int64 // since it was pruned last
	counts  map[lockOf]int

	cancel context.CancelFunc
	done   chan struct{}
}

// page is one event, and whose.
type page struct {
	target string
	event  noted
}

// noted is an event whose rest is made JSON when it is written: who tells it holds
// the lock of a target.
type noted struct {
	store.LockEvent
	rest any
}

type lockOf struct {
	target string
	scanner.HistoryKey
}

func newDiary(log *zap.Logger, st *store.Store) *diary {
	return &diary{log: log.Named("history"), store: st, done: make(chan struct{})}
}

// note takes events in; what does not fit is counted and dropped.
func (d *diary) note(target string, events ...noted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, e := range events {
		if len(d.queue) >= diaryQueue {
			d.dropped += int64(len(events) - i)
			return
		}
		d.queue = append(d.queue, page{target, e})
	}
}

// start writes until stop: the last events of targets come after the end of ctx.
func (d *diary) start(ctx context.Context) {
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(d.done)
		tick := time.NewTicker(diaryEvery)
		defer tick.Stop()
		var failed time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if d.fails() && time.Since(failed) < diaryRests {
				continue
			}
			if d.flush(ctx); d.fails() {
				failed = time.Now()
			}
		}
	}()
}

func (d *diary) fails() bool {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.failing
}

// stop writes the rest, within a bound.
func (d *diary) stop(ctx context.Context) {
	if d.cancel == nil {
		return
	}
	d.cancel()
	<-d.done
	d.drain(ctx)
}

// drain writes what there is, within a bound.
func (d *diary) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diaryFarewell)
	defer cancel()
	for d.flush(ctx) {
	}
}

// flush writes one batch and says whether there is more to write now.
func (d *diary) flush(ctx context.Context) (more bool) {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	batch := d.queue[:min(len(d.queue), diaryBatch)]
	dropped := d.dropped
	d.dropped = 0
	d.mu.Unlock()
	if dropped > 0 {
		d.log.Warn("what happened to locks is not in their history: more came than is written", zap.Int64("events", dropped))
	}
	if len(batch) == 0 {
		return false
	}
	n, err := d.write(ctx, batch)
	d.mu.Lock()
	d.queue = d.queue[n:]
	more = len(d.queue) > 0
	if !more {
		d.queue = nil // what it grew to is given back
	}
	d.mu.Unlock()
	switch {
	case err != nil && !d.failing:
		d.log.Warn("the history of locks is not written: it is tried again", zap.Error(err))
	case err == nil && d.failing:
		d.log.Info("the history of locks is written again")
	}
	d.failing = err != nil
	if d.written += int64(n); err == nil && d.written >= diaryPrune {
		d.written = 0
		if _, err := d.prune(ctx); err != nil {
			d.log.Warn("old events of locks are not forgotten", zap.Error(err))
		}
	}
	return more && err == nil
}

// write writes the events of each target in their order, and returns how many of
// the batch are done with.
func (d *diary) write(ctx context.Context, batch []page) (int, error) {
	for done := 0; done < len(batch); {
		target, end := batch[done].target, done
		var events []store.LockEvent
		for ; end < len(batch) && batch[end].target == target; end++ {
			e := batch[end].event
			raw, _ := json.Marshal(e.rest) // strings and numbers cannot fail
			e.Event = string(raw)
			events = append(events, e.LockEvent)
		}
		switch err := d.store.SaveLockEvents(ctx, target, events); {
		case errors.Is(err, store.ErrLeaseLost):
			done = end // another replica writes the history of this target
			continue
		case err != nil:
			return done, err
		}
		done = end
		if err := d.store.TrimLockEvents(ctx, target, d.many(target, events)); err != nil {
			return done, err
		}
	}
	return len(batch), nil
}

// many counts events, and returns the locks of which many were written.
func (d *diary) many(target string, events []store.LockEvent) []scanner.HistoryKey {
	if d.counts == nil || len(d.counts) > diaryCounts {
		d.counts = map[lockOf]int{} // those that have many events will have more
	}
	var out []scanner.HistoryKey
	for _, e := range events {
		at := lockOf{target, scanner.HistoryKey{DB: e.DB, Key: e.Key}}
		if d.counts[at]++; d.counts[at] == diaryTrim {
			out = append(out, at.HistoryKey)
			d.counts[at] = 0
		}
	}
	return out
}

// prune forgets what is too old or too much, ordinary ends of holds first.
func (d *diary) prune(ctx context.Context) (int64, error) {
	return d.store.PruneLockEvents(ctx, time.Now().Add(-diaryKept), diaryRows, kindReleased)
}

// The kinds of events, as api.LockEvent names them.
const (
	kindAcquired = api.EventAcquired
	kindRenewed  = api.EventRenewed
	kindReleased = api.EventReleased
	kindExpired  = api.EventExpired
	kindDeleted  = api.EventDeleted
	kindForced   = api.EventForceReleased
	kindGone     = api.EventGone
)

// heldEvent is a hold that ended, as the store keeps it.
type heldEvent struct {
	// Began is when it was taken, as its holder says, or when it was seen first.
	Began       time.Time  `json:"began"`
	Renewals    int        `json:"renewals,omitempty"`
	LastRenewal time.Time  `json:"last_renewal,omitzero"`
	HeldMs      int64      `json:"held_ms"`
	AtLeast     bool       `json:"at_least,omitempty"`
	Digest      string     `json:"digest,omitempty"`
	Holder      api.Holder `json:"holder"`
}

// foundEvent is a finding that changed.
type foundEvent struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
}

// begin says when a hold began, and whether that is its holder's word.
func begin(l locksteward.Lock) (time.Time, bool) {
	if l.Claim != nil && !l.Claim.Acquired.IsZero() {
		return l.Claim.Acquired, true
	}
	return l.History.FirstSeen, false
}

// renewals are those that were seen, or that the holder counts.
func renewals(l locksteward.Lock) (int, time.Time) {
	n, at := l.History.Renewals, l.History.LastRenewal
	if l.Claim != nil && l.Claim.Renewals > int64(n) {
		n = int(l.Claim.Renewals)
		if l.Claim.Renewed.After(at) {
			at = l.Claim.Renewed
		}
	}
	return n, at
}

// heldOf is the event of a hold that ended. prompt says that its end was told as it
// happened; else only the last look bounds how long it was held.
func heldOf(e locksteward.Ending, prompt bool) noted {
	l := e.Lock
	began, told := begin(l)
	h := heldEvent{Began: began, AtLeast: true, Digest: l.TokenDigest, Holder: api.NewHolder(l.Holder)}
	h.Renewals, h.LastRenewal = renewals(l)
	last := l.At
	switch {
	case e.How == locksteward.EndedExpired && l.ExpireAt > 0:
		last, h.AtLeast = time.UnixMilli(l.ExpireAt), !told
	case prompt:
		last, h.AtLeast = e.At, !told
	}
	h.HeldMs = max(0, last.Sub(began).Milliseconds())
	return eventOf(l.DB, l.Key, e.At, kindOf(e.How), h)
}

func kindOf(how locksteward.EndedHow) string {
	switch how {
	case locksteward.EndedReleased:
		return kindReleased
	case locksteward.EndedExpired:
		return kindExpired
	case locksteward.EndedDeleted:
		return kindDeleted
	default:
		return kindGone // by what stands there now it is known that it ended, not how
	}
}

func eventOf(db int, key string, at time.Time, kind string, rest any) noted {
	return noted{store.LockEvent{DB: db, Key: key, At: at, Kind: kind}, rest}
}
