package alert

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// sender makes one attempt. Its error is a *DeliveryError.
type sender interface {
	send(ctx context.Context, id string, body []byte) error
	close()
}

// receiver delivers to one place, one message at a time.
type receiver struct {
	name        string
	lang        string
	log         *zap.Logger
	hooks       Hooks
	sender      sender
	queueSize   int
	maxAttempts int
	maxAge      time.Duration
	wake        chan struct{} // of size 1: "there is something"

	// warned is the reason that was last logged as a warning; used by run alone.
	warned Reason

	mu           sync.Mutex
	queue        []queued
	told         map[string]told // what arrived, by fingerprint
	door         map[string]door // what was queued, by fingerprint
	closed       bool
	sending      int // transitions in the message under way
	sendingSince time.Time
}

// same says whether other tells the same place in the same way.
func (r *receiver) same(other *receiver) bool {
	mine, ok := r.sender.(*webhook)
	theirs, too := other.sender.(*webhook)
	return ok && too && mine.same(theirs) && r.name == other.name && r.lang == other.lang &&
		r.queueSize == other.queueSize && r.maxAttempts == other.maxAttempts && r.maxAge == other.maxAge
}

// run delivers until stop is done and the queue is empty, or until hard is done.
func (r *receiver) run(stop, hard context.Context) {
	defer r.sender.close()
	for hard.Err() == nil {
		batch, skipped := r.take()
		r.withheld(skipped)
		if len(batch) > 0 {
			r.deliver(stop, hard, batch)
			continue
		}
		select {
		case <-r.wake:
		case <-stop.Done():
			if r.closeIfEmpty() {
				return
			}
		}
	}
	r.lost(r.abandon(), ReasonShutdown)
}

// deliver repeats one message until it arrived or is given up.
func (r *receiver) deliver(stop, hard context.Context, batch []queued) {
	r.busy(len(batch), batch[0].at)
	defer r.busy(0, time.Time{})
	m, err := compose(r.name, r.lang, batch)
	if err != nil {
		r.log.Error("alert not encoded", zap.Error(err))
		r.lost(len(batch), ReasonOther)
		return
	}
	for attempt := 1; ; attempt++ {
		err := r.sender.send(hard, m.id, m.body)
		if err == nil {
			r.warned = ""
			r.hooks.count(r.name, OutcomeDelivered, ReasonOK)
			r.log.Debug("alert delivered", zap.String("message_id", m.id), zap.Int("attempt", attempt), zap.Int("findings", len(m.fps)))
			r.settle(m, true)
			return
		}
		e, ok := errors.AsType[*DeliveryError](err)
		if !ok {
			e = &DeliveryError{Reason: ReasonOther, Err: err}
		}
		m.reached = m.reached || !e.Reason.missed()
		wait := max(backoff(attempt), e.RetryAfter)
		giveUp := !e.Retryable || attempt >= r.maxAttempts || time.Since(m.queued)+wait > r.maxAge || hard.Err() != nil
		if giveUp {
			if hard.Err() != nil {
				e.Reason = ReasonShutdown
			}
			r.drop(m, attempt, e)
			return
		}
		r.hooks.count(r.name, OutcomeRetried, e.Reason)
		r.warn(m, attempt, wait, e)
		if !pause(stop, hard, wait, e.RetryAfter > 0) {
			e.Reason = ReasonShutdown
			r.drop(m, attempt, e)
			return
		}
	}
}

// pause waits and says whether to go on. A shutdown cuts a plain backoff short
// (the next attempt may be the last chance), never a wait that the receiver
// asked for.
func pause(stop, hard context.Context, wait time.Duration, asked bool) bool {
	stopping := stop.Done()
	if asked {
		stopping = nil
	} else if stop.Err() != nil {
		stopping = nil
		wait = min(wait, backoffBase)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopping:
	case <-hard.Done():
		return false
	}
	return hard.Err() == nil
}

func (r *receiver) drop(m message, attempt int, e *DeliveryError) {
	r.hooks.count(r.name, OutcomeDropped, e.Reason)
	r.settle(m, false)
	r.log.Error("alert given up", zap.String("message_id", m.id), zap.String("status", string(m.status)), zap.Int("findings", len(m.fps)),
		zap.Strings("rules", m.rules), zap.Strings("fingerprints", m.fps), zap.Int("attempts", attempt),
		zap.String("reason", string(e.Reason)), zap.Error(e))
}

// warn logs a failure loudly when it is a new one: a receiver that is down for
// an hour is one line, not a hundred.
func (r *receiver) warn(m message, attempt int, wait time.Duration, e *DeliveryError) {
	fields := []zap.Field{
		zap.String("message_id", m.id), zap.Int("attempt", attempt), zap.Duration("retry_in", wait),
		zap.String("reason", string(e.Reason)), zap.Error(e),
	}
	if e.Reason == r.warned {
		r.log.Debug("alert delivery failed again", fields...)
		return
	}
	r.warned = e.Reason
	r.log.Warn("alert delivery failed, will be repeated", fields...)
}

// withheld counts and logs resolves whose fire never arrived.
func (r *receiver) withheld(n int) {
	if n == 0 {
		return
	}
	for range n {
		r.hooks.count(r.name, OutcomeDropped, ReasonNoFire)
	}
	r.log.Info("alert resolve not sent, its fire never arrived", zap.Int("count", n))
}

// lost counts and logs transitions that are in no message.
func (r *receiver) lost(n int, why Reason) {
	if n == 0 {
		return
	}
	for range n {
		r.hooks.count(r.name, OutcomeDropped, why)
	}
	r.log.Error("alerts lost", zap.Int("count", n), zap.String("reason", string(why)))
}

func (r *receiver) busy(n int, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending, r.sendingSince = n, since
}
