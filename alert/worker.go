package alert

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// inFlight is how many messages are under way to one receiver at once.
	inFlight = 4
	// claimSlack is how much longer than one attempt a message is claimed: for the
	// way to it and for word about it.
	claimSlack = 5 * time.Second
	// askAgain is how often an outbox that does not work is tried, and what is told
	// from memory.
	askAgain = time.Second
	// pollEvery is how often it is looked without a reason; lull is the pause after a
	// look that found nothing where something was.
	pollEvery = 15 * time.Second
	lull      = 20 * time.Millisecond
)

// transport makes one attempt. Its error is a *DeliveryError.
type transport interface {
	send(ctx context.Context, id string, body []byte) error
	close()
}

// destination is where a receiver's messages go, and how it is told.
type destination struct {
	out transport
	addressee
	// pace is nil for a receiver that takes as many messages as come.
	pace *pace
}

func newDestination(out transport, a addressee) *destination {
	return &destination{out: out, addressee: a, pace: newPace(a.rates)}
}

// after has it go on at the pace of the one before, whose service may be the same.
func (d *destination) after(was *destination) {
	if was.rates == d.rates {
		d.pace = was.pace
	}
}

// free is how many messages may be sent now, at most n; if none, wait is how long
// it is until one may.
func (d *destination) free(now time.Time, n int) (free int, wait time.Duration) {
	if d.people {
		n = min(n, 1)
	}
	return d.pace.free(now, n)
}

// worker delivers to one receiver.
type worker struct {
	name    string
	log     *zap.Logger
	box     Outbox
	hooks   Hooks
	dest    atomic.Pointer[destination]
	wake    chan struct{} // of size 1
	gather  chan struct{} // the same for what waits in groups
	circuit circuit
	told    told
	spare   spare
	flights flights
	// hurried is false when what waits need not wait any longer, since the receiver
	// works again or is another.
	hurried atomic.Bool

	// stop ends the claiming, hard the sending too; both are set before run.
	stop, hard context.Context
	cancel     context.CancelFunc
	done       chan struct{}
	collected  chan struct{} // closed when nothing more is collected

	// order keeps messages and what is told again apart: see refresh.go, whose goroutine
	// has forgotten alone.
	order     order
	over      over
	forgotten bool

	// more says that the last claim got as many as it asked for, brief that the receiver
	// takes another message within a second. Of run alone.
	more, brief bool

	mu      sync.Mutex
	flying  int
	roused  uint64 // how often it was roused
	deaf    bool   // the outbox did not answer, and that was logged
	warned  Reason // the reason that was last logged as a warning
	sending sync.WaitGroup
}

func newWorker(log *zap.Logger, name string, box Outbox, hooks Hooks, d *destination) *worker {
	w := &worker{
		name: name, log: log.With(zap.String("receiver", name)), box: box, hooks: hooks,
		wake: make(chan struct{}, 1), gather: make(chan struct{}, 1), order: newOrder(),
		flights: flights{by: map[string]*flight{}},
	}
	w.hurried.Store(true)
	w.dest.Store(d)
	return w
}

// redirect sends what waits to another place, at once.
func (w *worker) redirect(d *destination) {
	was := w.dest.Load()
	d.after(was)
	w.dest.Store(d)
	was.out.close()
	w.tryNow()
}

// tryNow has all that waits tried at once.
func (w *worker) tryNow() {
	w.circuit.reset()
	w.hurried.Store(false)
	w.rouse()
}

// begin gives the worker its time. It comes before run.
func (w *worker) begin(stop, hard context.Context) {
	// Another process may have been at work since the last time.
	w.told.reset()
	w.over.reset()
	w.spare.reset()
	w.circuit.begin()
	w.more, w.forgotten = false, false
	w.stop = stop
	w.hard, w.cancel = context.WithCancel(hard)
	w.done, w.collected = make(chan struct{}), make(chan struct{})
}

// remove ends the worker with what is under way, and returns when it ended. What
// waits is given up by [Sender.takeStock].
func (w *worker) remove() {
	if w.done == nil {
		return
	}
	w.cancel()
	<-w.done
}

// rouse has the worker look again.
func (w *worker) rouse() {
	w.mu.Lock()
	w.roused++
	w.mu.Unlock()
	w.nudge()
}

func (w *worker) nudge() {
	poke(w.wake)
	poke(w.gather)
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// both delivers what is due, and makes messages of what waits in groups.
func (w *worker) both() {
	defer close(w.done)
	var group sync.WaitGroup
	group.Go(w.collect)
	group.Go(w.refresh)
	w.run()
	group.Wait()
}

// run delivers until stop is done and nothing is due, or until hard is done.
func (w *worker) run() {
	defer w.cancel()
	// Not those of an attempt under way alone: a reload may have changed it.
	defer func() { w.dest.Load().out.close() }()
	defer w.sending.Wait()
	for w.hard.Err() == nil {
		wait := w.round()
		if w.stop.Err() != nil && wait > 0 && !w.brief && w.underWay() == 0 && closed(w.collected) {
			return // what is due later is for the next start
		}
		w.rest(wait)
	}
}

// rest waits for a reason to look again.
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
	case <-w.wake:
	case <-stopping:
	case <-w.hard.Done():
	}
}

// round begins to send what may be sent now, and returns how long nothing else
// will be due.
func (w *worker) round() time.Duration {
	now, d := time.Now(), w.dest.Load()
	n, wait := w.circuit.allow(now, inFlight-w.underWay())
	w.brief = false
	if n > 0 {
		n, wait = d.free(now, n)
		w.brief = n == 0 && wait <= time.Second
		if d.people && w.underWay() > 0 {
			n, wait = 0, 0
		}
	}
	if n <= 0 {
		if wait > 0 {
			return wait
		}
		return pollEvery // an end of what is under way comes first
	}
	if w.hurried.CompareAndSwap(false, true) {
		if err := w.box.Hurry(w.hard, w.name); err != nil {
			w.hurried.Store(false)
			return w.withoutOutbox(err)
		}
	}
	if !w.more {
		roused := w.timesRoused()
		due, waits, err := w.box.NextDue(w.hard, w.name)
		switch {
		case err != nil:
			return w.withoutOutbox(err)
		case !waits:
			poke(w.gather)
			if waits, err := w.box.Waits(w.hard, w.name); err != nil {
				return w.withoutOutbox(err)
			} else if !waits && w.spare.open(roused) {
				w.log.Debug("nothing waits: what the store does not take is told from memory")
			}
			return w.tellSpare()
		case due > 0:
			return min(due, pollEvery)
		}
	}
	fresh, came, err := w.flights.claim(w.hard, w.box, w.name, w.dest.Load().Timeout+claimSlack, n)
	if err != nil {
		return w.withoutOutbox(err)
	}
	w.heard()
	if w.more = came == n; len(fresh) == 0 {
		return lull // another was quicker, or they are under way
	}
	w.circuit.probe()
	d.pace.began(now, len(fresh))
	w.take(len(fresh))
	for _, m := range fresh {
		w.sending.Go(func() {
			defer w.landed(d)
			w.fly(m)
		})
	}
	return 0
}

// fly delivers a message, again if it comes back before its flight is over.
func (w *worker) fly(m Message) {
	for again := true; again; m, again = w.flights.land(m.ID) {
		w.deliver(m)
	}
}

func (w *worker) timesRoused() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roused
}

func (w *worker) underWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flying
}

func (w *worker) take(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying += n
}

func (w *worker) landed(d *destination) {
	d.pace.ended(time.Now())
	w.mu.Lock()
	w.flying--
	w.mu.Unlock()
	w.nudge()
}

// withoutOutbox tells from memory what may be told, and returns how long to wait.
func (w *worker) withoutOutbox(err error) time.Duration {
	if w.hard.Err() != nil {
		return 0
	}
	w.mu.Lock()
	first := !w.deaf
	w.deaf = true
	w.mu.Unlock()
	if first {
		w.log.Warn("messages cannot be read, it is tried again", zap.Error(err))
	}
	return min(w.tellSpare(), askAgain)
}

// heard notes that the outbox answers.
func (w *worker) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf {
		w.log.Info("messages are read again")
	}
	w.deaf = false
}

// word says what became of a message until the outbox takes it: a message about
// which nothing is said is sent again.
func (w *worker) word(id string, say func(ctx context.Context, m Message) error) {
	for {
		m, claim := w.flights.latest(id)
		ctx, cancel := context.WithCancel(w.hard)
		last := w.hard.Err() != nil
		if last {
			ctx, cancel = context.WithTimeout(context.WithoutCancel(w.hard), askAgain)
		}
		err := say(ctx, m)
		cancel()
		lost := errors.Is(err, ErrClaimLost)
		if lost && w.flights.claimedSince(id, claim) {
			continue
		}
		if err == nil || lost || last {
			w.flights.said(id, claim)
		}
		switch {
		case err == nil:
			return
		case lost:
			w.log.Info("a message was sent twice", zap.String("message_id", id), zap.Error(err))
			return
		case last:
			w.log.Warn("what became of a message is not known to the store: it is sent again", zap.String("message_id", id), zap.Error(err))
			return
		}
		timer := time.NewTimer(askAgain)
		select {
		case <-timer.C:
		case <-w.hard.Done():
		}
		timer.Stop()
	}
}
