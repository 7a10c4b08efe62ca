package alert

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// Why notifications are not sent, or are sent again, without an attempt that failed.
var (
	// errNoFire: both can be retried together.
	errNoFire = errors.New("not sent: the fire that this resolves did not arrive; retry one of them, and both are sent")
	// errDecided: nobody is asked for a decision any more.
	errDecided = errors.New("not sent: the request ended before its receiver could be asked; release.final reports how it ended, and there is nothing to retry")
	// errTooOld is for notifications behind an open circuit.
	errTooOld = errors.New("the receiver accepted nothing for max_age; repair it and retry its dead letters")
	// errStopped: a shutdown cut the attempt short.
	errStopped = errors.New("the agent stopped")
)

// lateQuestion is the age from which a notification that asks for a decision is late. A
// younger one is sent as it is, though its request may end at this moment.
const lateQuestion = 10 * time.Second

// deliver makes one attempt and records its outcome.
func (w *worker) deliver(n locksteward.Notification) {
	if w.memory.claimed(n.ID) {
		w.circuit.inconclusive()
		w.ackDelivered(n.ID)
		return
	}
	out := newOutgoing(n.ID, n.Body)
	about := out.subject()
	if w.delivery.neverFired(about) {
		w.circuit.inconclusive()
		w.delivery.forget(about)
		w.cancelNotification(n, ReasonNoFire, errNoFire)
		return
	}
	if w.alreadyDecided(n, about) {
		w.circuit.inconclusive()
		w.cancelNotification(n, ReasonDecided, errDecided)
		return
	}
	d, accepted := w.dest.Load(), w.circuit.acceptedCount()
	err := w.send(d, out)
	if err == nil {
		w.delivered(n, about)
		return
	}
	e := deliveryError(err)
	if w.hard.Err() != nil {
		w.circuit.inconclusive()
		w.hooks.count(w.name, OutcomeRetried, ReasonShutdown)
		w.ackRetry(n.ID, errStopped, 0)
		return
	}
	w.delivery.attemptFailed(n.ID, e.Reason)
	wait := w.updateCircuit(n, e, accepted)
	if !e.Retryable || n.Attempts >= d.maxAttempts || time.Since(n.CreatedAt)+wait > d.maxAge {
		w.giveUp(n, about, e)
		return
	}
	w.hooks.count(w.name, OutcomeRetried, e.Reason)
	w.logFailure(n, wait, e)
	w.ackRetry(n.ID, e, wait)
}

func (w *worker) ackDelivered(id string) { w.ack(id, w.outbox.Delivered) }

func (w *worker) ackRetry(id string, why error, after time.Duration) {
	w.ack(id, func(ctx context.Context, n locksteward.Notification) error { return w.outbox.Retry(ctx, n, why, after) })
}

func (w *worker) ackDeadLetter(id string, why error) {
	w.ack(id, func(ctx context.Context, n locksteward.Notification) error { return w.outbox.DeadLetter(ctx, n, why) })
}

func deliveryError(err error) *DeliveryError {
	if e, ok := errors.AsType[*DeliveryError](err); ok {
		return e
	}
	return &DeliveryError{Reason: ReasonOther, Retryable: true, Err: err}
}

func (w *worker) delivered(n locksteward.Notification, about subject) {
	w.receiverWorks(n.ID)
	w.setLastWarned("")
	w.delivery.delivered(n.ID, about)
	w.hooks.count(w.name, OutcomeDelivered, ReasonOK)
	w.log.Debug("notification delivered", zap.String("notification_id", n.ID), zap.Int("attempt", n.Attempts))
	w.ackDelivered(n.ID)
}

// receiverWorks records that the receiver accepted or refused a notification. If that
// ends an outage, all that waits because of the outage is due at once.
func (w *worker) receiverWorks(id string) {
	open, outageEnded := w.circuit.answered(id)
	if open {
		w.log.Info("the receiver accepts notifications again")
	}
	if outageEnded {
		w.retryAll.Store(true)
	}
}

// updateCircuit updates the circuit after an attempt that failed, and returns the time
// until the next one. accepted is the count before the attempt.
func (w *worker) updateCircuit(n locksteward.Notification, e *DeliveryError, accepted int) time.Duration {
	wait := max(backoff(n.Attempts), e.RetryAfter)
	if e.Status == http.StatusGone && !e.Retryable {
		if w.circuit.answeredGone(time.Now()) {
			w.log.Error("the receiver answered 410 (gone): it is tried once an hour, until a reload or a test that is delivered", zap.Error(e))
		}
		w.deadLetterTooOld()
		return wait
	}
	if !e.Retryable && e.Status != 0 {
		w.receiverWorks(n.ID) // it refuses this notification
		return wait
	}
	open, opened, soon := w.circuit.fail(time.Now(), failure{n.ID, e.RetryAfter, accepted})
	if soon {
		wait = max(backoff(1), e.RetryAfter)
	}
	if opened {
		w.log.Warn("the receiver accepts nothing, one notification at a time is tried", zap.String("reason", string(e.Reason)), zap.Error(e))
	}
	if open {
		w.deadLetterTooOld()
	}
	return wait
}

// deadLetterTooOld gives up what has waited for max_age behind an open circuit.
func (w *worker) deadLetterTooOld() {
	age := w.dest.Load().maxAge
	n, err := w.outbox.DeadLetterAll(w.hard, w.name, age, errTooOld)
	if err != nil || n == 0 {
		return // it is tried again with the next failure
	}
	for range n {
		w.hooks.count(w.name, OutcomeDropped, ReasonTooOld)
	}
	w.log.Error("notifications given up, they waited too long", zap.Int64("count", n), zap.Duration("max_age", age))
}

func (w *worker) giveUp(n locksteward.Notification, about subject, e *DeliveryError) {
	w.hooks.count(w.name, OutcomeDropped, e.Reason)
	w.circuit.forget(n.ID)
	w.delivery.givenUp(n, about)
	w.log.Error("notification given up", zap.String("notification_id", n.ID), zap.String("event_id", n.EventID), zap.Strings("rules", about.rules),
		zap.Int("attempts", n.Attempts), zap.String("reason", string(e.Reason)), zap.Error(e))
	w.ackDeadLetter(n.ID, e)
}

// alreadyDecided reports whether a late notification asks for a decision on a request
// that has ended.
func (w *worker) alreadyDecided(n locksteward.Notification, about subject) bool {
	if about.request == "" || w.hooks.RequestEnded == nil || n.Attempts < 2 && time.Since(n.CreatedAt) < lateQuestion {
		return false
	}
	return w.hooks.RequestEnded(w.hard, about.request)
}

// cancelNotification gives up a notification that would be wrong: it resolves what never
// arrived, or asks for a decision that was made.
func (w *worker) cancelNotification(n locksteward.Notification, reason Reason, why error) {
	w.circuit.forget(n.ID)
	w.hooks.count(w.name, OutcomeDropped, reason)
	w.log.Info("notification not sent", zap.String("notification_id", n.ID), zap.Error(why))
	w.ackDeadLetter(n.ID, why)
}

// logFailure logs a failed attempt, as a warning when the reason is a new one: a
// receiver that is down for an hour is one line, not a hundred.
func (w *worker) logFailure(n locksteward.Notification, wait time.Duration, e *DeliveryError) {
	fields := []zap.Field{
		zap.String("notification_id", n.ID), zap.Int("attempt", n.Attempts), zap.Duration("retry_in", wait),
		zap.String("reason", string(e.Reason)), zap.Error(e),
	}
	if w.setLastWarned(e.Reason) == e.Reason {
		w.log.Debug("delivery failed again", fields...)
		return
	}
	w.log.Warn("delivery failed, it is retried", fields...)
}

// setLastWarned returns the previous reason.
func (w *worker) setLastWarned(reason Reason) (before Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.lastWarned = w.lastWarned, reason
	return before
}
