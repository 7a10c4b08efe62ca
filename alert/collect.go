package alert

import (
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

const (
	// groupsAtOnce and eventsAtOnce bound one flush, so that other writers of the store
	// get their turn.
	groupsAtOnce = 100
	eventsAtOnce = 1000
	// eventsAtOnceForPeople is eventsAtOnce for receivers that people read, where few
	// findings are listed and the others counted: a storm must not be a hundred messages.
	eventsAtOnceForPeople = 5000
	// maxSeparateGroups is how many groups that are due together people get in
	// notifications of their own.
	maxSeparateGroups = 3
)

// collectLoop makes notifications of the groups that are due, until stop, and of those
// that are due then. The others wait for the next start.
func (w *worker) collectLoop() {
	defer w.signal()
	defer close(w.collected)
	for w.stop.Err() == nil && w.hard.Err() == nil {
		began := time.Now()
		wait := w.flush()
		if wait <= 0 {
			w.yieldOutbox(time.Since(began))
			continue
		}
		timer := time.NewTimer(min(wait, pollEvery))
		select {
		case <-timer.C:
		case <-w.collectWake:
		case <-w.stop.Done():
		case <-w.hard.Done():
		}
		timer.Stop()
	}
	for w.hard.Err() == nil && w.flush() <= 0 {
	}
}

// yieldOutbox leaves the outbox to deliveries for as long as a long flush took: it has
// one writer.
func (w *worker) yieldOutbox(took time.Duration) {
	if took < emptyPause {
		return
	}
	timer := time.NewTimer(min(took, retryOutboxEvery))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.stop.Done():
	case <-w.hard.Done():
	}
}

// flush makes notifications of some groups, and returns the time until others are due.
func (w *worker) flush() time.Duration {
	d := w.dest.Load()
	behind := ""
	if d.people {
		// What is for people waits in groups, where events can be combined and urgent ones
		// overtake.
		behind = allGroups
	}
	due, any, err := w.outbox.NextGroup(w.hard, w.name, behind)
	switch {
	case err != nil:
		return retryOutboxEvery // deliverLoop logs it
	case !any:
		return pollEvery
	case due > 0:
		return due
	}
	groups, events := groupsAtOnce, eventsAtOnce
	c := &composer{writer: d.writer, heldBy: d.hooks.heldBy}
	digests := d.perMinute > 0 && !d.onePerGroup
	if d.people {
		events = eventsAtOnceForPeople
		if n, wait := d.free(time.Now(), 1); n == 0 {
			return wait
		}
		// On a shutdown all that is due becomes notifications.
		if c.one = w.stop.Err() == nil; c.one && !digests {
			groups = 1
		}
	}
	c.skipRepeats, _, _ = w.circuit.state()
	_, err = w.outbox.Flush(w.hard, w.name, behind, groups, events, func(due []locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification) {
		c.digest = digests && len(due) > maxSeparateGroups
		return c.compose(due)
	})
	if err != nil {
		if w.hard.Err() == nil {
			w.log.Warn("composing notifications failed, it is tried again", zap.Error(err))
		}
		return retryOutboxEvery
	}
	if c.err != nil { // there is nothing in a payload that cannot be encoded
		w.log.Error("encoding a notification failed", zap.Error(c.err))
		w.hooks.count(w.name, OutcomeDropped, ReasonOther)
	}
	for why, n := range c.suppressed {
		w.hooks.suppress(w.name, why, n)
	}
	w.hooks.omit(w.name, c.omitted)
	w.signal()
	return 0
}
