package alert

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// errNoFire is why a resolve is given up whose fire never arrived: both can be
// replayed together.
var errNoFire = errors.New("not sent: the fire of this resolve did not arrive; replay one of them, and both are sent")

// errOver is why nobody is asked for a decision any more.
var errOver = errors.New("not sent: the request was over before its receiver could be asked; release.final says how it ended, and there is nothing to replay")

// askedLate is how old a message is that comes late: what is younger is sent as it is,
// though its request may be over this very moment.
const askedLate = 10 * time.Second

// errStopped is why a message is sent again that a shutdown cut short.
var errStopped = errors.New("the agent stopped")

// deliver makes one attempt and says what became of it.
func (w *worker) deliver(m Message) {
	if w.spare.claimed(m.ID) {
		w.circuit.nothing()
		w.word(m.ID, func(ctx context.Context, m Message) error { return w.box.Delivered(ctx, m) })
		return
	}
	s := subjectOf(m.Body)
	if w.told.never(s) {
		w.circuit.nothing()
		w.told.forget(s)
		w.withhold(m, ReasonNoFire, errNoFire)
		return
	}
	if w.tooLate(m, s) {
		w.circuit.nothing()
		w.withhold(m, ReasonOver, errOver)
		return
	}
	d, accepted := w.dest.Load(), w.circuit.accepted()
	err := w.send(d, m)
	if err == nil {
		w.arrived(m, s)
		return
	}
	e := deliveryError(err)
	if w.hard.Err() != nil {
		w.circuit.nothing()
		w.hooks.count(w.name, OutcomeRetried, ReasonShutdown)
		w.word(m.ID, func(ctx context.Context, m Message) error { return w.box.Retry(ctx, m, errStopped, 0) })
		return
	}
	w.told.miss(m.ID, e.Reason)
	wait := w.judge(m, e, accepted)
	if !e.Retryable || m.Attempts >= d.MaxAttempts || time.Since(m.CreatedAt)+wait > d.MaxAge {
		w.giveUp(m, s, e)
		return
	}
	w.hooks.count(w.name, OutcomeRetried, e.Reason)
	w.warn(m, wait, e)
	w.word(m.ID, func(ctx context.Context, m Message) error { return w.box.Retry(ctx, m, e, wait) })
}

func deliveryError(err error) *DeliveryError {
	if e, ok := errors.AsType[*DeliveryError](err); ok {
		return e
	}
	return &DeliveryError{Reason: ReasonOther, Retryable: true, Err: err}
}

func (w *worker) arrived(m Message, s subject) {
	w.works(m)
	w.mu.Lock()
	w.warned = ""
	w.mu.Unlock()
	w.told.arrived(m, s)
	w.hooks.count(w.name, OutcomeDelivered, ReasonOK)
	w.log.Debug("alert delivered", zap.String("message_id", m.ID), zap.Int("attempt", m.Attempts))
	w.word(m.ID, func(ctx context.Context, m Message) error { return w.box.Delivered(ctx, m) })
}

// works notes that the receiver answered as one that works. If an outage is over with
// that, all that waits for it because of the outage is due at once.
func (w *worker) works(m Message) {
	open, over := w.circuit.answered(m.ID)
	if open {
		w.log.Info("the receiver takes alerts again")
	}
	if over {
		w.hurried.Store(false)
	}
}

// judge has the circuit follow an attempt that failed, and returns how long to wait
// before the next one. accepted is what [circuit.accepted] returned before it.
func (w *worker) judge(m Message, e *DeliveryError, accepted int) time.Duration {
	wait := max(backoff(m.Attempts), e.RetryAfter)
	if e.Status == http.StatusGone && !e.Retryable {
		if w.circuit.left(time.Now()) {
			w.log.Error("the receiver says that it is gone for good: it is tried once an hour; a reload or a test that arrives ends that", zap.Error(e))
		}
		w.tooOld()
		return wait
	}
	if !e.Retryable && e.Status != 0 {
		w.works(m) // it says no to this message
		return wait
	}
	open, first, soon := w.circuit.fail(time.Now(), failure{m.ID, e.RetryAfter, accepted})
	if soon {
		wait = max(backoff(1), e.RetryAfter)
	}
	if first {
		w.log.Warn("the receiver takes nothing, it is tried with one alert at a time", zap.String("reason", string(e.Reason)), zap.Error(e))
	}
	if open {
		w.tooOld()
	}
	return wait
}

// tooOld gives up what waited for max_age behind an open circuit.
func (w *worker) tooOld() {
	age := w.dest.Load().MaxAge
	n, err := w.box.BuryAll(w.hard, w.name, age, errTooOld)
	if err != nil || n == 0 {
		return // what is too old stays so
	}
	for range n {
		w.hooks.count(w.name, OutcomeDropped, ReasonTooOld)
	}
	w.log.Error("alerts given up, they waited too long", zap.Int64("messages", n), zap.Duration("max_age", age))
}

// errTooOld is why messages are given up behind an open circuit.
var errTooOld = errors.New("the receiver took nothing for max_age; mend it and replay what was given up for it")

func (w *worker) giveUp(m Message, s subject, e *DeliveryError) {
	w.hooks.count(w.name, OutcomeDropped, e.Reason)
	w.circuit.forget(m.ID)
	w.told.lost(m, s)
	w.log.Error("alert given up", zap.String("message_id", m.ID), zap.String("event_id", m.EventID), zap.Strings("rules", s.rules),
		zap.Int("attempts", m.Attempts), zap.String("reason", string(e.Reason)), zap.Error(e))
	w.word(m.ID, func(ctx context.Context, m Message) error { return w.box.Bury(ctx, m, e) })
}

// tooLate says that a message asks for a decision on a request that is over.
func (w *worker) tooLate(m Message, s subject) bool {
	if s.asks == "" || w.hooks.RequestOver == nil || m.Attempts < 2 && time.Since(m.CreatedAt) < askedLate {
		return false
	}
	return w.hooks.RequestOver(w.hard, s.asks)
}

// withhold gives up a message that would say what is not so: of the end of what never
// arrived, or that a request waits for a decision that is over.
func (w *worker) withhold(m Message, reason Reason, why error) {
	w.circuit.forget(m.ID)
	w.hooks.count(w.name, OutcomeDropped, reason)
	w.log.Info("alert not sent", zap.String("message_id", m.ID), zap.Error(why))
	w.word(m.ID, func(ctx context.Context, m Message) error { return w.box.Bury(ctx, m, why) })
}

// warn logs a failure loudly when it is a new one: a receiver that is down for
// an hour is one line, not a hundred.
func (w *worker) warn(m Message, wait time.Duration, e *DeliveryError) {
	fields := []zap.Field{
		zap.String("message_id", m.ID), zap.Int("attempt", m.Attempts), zap.Duration("retry_in", wait),
		zap.String("reason", string(e.Reason)), zap.Error(e),
	}
	w.mu.Lock()
	again := e.Reason == w.warned
	w.warned = e.Reason
	w.mu.Unlock()
	if again {
		w.log.Debug("alert delivery failed again", fields...)
		return
	}
	w.log.Warn("alert delivery failed, will be repeated", fields...)
}
