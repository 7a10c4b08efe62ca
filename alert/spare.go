package alert

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
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
	// left says that the outbox is to decide about it; writing, that it is being
	// written there.
	left, writing bool
}

// open notes that nothing waited in the outbox when the worker had been roused so
// often, and says whether that is news.
func (p *spare) open(roused uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := !p.isClear || p.clear != roused
	p.clear, p.isClear = roused, true
	return news
}

// reset forgets what is known of the outbox.
func (p *spare) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClear = false
}

func (p *spare) add(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) < maxSpare {
		p.list = append(p.list, spared{Message: m})
	}
}

// due returns the messages that may be sent now, the most urgent first: of each
// ordering the first, and none if something may wait in the outbox.
func (p *spare) due(roused uint64, now time.Time) []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClear || p.clear != roused {
		return nil
	}
	var out []Message
	held, most := map[string]bool{}, map[string]int{}
	for _, m := range p.list {
		if !m.sent && m.Ordering != "" {
			most[m.Ordering] = max(most[m.Ordering], m.Urgency)
		}
	}
	for _, m := range p.list {
		if m.sent || m.Ordering != "" && held[m.Ordering] {
			continue
		}
		held[m.Ordering] = true
		if !m.left && !m.writing && !now.Before(m.next) {
			out = append(out, m.Message)
		}
	}
	urgency := func(m Message) int { return max(m.Urgency, most[m.Ordering]) }
	slices.SortStableFunc(out, func(a, b Message) int { return cmp.Compare(urgency(b), urgency(a)) })
	return out
}

// waits says whether something is left to be told.
func (p *spare) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.list, func(m spared) bool { return !m.sent && !m.left })
}

// begin says whether the message may be sent still, and counts the attempt.
func (p *spare) begin(id string) (attempt int, ok bool) {
	p.change(id, func(m *spared) {
		if ok = !m.sent && !m.left && !m.writing; ok {
			m.Attempts++
			attempt = m.Attempts
		}
	})
	return attempt, ok
}

// change alters what is known of a message.
func (p *spare) change(id string, fn func(*spared)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		if p.list[i].ID == id {
			fn(&p.list[i])
			return
		}
	}
}

func (p *spare) sent(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.list, func(m spared) bool { return m.ID == id && m.sent })
}

// writing notes whether the message of an event is being written to the outbox,
// and returns it and how it stands.
func (p *spare) writing(event string, is bool) (m spared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		if p.list[i].EventID == event {
			p.list[i].writing = is
			return p.list[i]
		}
	}
	return spared{}
}

// kept forgets a message that the outbox need not have. One that was written there
// is remembered until it is claimed: an attempt from here may be under way still.
func (p *spare) kept(id string, written bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(m spared) bool { return m.ID == id && !written })
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
		if w.hooks.Alone != nil && !w.hooks.Alone() {
			return askAgain
		}
		now, d := time.Now(), w.dest.Load()
		if n, _ := d.free(now, 1); n == 0 || w.hard.Err() != nil {
			break
		}
		attempt, ok := w.spare.begin(m.ID)
		if !ok {
			continue
		}
		d.pace.began(now, 1)
		err := w.send(d, m)
		d.pace.ended(time.Now())
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
			s.next = time.Now().Add(max(backoff(attempt), e.RetryAfter))
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

// Spare tells changes that the outbox did not take, from memory, to receivers for
// which nothing waits there; those that are held back wait. Whoever has them
// writes what is [Sender.Leftover] to the outbox when it works again, and says so
// with [Sender.Kept].
func (s *Sender) Spare(changes []Change) {
	s.each(changes, func(w *worker, t Change, a Address) {
		if t.Survey {
			return
		}
		if t.Finding.Status == locksteward.StatusFiring {
			if s.hooks.held(t.Finding) != "" {
				return
			}
		}
		d := w.dest.Load()
		if m, ok := s.made(d.addressee, func() (Message, error) { return d.tellOne(t, a.Group) }); ok {
			w.spare.add(m)
			w.nudge()
		}
	})
}

// Leftover is what the outbox is to have of changes that it did not take when they
// happened: what was told from memory as told, what was tried as the message that
// it was, and the rest as changes that wait. None of it is told from memory until
// [Sender.Kept] or [Sender.Resume].
func (s *Sender) Leftover(changes []Change) (rest []Change, tried []Message) {
	for _, t := range changes {
		t.To = slices.Clone(t.To)
		s.each([]Change{t}, func(w *worker, _ Change, a Address) {
			m := w.spare.writing(t.EventID, true)
			if m.Attempts == 0 {
				return
			}
			t.To[slices.Index(t.To, a)].Told = true
			if !m.sent {
				tried = append(tried, m.Message)
			}
		})
		rest = append(rest, t)
	}
	return rest, tried
}

// Kept says that the outbox has what was [Sender.Leftover] of changes.
func (s *Sender) Kept(changes []Change, tried []Message) {
	s.each(changes, func(w *worker, t Change, _ Address) {
		if m := w.spare.writing(t.EventID, true); m.ID != "" {
			w.spare.kept(m.ID, slices.ContainsFunc(tried, func(k Message) bool { return k.ID == m.ID }))
		}
	})
}

// Resume says that the outbox did not take what was [Sender.Leftover] of changes.
func (s *Sender) Resume(changes []Change) {
	s.each(changes, func(w *worker, t Change, _ Address) {
		w.spare.writing(t.EventID, false)
		w.nudge()
	})
}

func (s *Sender) each(changes []Change, fn func(*worker, Change, Address)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range changes {
		for _, a := range t.To {
			for _, w := range s.workers {
				if w.name == a.Receiver {
					fn(w, t, a)
				}
			}
		}
	}
}
