package alert

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

const (
	// maxInFlight bounds the notifications that are sent to one receiver at once.
	maxInFlight = 4
	// claimSlack is how much longer than one attempt a claim lasts, for recording its
	// outcome.
	claimSlack = 5 * time.Second
	// retryOutboxEvery is how often a failing outbox is tried, and notifications are sent
	// from memory.
	retryOutboxEvery = time.Second
	// pollEvery is how often the outbox is polled without a wake-up. emptyPause is the
	// pause after a claim that returned nothing to send.
	pollEvery  = 15 * time.Second
	emptyPause = 20 * time.Millisecond
)

// transport makes one attempt. Its error is a *DeliveryError.
type transport interface {
	send(ctx context.Context, out outgoing) error
	close()
}

// destination is where and how a receiver is notified.
type destination struct {
	out transport
	writer
	// limiter is nil for a receiver without a rate limit.
	limiter *limiter
}

func newDestination(out transport, w writer) *destination {
	return &destination{out: out, writer: w, limiter: newLimiter(w.rates)}
}

// takeLimiter takes over the limiter of the previous destination, whose service may be
// the same.
func (d *destination) takeLimiter(previous *destination) {
	if previous.rates == d.rates {
		d.limiter = previous.limiter
	}
}

// free returns how many notifications may be sent now, at most n; if none, wait is the
// time until one may.
func (d *destination) free(now time.Time, n int) (free int, wait time.Duration) {
	if d.people {
		n = min(n, 1)
	}
	return d.limiter.free(now, n)
}

// worker delivers the notifications of one receiver. It runs three loops: deliverLoop
// sends what is due, collectLoop makes notifications of groups, resendLoop repeats
// firing findings for receivers that forget them. No mutex is held over I/O, and of the
// mutexes of a worker and its parts never two at once.
type worker struct {
	name        string
	log         *zap.Logger
	outbox      Outbox
	hooks       Hooks
	dest        atomic.Pointer[destination]
	deliverWake chan struct{} // of size 1
	collectWake chan struct{} // of size 1
	circuit     circuit
	delivery    deliveryState
	memory      memoryQueue
	inFlight    *inFlightSet
	// retryAll asks for all that waits to be retried at once, since the receiver works
	// again or was replaced.
	retryAll atomic.Bool

	// stop ends the claiming, hard the sending too; both are set before run.
	stop, hard context.Context
	cancel     context.CancelFunc
	done       chan struct{}
	collected  chan struct{} // closed when nothing more is collected

	// sendGate keeps notifications and resends apart: see resend.go.
	sendGate sendGate
	// resendFailing says that the last resend failed. Of resendLoop alone.
	resendFailing bool

	// claimedAll says that the last claim returned as many as it asked for, soonFree that
	// the rate limit permits another notification within a second. Of deliverLoop alone.
	claimedAll, soonFree bool

	mu           sync.Mutex // guards what follows
	active       int        // notifications that are being sent
	wakeups      uint64
	outboxFailed bool   // the outbox did not answer, and that was logged
	lastWarned   Reason // the reason that was last logged as a warning

	sending sync.WaitGroup
}

func newWorker(log *zap.Logger, name string, box Outbox, hooks Hooks, d *destination) *worker {
	w := &worker{
		name: name, log: log.With(zap.String("receiver", name)), outbox: box, hooks: hooks,
		deliverWake: make(chan struct{}, 1), collectWake: make(chan struct{}, 1), sendGate: newSendGate(), inFlight: newInFlightSet(),
	}
	w.dest.Store(d)
	return w
}

// redirect sends what waits to another destination, at once.
func (w *worker) redirect(d *destination) {
	previous := w.dest.Load()
	d.takeLimiter(previous)
	w.dest.Store(d)
	previous.out.close()
	w.retryNow()
}

// retryNow has all that waits tried at once.
func (w *worker) retryNow() {
	w.circuit.reset()
	w.retryAll.Store(true)
	w.wake()
}

// begin prepares a run until stop or hard is done.
func (w *worker) begin(stop, hard context.Context) {
	// Another process may have delivered since the last run.
	w.delivery.reset()
	w.memory.reset()
	w.circuit.begin()
	w.claimedAll, w.resendFailing = false, false
	w.stop = stop
	w.hard, w.cancel = context.WithCancel(hard)
	w.done, w.collected = make(chan struct{}), make(chan struct{})
}

// remove ends the worker and the attempts in flight, and returns when it has ended.
// [Sender.reconcile] gives up what waits.
func (w *worker) remove() {
	if w.done == nil {
		return
	}
	w.cancel()
	<-w.done
}

// wake is called when something may be due.
func (w *worker) wake() {
	w.mu.Lock()
	w.wakeups++
	w.mu.Unlock()
	w.signal()
}

// signal has the loops continue without counting as a wake-up: nothing was written.
func (w *worker) signal() {
	signal(w.deliverWake)
	signal(w.collectWake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run runs the loops of the worker, between begin and the end of stop or hard.
func (w *worker) run() {
	defer close(w.done)
	var group sync.WaitGroup
	group.Go(w.collectLoop)
	group.Go(w.resendLoop)
	w.deliverLoop()
	group.Wait()
}

// deliverLoop delivers until stop is done and nothing is due, or until hard is done.
func (w *worker) deliverLoop() {
	defer w.cancel()
	defer func() { w.dest.Load().out.close() }() // a reload may have replaced it
	defer w.sending.Wait()
	for w.hard.Err() == nil {
		wait := w.deliverDue()
		if w.stop.Err() != nil && wait > 0 && !w.soonFree && w.activeCount() == 0 && closed(w.collected) {
			return // what is due later is for the next start
		}
		w.rest(wait)
	}
}

// rest waits for a time, a signal or a shutdown.
func (w *worker) rest(wait time.Duration) {
	if wait <= 0 {
		return
	}
	stopping := w.stop.Done()
	if w.stop.Err() != nil {
		stopping = nil // known
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.deliverWake:
	case <-stopping:
	case <-w.hard.Done():
	}
}

// deliverDue begins to send what may be sent now, and returns the time until something
// else is due.
func (w *worker) deliverDue() time.Duration {
	now, d := time.Now(), w.dest.Load()
	n, wait := w.circuit.allow(now, maxInFlight-w.activeCount())
	w.soonFree = false
	if n > 0 {
		n, wait = d.free(now, n)
		w.soonFree = n == 0 && wait <= time.Second
		if d.people && w.activeCount() > 0 {
			n, wait = 0, 0
		}
	}
	if n <= 0 {
		if wait > 0 {
			return wait
		}
		return pollEvery // the end of an attempt comes first
	}
	if w.retryAll.CompareAndSwap(true, false) {
		if err := w.outbox.RetryNow(w.hard, w.name); err != nil {
			w.retryAll.Store(true)
			return w.withoutOutbox(err)
		}
	}
	if !w.claimedAll {
		wakeups := w.wakeupCount()
		due, waits, err := w.outbox.NextDue(w.hard, w.name)
		switch {
		case err != nil:
			return w.withoutOutbox(err)
		case !waits:
			signal(w.collectWake)
			if pending, err := w.outbox.HasPending(w.hard, w.name); err != nil {
				return w.withoutOutbox(err)
			} else if !pending && w.memory.outboxEmpty(wakeups) {
				w.log.Debug("the outbox is empty: notifications that the store does not take are sent from memory")
			}
			return w.sendFromMemory()
		case due > 0:
			return min(due, pollEvery)
		}
	}
	fresh, claimed, err := w.inFlight.claim(w.hard, w.outbox, w.name, w.dest.Load().timeout+claimSlack, n)
	if err != nil {
		return w.withoutOutbox(err)
	}
	w.outboxWorks()
	if w.claimedAll = claimed == n; len(fresh) == 0 {
		return emptyPause // another process was quicker, or they are in flight
	}
	w.circuit.probe()
	d.limiter.begin(now, len(fresh))
	w.sendBegan(len(fresh))
	for _, m := range fresh {
		w.sending.Go(func() {
			defer w.sendEnded(d)
			w.deliverClaimed(m)
		})
	}
	return 0
}

// deliverClaimed delivers a notification, again if it is claimed anew before it is done.
func (w *worker) deliverClaimed(n locksteward.Notification) {
	for again := true; again; n, again = w.inFlight.done(n.ID) {
		w.deliver(n)
	}
}

func (w *worker) wakeupCount() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wakeups
}

func (w *worker) activeCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active
}

func (w *worker) sendBegan(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active += n
}

func (w *worker) sendEnded(d *destination) {
	d.limiter.end(time.Now())
	w.mu.Lock()
	w.active--
	w.mu.Unlock()
	w.signal()
}

// withoutOutbox sends what may be sent from memory, and returns how long to wait.
func (w *worker) withoutOutbox(err error) time.Duration {
	if w.hard.Err() != nil {
		return 0
	}
	if first := !w.setOutboxFailed(true); first {
		w.log.Warn("reading the outbox failed, it is tried again", zap.Error(err))
	}
	return min(w.sendFromMemory(), retryOutboxEvery)
}

// outboxWorks records that the outbox answers.
func (w *worker) outboxWorks() {
	if w.setOutboxFailed(false) {
		w.log.Info("the outbox can be read again")
	}
}

// setOutboxFailed returns the previous state.
func (w *worker) setOutboxFailed(failed bool) (before bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.outboxFailed = w.outboxFailed, failed
	return before
}

// ack records the outcome of a notification, until the outbox takes it: a notification
// without a recorded outcome is sent again.
func (w *worker) ack(id string, record func(ctx context.Context, n locksteward.Notification) error) {
	for {
		n, claim := w.inFlight.latest(id)
		ctx, cancel := context.WithCancel(w.hard)
		last := w.hard.Err() != nil
		if last {
			ctx, cancel = context.WithTimeout(context.WithoutCancel(w.hard), retryOutboxEvery)
		}
		err := record(ctx, n)
		cancel()
		lost := errors.Is(err, locksteward.ErrClaimLost)
		if lost && w.inFlight.claimedSince(id, claim) {
			continue
		}
		if err == nil || lost || last {
			w.inFlight.acked(id, claim)
		}
		switch {
		case err == nil:
			return
		case lost:
			w.log.Info("a notification was sent twice", zap.String("notification_id", id), zap.Error(err))
			return
		case last:
			w.log.Warn("recording the outcome of a notification failed: it is sent again", zap.String("notification_id", id), zap.Error(err))
			return
		}
		timer := time.NewTimer(retryOutboxEvery)
		select {
		case <-timer.C:
		case <-w.hard.Done():
		}
		timer.Stop()
	}
}
