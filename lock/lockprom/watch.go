package lockprom

import (
	"sync/atomic"
	"time"

	"github.com/locksteward/locksteward/lock"
)

// watch counts the events of one client.
type watch struct {
	vectors *vectors
	classes *classes
	holds   holds
	over    atomic.Bool // the client is not observed any more
}

// observe counts one event. It runs on the goroutine of the lock library, that
// of the caller's Acquire and Release among them.
func (w *watch) observe(e lock.Event) {
	if w.over.Load() {
		return
	}
	switch e.Kind {
	case lock.EventBeatFailed:
		w.vectors.beat.Inc()
		return
	case lock.EventPushFailed:
		w.vectors.push.Inc()
		return
	case lock.EventAcquired, lock.EventReentered, lock.EventHeld, lock.EventAcquireFailed,
		lock.EventRenewed, lock.EventRenewFailed,
		lock.EventLost, lock.EventReleased, lock.EventReleaseUnknown,
		lock.EventCleaned, lock.EventCleanFailed:
	default:
		// A kind of a later version must not make a class of its own.
		return
	}
	s := w.classes.of(e.Class)
	switch e.Kind {
	case lock.EventAcquired:
		s.acquired.Inc()
		s.ended(resultAcquired, e)
		if took, lost := w.holds.begin(e.ID, s); lost {
			s.over(outcomeLost, took, e.Trace)
		}
	case lock.EventReentered:
		s.attempts.Inc()
		s.reentered.Inc()
	case lock.EventHeld:
		s.failures[reasonOf(e.Err)].Inc()
		s.ended(resultHeld, e)
	case lock.EventAcquireFailed:
		s.failures[reasonOf(e.Err)].Inc()
		s.ended(resultFailed, e)
	case lock.EventRenewed:
		s.renewals.Inc()
		if e.Late > 0 {
			s.late.Inc()
		}
	case lock.EventRenewFailed:
		s.renewFailures[reasonOf(e.Err)].Inc()
	case lock.EventLost:
		s.lost[lossOf(e.Err)].Inc()
		w.holds.lose(e.ID, e.Took).over(outcomeLost, e.Took, e.Trace)
	case lock.EventReleased:
		w.holds.end(e.ID).over(outcomeReleased, e.Took, e.Trace)
	case lock.EventReleaseUnknown:
		w.holds.end(e.ID).over(outcomeUnknown, e.Took, e.Trace)
	case lock.EventCleaned:
		s.cleanups[cleanupDone].Inc()
	case lock.EventCleanFailed:
		s.cleanups[cleanupFailed].Inc()
	}
}

// ended counts the end of a call of acquire, apart from what came of it.
func (s *series) ended(result int, e lock.Event) {
	s.attempts.Inc()
	if e.Contended {
		s.contended.Inc()
	}
	s.wait[result].observe(e.Took, e.Trace)
}

// over counts the end of a hold; nil is one that does not count.
func (s *series) over(outcome int, took time.Duration, trace string) {
	if s == nil {
		return
	}
	s.releases[outcome].Inc()
	s.hold[outcome].observe(took, trace)
}

// stop ends the watch: what comes later is not counted.
func (w *watch) stop() {
	w.over.Store(true)
	w.holds.close()
}
