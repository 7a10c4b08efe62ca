package targets

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
)

// recheckSlack is added to the wait of a recheck, so that the second look is
// never a moment too early by the server's clock.
const recheckSlack = 50 * time.Millisecond

// recheckLater reads the locks again that may have no TTL or be in a deadlock, once
// the wait of the rules is over and well before the next sweep.
func (w *Watched) recheckLater(ctx context.Context) {
	select {
	case w.waiting <- struct{}{}:
	default:
		return // one waits already and will see these too
	}
	if !w.anyDue() {
		<-w.waiting
		return
	}
	w.background(func() {
		select {
		case <-ctx.Done():
			<-w.waiting
			return
		case <-time.After(rules.RecheckAfter + recheckSlack):
		}
		<-w.waiting
		w.recheck(ctx)
	})
}

// atOnce is how many locks are read and judged again at once, and how many
// transitions are passed on at once: what a storm of them takes in memory does not depend
// on its size. The locks of a wait/cycle are fewer.
const atOnce = 5000

func (w *Watched) recheck(ctx context.Context) {
	due := w.deps.Engine.Due(w.target.Name)
	for len(due) > atOnce {
		w.lookAt(ctx, w.scanner.Recheck, w.known(due[:atOnce]), w.tellChanges)
		due = due[atOnce:]
	}
	w.look(ctx, w.known(due))
}

// Released reads the lock of a request that is over again: nobody should wait
// for the next sweep to see what became of it. Before the first one no lock is known, and
// what the request says counts. It returns at once; the context that running returns, which may wait, bounds the read.
func (w *Watched) Released(r locksteward.Request, running func() context.Context) {
	w.background(func() { w.released(running(), r) })
}

func (w *Watched) released(ctx context.Context, r locksteward.Request) {
	if l, ok := w.scanner.Table().Get(r.Evidence.DB, r.Evidence.Key); ok {
		w.look(ctx, []locksteward.Lock{l})
		return
	}
	w.endReleased(ctx, []locksteward.Request{r})
}

// look reads locks directly and judges them.
func (w *Watched) look(ctx context.Context, locks []locksteward.Lock) {
	w.lookAt(ctx, w.scanner.Recheck, locks, func(ctx context.Context, transitions []locksteward.Transition) {
		w.tell(ctx, transitions)
		w.publish(ctx)
	})
}

// recheck is [scanner.Scanner.Recheck] or [scanner.Scanner.RecheckPaced].
type recheck func(ctx context.Context, locks []locksteward.Lock) (locksteward.Update, error)

// lookAt reads before its turn: a server that is away lets its reader wait for
// seconds, and the watch of the others goes on. tell is called with it.
func (w *Watched) lookAt(ctx context.Context, read recheck, locks []locksteward.Lock, tell func(context.Context, []locksteward.Transition)) {
	if len(locks) == 0 {
		return
	}
	update, err := read(ctx, locks)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("locks could not be read again", zap.Error(err))
	}
	defer w.deps.Touch()
	defer w.turn.take()()
	w.upToDate(&update)
	transitions := w.deps.Engine.EvaluateDirect(update)
	w.deps.Exporter.ObserveRecheck(update)
	w.holds.AddUpdate(update)
	w.found(transitions)
	w.over(update.Endings, false)
	tell(ctx, transitions)
}

// upToDate takes out of direct reads what others have read since: the last
// word counts. The next hold of a key whose end was read is judged after that end. The
// caller has the turn.
func (w *Watched) upToDate(update *locksteward.Update) {
	kept, newer := map[rules.LockKey]bool{}, map[rules.LockKey]bool{}
	locks := update.Locks[:0]
	for _, l := range update.Locks {
		if now, ok := w.scanner.Table().Get(l.DB, l.Key); ok && !now.At.After(l.At) {
			locks = append(locks, l)
			kept[rules.LockKey{DB: l.DB, Key: l.Key}] = true
		} else {
			newer[rules.LockKey{DB: l.DB, Key: l.Key}] = true
		}
	}
	for _, e := range update.Endings {
		if now, ok := w.scanner.Table().Get(e.Lock.DB, e.Lock.Key); ok && !kept[rules.LockKey{DB: now.DB, Key: now.Key}] {
			locks = append(locks, now)
		}
	}
	update.Locks = locks
	update.Waiters = slices.DeleteFunc(update.Waiters, func(w locksteward.Waiter) bool { return newer[rules.LockKey{DB: w.DB, Key: w.Key}] })
}

// anyDue says that a second look decides something of a lock that is known.
func (w *Watched) anyDue() bool {
	return slices.ContainsFunc(w.deps.Engine.Due(w.target.Name), func(d rules.LockKey) bool {
		_, ok := w.scanner.Table().Get(d.DB, d.Key)
		return ok
	})
}

// known are the known locks among those of which a second look decides something:
// those on which ttl/none is pending, and those of a wait/cycle that was seen once.
func (w *Watched) known(due []rules.LockKey) []locksteward.Lock {
	var out []locksteward.Lock
	for _, d := range due {
		if l, ok := w.scanner.Table().Get(d.DB, d.Key); ok {
			out = append(out, l)
		}
	}
	return out
}
