package alert

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// resendBatchSize bounds what is read and resent at once, and so the memory for it.
const resendBatchSize = 100

// resender is a transport to a receiver, such as Alertmanager, that forgets alerts which
// are not sent again and again.
type resender interface {
	// resendFiring sends findings that fire again.
	resendFiring(ctx context.Context, firing []PayloadFinding) error
	// interval is the time between two resends.
	interval() time.Duration
}

// send makes one attempt. A resend that runs at the same time was read and sent before:
// no resolve is followed by an older fire.
func (w *worker) send(d *destination, out outgoing) error {
	w.sendGate.enter()
	defer w.sendGate.leave()
	err := d.out.send(w.hard, out)
	if _, ok := d.out.(resender); ok && err == nil && out.err == nil {
		w.delivery.noteResolved(out.payload, time.Now())
	}
	return err
}

// sendGate admits either notifications, side by side, or one batch of resendLoop. It is
// no sync.RWMutex: it is held over the network.
type sendGate chan struct{}

func newSendGate() sendGate { return make(sendGate, maxInFlight+1) } // one more is sent from memory

func (g sendGate) enter() { g <- struct{}{} }

func (g sendGate) leave() { <-g }

// enterAlone waits for all that is in flight. Only one goroutine calls it.
func (g sendGate) enterAlone() {
	for range cap(g) {
		g <- struct{}{}
	}
}

func (g sendGate) leaveAlone() {
	for range cap(g) {
		<-g
	}
}

// resendLoop resends what the receiver knows to fire, until stop. None of it goes
// through the outbox: the next resend is newer.
func (w *worker) resendLoop() {
	for w.stop.Err() == nil && w.hard.Err() == nil {
		timer := time.NewTimer(w.resendAll())
		select {
		case <-timer.C:
		case <-w.stop.Done():
		case <-w.hard.Done():
		}
		timer.Stop()
	}
}

// resendAll resends everything once, and returns how long to wait.
func (w *worker) resendAll() time.Duration {
	out, ok := w.dest.Load().out.(resender)
	if !ok {
		return pollEvery // a reload may change that
	}
	began, every := time.Now(), out.interval()
	var failed error
	listed := map[string]bool{} // ended, and the outbox does not know it
	for after, more := "", true; more; {
		var err error
		if after, more, err = w.resendBatch(after, listed); err != nil {
			if w.hard.Err() != nil || w.stop.Err() != nil {
				return every
			}
			failed = err
		}
	}
	if failed == nil {
		w.delivery.forgetResolved(began, listed)
	}
	w.logResend(failed)
	if failed != nil {
		return max(time.Second, every/4)
	}
	return max(time.Second, every-time.Since(began))
}

// resendBatch resends the findings after a fingerprint, and returns the last fingerprint.
// No notification is sent meanwhile: a resolve of what is read here comes after it.
func (w *worker) resendBatch(after string, listed map[string]bool) (last string, more bool, err error) {
	w.sendGate.enterAlone()
	defer w.sendGate.leaveAlone()
	d := w.dest.Load()
	out, ok := d.out.(resender)
	if !ok {
		return "", false, nil
	}
	list, err := w.outbox.Firing(w.stop, w.name, after, resendBatchSize)
	if err != nil || len(list) == 0 {
		return "", false, err
	}
	last, more = list[len(list)-1].Finding.Fingerprint(), len(list) == resendBatchSize
	list = slices.DeleteFunc(list, func(e locksteward.FindingEvent) bool {
		print := e.Finding.Fingerprint()
		if !w.delivery.resolvedSince(print, stamp(e.At)) {
			return false
		}
		listed[print] = true
		return true
	})
	if firing := d.firingEvents(list); len(firing) > 0 {
		err = out.resendFiring(w.stop, firing)
	}
	return last, more, err
}

// firingEvents are events as the receiver is notified of them. Those of a first sweep
// were summed up.
func (w writer) firingEvents(list []locksteward.FindingEvent) []PayloadFinding {
	p := Payload{}
	for _, e := range list {
		if e.Finding.Status == locksteward.StatusFiring && !e.FirstSweep {
			p.Findings = append(p.Findings, w.event(e))
		}
	}
	w.complete(&p)
	return p.Findings
}

// logResend logs when resending begins to fail and when it works again.
func (w *worker) logResend(err error) {
	switch {
	case err != nil && !w.resendFailing:
		w.log.Warn("resending firing alerts failed for some instances, it is tried again", zap.Error(err))
	case err == nil && w.resendFailing:
		w.log.Info("firing alerts are resent again")
	}
	w.resendFailing = err != nil
}
