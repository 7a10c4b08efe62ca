package alert

import (
	"time"

	"go.uber.org/zap"
)

const (
	// groupsAtOnce and changesAtOnce bound one flush, so that other writers of the
	// store get their turn.
	groupsAtOnce  = 100
	changesAtOnce = 1000
	// toldAtOnce is changesAtOnce for people, who are told of few in full and of all
	// others how many they are: a storm must not be a hundred messages.
	toldAtOnce = 5000
	// separate is how many groups people are told of in messages of their own when
	// they are due together.
	separate = 3
)

// collect makes messages of the groups that are due, until stop, and of those that
// are due then. What waits longer waits for the next start.
func (w *worker) collect() {
	defer w.nudge()
	defer close(w.collected)
	for w.stop.Err() == nil && w.hard.Err() == nil {
		began := time.Now()
		wait := w.flush()
		if wait <= 0 {
			w.yield(time.Since(began))
			continue
		}
		timer := time.NewTimer(min(wait, pollEvery))
		select {
		case <-timer.C:
		case <-w.gather:
		case <-w.stop.Done():
		case <-w.hard.Done():
		}
		timer.Stop()
	}
	for w.hard.Err() == nil && w.flush() <= 0 {
	}
}

// yield leaves the outbox to those who deliver for as long as a flush that was long
// took: there is one writer, and what was put together must leave as well.
func (w *worker) yield(took time.Duration) {
	if took < lull {
		return
	}
	timer := time.NewTimer(min(took, askAgain))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stop.Done():
	case <-w.hard.Done():
	}
}

// flush makes messages of some groups, and returns how long nothing else will be
// due.
func (w *worker) flush() time.Duration {
	d := w.dest.Load()
	behind := ""
	if d.people {
		// What is told to people waits here, where it can be told together, and where
		// what is more urgent comes first.
		behind = allGroups
	}
	due, any, err := w.box.NextGroup(w.hard, w.name, behind)
	switch {
	case err != nil:
		return askAgain // said by the deliveries
	case !any:
		return pollEvery
	case due > 0:
		return due
	}
	groups, changes := groupsAtOnce, changesAtOnce
	c := &composer{addressee: d.addressee, hold: d.hooks.held}
	digests := d.perMinute > 0 && !d.apart
	if d.people {
		changes = toldAtOnce
		if n, wait := d.free(time.Now(), 1); n == 0 {
			return wait
		}
		// On a shutdown all that is due becomes messages.
		if c.one = w.stop.Err() == nil; c.one && !digests {
			groups = 1
		}
	}
	c.quiet, _, _ = w.circuit.state()
	_, err = w.box.Flush(w.hard, w.name, behind, groups, changes, func(due []Due) ([]Flushed, []Message) {
		c.digest = digests && len(due) > separate
		return c.compose(due)
	})
	if err != nil {
		if w.hard.Err() == nil {
			w.log.Warn("alerts are not put together, it is tried again", zap.Error(err))
		}
		return askAgain
	}
	if c.err != nil { // there is nothing in a payload that cannot be encoded
		w.log.Error("alert not encoded", zap.Error(c.err))
		w.hooks.count(w.name, OutcomeDropped, ReasonOther)
	}
	for why, n := range c.suppressed {
		w.hooks.suppress(w.name, why, n)
	}
	w.hooks.omit(w.name, c.omitted)
	w.nudge()
	return 0
}
