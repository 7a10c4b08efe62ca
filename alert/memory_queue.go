package alert

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// maxInMemory bounds the notifications for one receiver that are sent from memory.
const maxInMemory = 10_000

// memoryQueue holds notifications for one receiver while the store is unavailable. They
// are sent from memory if nothing else waits for the receiver, which keeps the order.
type memoryQueue struct {
	mu   sync.Mutex
	list []queuedNotification
	// The outbox held nothing for the receiver when the worker had been woken emptyAt
	// times; only if knownEmpty.
	emptyAt    uint64
	knownEmpty bool
}

type queuedNotification struct {
	locksteward.Notification
	next time.Time
	sent bool
	// refused says that the outbox has to decide what becomes of it, saving that it is
	// being written there.
	refused, saving bool
}

// outboxEmpty records that the outbox held nothing when the worker had been woken so
// often, and reports whether that is news.
func (q *memoryQueue) outboxEmpty(wakeups uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	news := !q.knownEmpty || q.emptyAt != wakeups
	q.emptyAt, q.knownEmpty = wakeups, true
	return news
}

// reset forgets what is known of the outbox.
func (q *memoryQueue) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.knownEmpty = false
}

// add enqueues notifications; those beyond maxInMemory wait for the outbox alone.
func (q *memoryQueue) add(list []locksteward.Notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range list[:min(len(list), maxInMemory-len(q.list))] {
		q.list = append(q.list, queuedNotification{Notification: n})
	}
}

// due returns the notifications that may be sent now, the most urgent first: of each
// Ordering the first, and none if something may wait in the outbox.
func (q *memoryQueue) due(wakeups uint64, now time.Time) []locksteward.Notification {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.knownEmpty || q.emptyAt != wakeups {
		return nil
	}
	var out []locksteward.Notification
	blocked, most := map[string]bool{}, map[string]int{}
	for _, n := range q.list {
		if !n.sent && n.Ordering != "" {
			most[n.Ordering] = max(most[n.Ordering], n.Urgency)
		}
	}
	for _, n := range q.list {
		if n.sent || n.Ordering != "" && blocked[n.Ordering] {
			continue
		}
		blocked[n.Ordering] = true
		if !n.refused && !n.saving && !now.Before(n.next) {
			out = append(out, n.Notification)
		}
	}
	urgency := func(n locksteward.Notification) int { return max(n.Urgency, most[n.Ordering]) }
	slices.SortStableFunc(out, func(a, b locksteward.Notification) int { return cmp.Compare(urgency(b), urgency(a)) })
	return out
}

// pending reports whether something is left to be sent from memory.
func (q *memoryQueue) pending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.list, func(n queuedNotification) bool { return !n.sent && !n.refused })
}

// begin counts an attempt, and reports whether the notification may still be sent.
func (q *memoryQueue) begin(id string) (attempt int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.find(id)
	if n == nil || n.sent || n.refused || n.saving {
		return 0, false
	}
	n.Attempts++
	return n.Attempts, true
}

// delivered records that a notification arrived.
func (q *memoryQueue) delivered(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.find(id); n != nil {
		n.sent = true
	}
}

// failed records that an attempt failed: the next one comes at a time, or never.
func (q *memoryQueue) failed(id string, next time.Time, refused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.find(id); n != nil {
		n.next, n.refused = next, refused
	}
}

// find expects the caller to hold q.mu; nil if there is no such notification.
func (q *memoryQueue) find(id string) *queuedNotification {
	for i := range q.list {
		if q.list[i].ID == id {
			return &q.list[i]
		}
	}
	return nil
}

// setSaving records whether the notification of an event is being written to the
// outbox, and returns it; the zero notification if there is none.
func (q *memoryQueue) setSaving(event string, saving bool) queuedNotification {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.list {
		if q.list[i].EventID == event {
			q.list[i].saving = saving
			return q.list[i]
		}
	}
	return queuedNotification{}
}

// remove removes a notification.
func (q *memoryQueue) remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = slices.DeleteFunc(q.list, func(n queuedNotification) bool { return n.ID == id })
}

// claimed removes a notification that was claimed from the outbox, and reports whether
// it arrived before.
func (q *memoryQueue) claimed(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.find(id)
	if n == nil {
		return false
	}
	sent := n.sent
	q.list = slices.DeleteFunc(q.list, func(n queuedNotification) bool { return n.ID == id })
	return sent
}

// sendFromMemory makes one attempt at each notification that may be sent from memory,
// and returns how long to wait before the next call.
func (w *worker) sendFromMemory() time.Duration {
	for _, n := range w.memory.due(w.wakeupCount(), time.Now()) {
		if w.hooks.OnlyReplica != nil && !w.hooks.OnlyReplica() {
			return retryOutboxEvery
		}
		now, d := time.Now(), w.dest.Load()
		if free, _ := d.free(now, 1); free == 0 || w.hard.Err() != nil {
			break
		}
		attempt, ok := w.memory.begin(n.ID)
		if !ok {
			continue
		}
		d.limiter.begin(now, 1)
		out := newOutgoing(n.ID, n.Body)
		err := w.send(d, out)
		d.limiter.end(time.Now())
		if err == nil {
			w.memory.delivered(n.ID)
			w.delivery.delivered(n.ID, out.subject())
			w.hooks.count(w.name, OutcomeDelivered, ReasonOK)
			w.log.Info("notification delivered from memory, the store is unavailable", zap.String("notification_id", n.ID))
			continue
		}
		e := deliveryError(err)
		w.memory.failed(n.ID, time.Now().Add(max(backoff(attempt), e.RetryAfter)), !e.Retryable)
		w.hooks.count(w.name, OutcomeRetried, e.Reason)
		w.logFailure(n, 0, e)
		if e.Status == 0 {
			break // the receiver is unreachable: the others would fail as well
		}
	}
	if w.memory.pending() {
		return retryOutboxEvery
	}
	return pollEvery
}

// SendFromMemory sends events that the outbox did not take, from memory, to receivers
// for which nothing waits there; events that are held back wait. The caller writes
// [Sender.Unsaved] to the outbox when that works again, and then calls [Sender.Saved].
func (s *Sender) SendFromMemory(events []locksteward.FindingEvent) {
	// All at once, so that the most urgent of them is sent first.
	queued := map[*worker][]locksteward.Notification{}
	s.eachRecipient(events, func(w *worker, e locksteward.FindingEvent, to locksteward.Recipient) {
		if e.FirstSweep || e.Finding.Status == locksteward.StatusFiring && s.hooks.heldBy(e.Finding) != "" {
			return
		}
		d := w.dest.Load()
		if n, ok := s.encoded(d.writer, func() (locksteward.Notification, error) { return d.single(e, to.Group) }); ok {
			queued[w] = append(queued[w], n)
		}
	})
	for w, list := range queued {
		w.memory.add(list)
		w.signal()
	}
}

// Unsaved is what the outbox has to take for events that it did not take when they
// happened: the events, where those that were sent from memory do not wait, and the
// notifications that were tried and did not arrive. None of it is sent from memory
// until [Sender.Saved] or [Sender.SaveFailed].
func (s *Sender) Unsaved(events []locksteward.FindingEvent) (rest []locksteward.FindingEvent, tried []locksteward.Notification) {
	for _, e := range events {
		e.To = slices.Clone(e.To)
		s.eachRecipient([]locksteward.FindingEvent{e}, func(w *worker, _ locksteward.FindingEvent, to locksteward.Recipient) {
			n := w.memory.setSaving(e.ID, true)
			if n.Attempts == 0 {
				return
			}
			e.To[slices.Index(e.To, to)].Direct = true
			if !n.sent {
				tried = append(tried, n.Notification)
			}
		})
		rest = append(rest, e)
	}
	return rest, tried
}

// Saved is called when the outbox took what [Sender.Unsaved] returned. Notifications
// that were tried stay in memory until they are claimed: an attempt may be in flight.
func (s *Sender) Saved(events []locksteward.FindingEvent, tried []locksteward.Notification) {
	s.eachRecipient(events, func(w *worker, e locksteward.FindingEvent, _ locksteward.Recipient) {
		n := w.memory.setSaving(e.ID, true)
		if n.ID != "" && !slices.ContainsFunc(tried, func(t locksteward.Notification) bool { return t.ID == n.ID }) {
			w.memory.remove(n.ID)
		}
	})
}

// SaveFailed is called when the outbox did not take what [Sender.Unsaved] returned.
func (s *Sender) SaveFailed(events []locksteward.FindingEvent) {
	s.eachRecipient(events, func(w *worker, e locksteward.FindingEvent, _ locksteward.Recipient) {
		w.memory.setSaving(e.ID, false)
		w.signal()
	})
}

// eachRecipient calls fn for each receiver of each event.
func (s *Sender) eachRecipient(events []locksteward.FindingEvent, fn func(*worker, locksteward.FindingEvent, locksteward.Recipient)) {
	workers := s.workers()
	for _, e := range events {
		for _, to := range e.To {
			for _, w := range workers {
				if w.name == to.Receiver {
					fn(w, e, to)
				}
			}
		}
	}
}
