package alert

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// maxSpare bounds what is told from memory to one receiver.
const maxSpare = 10_000

// spare is what the outbox could not take, for one receiver: it is told from
// memory if nothing else waits for the receiver, so that the order is kept.
type spare struct {
	mu   sync.Mutex
	list []spared
	// clear is how often the worker was roused when nothing waited in the outbox.
	clear   uint64
	isClear bool
}

type spared struct {
	Message
	next time.Time
	sent bool
	// left says that the outbox is to decide about it.
	left bool
}

// open notes that nothing waited in the outbox when the worker had been roused so
// often.
func (p *spare) open(roused uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear, p.isClear = roused, true
}

func (p *spare) add(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) < maxSpare {
		p.list = append(p.list, spared{Message: m})
	}
}

// due returns the messages that may be sent now: of each ordering the first, and
// none if something may wait in the outbox.
func (p *spare) due(roused uint64, now time.Time) []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClear || p.clear != roused {
		return nil
	}
	var out []Message
	held := map[string]bool{}
	for _, m := range p.list {
		if m.sent || m.Ordering != "" && held[m.Ordering] {
			continue
		}
		held[m.Ordering] = true
		if !m.left && !now.Before(m.next) {
			out = append(out, m.Message)
		}
	}
	return out
}

// waits says whether something is left to be told.
func (p *spare) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.list, func(m spared) bool { return !m.sent && !m.left })
}

// change alters what is known of a message and returns how often it was tried.
func (p *spare) change(id string, fn func(*spared)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		if p.list[i].ID == id {
			p.list[i].Attempts++
			fn(&p.list[i])
			return p.list[i].Attempts
		}
	}
	return 0
}

func (p *spare) sent(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.list, func(m spared) bool { return m.ID == id && m.sent })
}

// kept forgets a message that the outbox has, or need not have. One that was told
// while it was being written is remembered until it is claimed.
func (p *spare) kept(id string, written bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(m spared) bool { return m.ID == id && !(written && m.sent) })
}

// claimed forgets a message that was claimed, and says whether it was told.
func (p *spare) claimed(id string) bool {
	sent := p.sent(id)
	p.kept(id, false)
	return sent
}

// tellSpare makes one attempt for each message that may be told from memory, and
// returns how long to wait before the next look.
func (w *worker) tellSpare() time.Duration {
	for _, m := range w.spare.due(w.timesRoused(), time.Now()) {
		if w.hard.Err() != nil {
			break
		}
		err := w.dest.Load().out.send(w.hard, m.ID, m.Body)
		if err == nil {
			w.spare.change(m.ID, func(s *spared) { s.sent = true })
			w.told.arrived(m, subjectOf(m.Body))
			w.hooks.count(w.name, OutcomeDelivered, ReasonOK)
			w.log.Info("alert delivered while the store does not take it", zap.String("message_id", m.ID))
			continue
		}
		e := deliveryError(err)
		w.spare.change(m.ID, func(s *spared) {
			s.left = !e.Retryable
			s.next = time.Now().Add(max(backoff(s.Attempts), e.RetryAfter))
		})
		w.hooks.count(w.name, OutcomeRetried, e.Reason)
		w.warn(m, 0, e)
		if e.Status == 0 {
			break // it is not there: the others would not arrive either
		}
	}
	if w.spare.waits() {
		return askAgain
	}
	return pollEvery
}

// Spare tells messages that the outbox did not take, from memory, to receivers for
// which nothing waits there. Whoever has them writes them to the outbox when it
// works again: those that are [Sender.Unsent], and says so with [Sender.Kept].
func (s *Sender) Spare(messages []Message) {
	s.each(messages, func(w *worker, m Message) {
		w.spare.add(m)
		w.nudge()
	})
}

// Unsent returns those of messages that were not told from memory.
func (s *Sender) Unsent(messages []Message) []Message {
	var out []Message
	known := map[string]bool{}
	s.each(messages, func(w *worker, m Message) { known[m.ID] = w.spare.sent(m.ID) })
	for _, m := range messages {
		if !known[m.ID] {
			out = append(out, m)
		}
	}
	return out
}

// Kept says that of these messages the outbox has those that were written; the
// others need not be kept.
func (s *Sender) Kept(messages, written []Message) {
	has := map[string]bool{}
	for _, m := range written {
		has[m.ID] = true
	}
	s.each(messages, func(w *worker, m Message) { w.spare.kept(m.ID, has[m.ID]) })
}

func (s *Sender) each(messages []Message, fn func(*worker, Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		for _, w := range s.workers {
			if w.name == m.Receiver {
				fn(w, m)
			}
		}
	}
}
