package alert

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// remindAtOnce bounds what is read and told again at once, and so the memory for it.
const remindAtOnce = 100

// reminder is a transport to a receiver that forgets what it is not told again and
// again.
type reminder interface {
	// remind tells again what fires.
	remind(ctx context.Context, firing []Event) error
	// every is how often.
	every() time.Duration
}

// send makes one attempt at a message. What is told again at the same time was read
// and told before: so no end is followed by what was known before it.
func (w *worker) send(d *destination, m Message) error {
	w.order.share()
	defer w.order.unshare()
	err := d.out.send(w.hard, m.ID, m.Body)
	if _, ok := d.out.(reminder); ok && err == nil {
		w.over.note(m.Body, time.Now())
	}
	return err
}

// order lets either messages through, side by side, or one look at what fires. It is
// no sync.RWMutex: what waits for it waits for a network.
type order chan struct{}

func newOrder() order { return make(order, inFlight+1) } // what is told from memory is one more

func (o order) share() { o <- struct{}{} }

func (o order) unshare() { <-o }

// take waits for all that is under way. Only one goroutine takes.
func (o order) take() {
	for range cap(o) {
		o <- struct{}{}
	}
}

func (o order) release() {
	for range cap(o) {
		<-o
	}
}

// over is what a receiver was told to be over. The outbox knows too, but for what was
// told while it took nothing.
type over struct {
	mu sync.Mutex
	of map[string]ended
}

type ended struct {
	at    time.Time // of the event
	noted time.Time
}

func (o *over) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of = nil
}

func (o *over) note(body []byte, now time.Time) {
	p, err := payloadOf(body)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range p.Findings {
		if e.Status != string(locksteward.StatusResolved) {
			delete(o.of, e.Fingerprint)
			continue
		}
		if o.of == nil {
			o.of = map[string]ended{}
		}
		o.of[e.Fingerprint] = ended{e.At, now}
	}
}

// has says that the finding ended after the change.
func (o *over) has(fingerprint string, at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, ok := o.of[fingerprint]
	return ok && !at.After(e.at)
}

// forget drops what was noted before a look at all that stands, and was not met there.
func (o *over) forget(before time.Time, met map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.of, func(id string, e ended) bool { return e.noted.Before(before) && !met[id] })
}

// refresh tells a receiver again and again what it knows to fire, until stop. None of
// it goes through the outbox: the next time tells what is true then.
func (w *worker) refresh() {
	for w.stop.Err() == nil && w.hard.Err() == nil {
		timer := time.NewTimer(w.remindAll())
		select {
		case <-timer.C:
		case <-w.stop.Done():
		case <-w.hard.Done():
		}
		timer.Stop()
	}
}

// remindAll tells all of it once, and returns how long to wait.
func (w *worker) remindAll() time.Duration {
	out, ok := w.dest.Load().out.(reminder)
	if !ok {
		return pollEvery // a reload may change that
	}
	began, every := time.Now(), out.every()
	var missed error
	met := map[string]bool{} // what the outbox does not know to be over
	for after, more := "", true; more; {
		var err error
		if after, more, err = w.remindSome(after, met); err != nil {
			if w.hard.Err() != nil || w.stop.Err() != nil {
				return every
			}
			missed = err
		}
	}
	if missed == nil {
		w.over.forget(began, met)
	}
	if w.unheard(missed) {
		return max(time.Second, every/4)
	}
	return max(time.Second, every-time.Since(began))
}

// remindSome tells what comes after a fingerprint, and returns the last one of it. No
// message is sent meanwhile: one that ends what is read here comes after it.
func (w *worker) remindSome(after string, met map[string]bool) (last string, more bool, err error) {
	w.order.take()
	defer w.order.release()
	d := w.dest.Load()
	out, ok := d.out.(reminder)
	if !ok {
		return "", false, nil
	}
	list, err := w.box.Standing(w.stop, w.name, after, remindAtOnce)
	if err != nil || len(list) == 0 {
		return "", false, err
	}
	last, more = list[len(list)-1].Finding.Fingerprint(), len(list) == remindAtOnce
	list = slices.DeleteFunc(list, func(c Change) bool {
		id := c.Finding.Fingerprint()
		if !w.over.has(id, stamp(c.At)) {
			return false
		}
		met[id] = true
		return true
	})
	if firing := d.reminded(list); len(firing) > 0 {
		err = out.remind(w.stop, firing)
	}
	return last, more, err
}

// reminded are changes as the receiver is told of them. Those of a first survey were
// told in sum.
func (a addressee) reminded(list []Change) []Event {
	p := Payload{}
	for _, c := range list {
		if c.Finding.Status == locksteward.StatusFiring && !c.Survey {
			p.Findings = append(p.Findings, a.event(c))
		}
	}
	a.dress(&p)
	return p.Findings
}

// unheard logs when telling again begins to fail and when it works again.
func (w *worker) unheard(err error) bool {
	switch {
	case err != nil && !w.forgotten:
		w.log.Warn("what fires is not told again everywhere, it is tried again", zap.Error(err))
	case err == nil && w.forgotten:
		w.log.Info("what fires is told again")
	}
	w.forgotten = err != nil
	return w.forgotten
}
