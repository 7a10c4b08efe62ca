package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// MessageState is where a message stands.
type MessageState string

const (
	// MessageWaiting is to be sent, now or later.
	MessageWaiting MessageState = "waiting"
	// MessageDelivered is done.
	MessageDelivered MessageState = "delivered"
	// MessageDead was given up; it can be replayed.
	MessageDead MessageState = "dead"
)

// Message is what one receiver is sent at once: one event, or several of a group.
type Message struct {
	// ID is unique for event and receiver and the same in every attempt, so that a
	// receiver knows a copy. A message whose ID the outbox has is not taken in
	// again: writing a change twice tells it once.
	ID       string
	Receiver string
	// Ordering names what must be sent in its order, a group's key or a request's id:
	// one is in flight at a time. Empty: any order.
	Ordering string
	// Urgency is how urgent it is: of what is due, the higher is claimed first, and then
	// the older. What waits before it in its Ordering becomes as urgent.
	Urgency int
	EventID string
	Target  string
	Body    []byte
	// Delay is how long it is held back at first.
	Delay time.Duration

	// Seq is the message's place in the order in which changes were written; it
	// grows over all receivers, restarts and processes. The store sets it and all
	// that follows; times are of the database's clock.
	Seq       int64
	State     MessageState
	Attempts  int // begun, the one under way included
	NextAt    time.Time
	CreatedAt time.Time
	DoneAt    time.Time
	LastError string

	claim string
}

// enqueue writes messages inside the transaction of the change that they tell of.
// The caller is the only writer of its kind, so that their numbers are in the
// order of commits.
func enqueue(ctx context.Context, t *tx, messages []Message) error {
	if len(messages) == 0 {
		return nil
	}
	fresh, err := unknown(ctx, t, messages)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var seq, now int64
	if err := t.row(ctx, `SELECT seq, `+t.on.now+` FROM outbox_head WHERE id = 1`).Scan(&seq, &now); err != nil {
		return fmt.Errorf("read head of outbox: %w", err)
	}
	var rows [][]any
	urgencies := map[[2]string]int{} // by receiver and ordering
	for _, m := range slices.Backward(fresh) {
		urgency := m.Urgency
		if at := [2]string{m.Receiver, text(m.Ordering)}; at[1] != "" {
			urgency = max(urgency, urgencies[at])
			urgencies[at] = urgency
		}
		rows = append(rows, []any{
			seq + int64(len(fresh)-len(rows)), m.ID, m.Receiver, text(m.Ordering), m.EventID, text(m.Target), bytesOf(string(m.Body)),
			string(MessageWaiting), 0, now + m.Delay.Microseconds(), "", 0, now, 0, "", urgency,
		})
	}
	slices.Reverse(rows)
	if err := raise(ctx, t, urgencies); err != nil {
		return err
	}
	err = t.insert(ctx, "outbox",
		"seq, id, receiver, ordering, event_id, target, body, state, attempts, next_at, claim, claimed_until, created_at, done_at, last_error, urgency", "", rows)
	if err != nil {
		return err
	}
	t.enqueued = true
	_, err = t.exec(ctx, `UPDATE outbox_head SET seq = ? WHERE id = 1`, seq+int64(len(fresh)))
	return err
}

// raise makes what waits in orderings as urgent as what is to wait behind it.
func raise(ctx context.Context, t *tx, urgencies map[[2]string]int) error {
	for at, urgency := range urgencies {
		if urgency <= 0 {
			continue
		}
		_, err := t.exec(ctx, `UPDATE outbox SET urgency = ? WHERE receiver = ? AND ordering = ? AND state = 'waiting' AND urgency < ?`,
			urgency, at[0], at[1], urgency)
		if err != nil {
			return fmt.Errorf("raise urgency of messages: %w", err)
		}
	}
	return nil
}

// Enqueued has fn called after each transaction that put messages into the outbox,
// or had dead ones sent again, when they can be claimed. It must be quick. It is
// called once, before there are changes.
func (s *Store) Enqueued(fn func()) { s.enqueued.Store(&fn) }

// unknown returns the messages that the outbox does not have, each once.
func unknown(ctx context.Context, t *tx, messages []Message) ([]Message, error) {
	known := map[string]bool{}
	for part := range slices.Chunk(messages, 100) {
		var ids []any
		for _, m := range part {
			if m.ID == "" || m.Receiver == "" {
				return nil, fmt.Errorf("enqueue message of event %q: id %q and receiver %q must not be empty", m.EventID, m.ID, m.Receiver)
			}
			ids = append(ids, m.ID)
		}
		rows, err := t.query(ctx, `SELECT id FROM outbox WHERE id IN (`+marks(len(ids))+`)`, ids...)
		err = each(rows, err, func(row rowScanner) error {
			var id string
			err := row.Scan(&id)
			known[id] = true
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var out []Message
	for _, m := range messages {
		if !known[m.ID] {
			known[m.ID] = true
			out = append(out, m)
		}
	}
	return out, nil
}

// MessageQuery selects messages; zero fields select all.
type MessageQuery struct {
	ID       string
	State    MessageState
	Receiver string
	Ordering string
	EventID  string
	Before   int64 // only messages with a smaller Seq, for the next page
	Limit    int   // 0: 100
}

// Messages returns messages, newest first.
func (s *Store) Messages(ctx context.Context, q MessageQuery) ([]Message, error) {
	f := q.filter()
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var out []Message
	err := s.inRead(ctx, "list messages", func(ctx context.Context, r querier) error {
		rows, err := r.query(ctx, `SELECT `+messageColumns+` FROM outbox o`+f.where()+` ORDER BY seq DESC LIMIT ?`, append(f.args, limit)...)
		return each(rows, err, func(row rowScanner) error {
			m, err := scanMessage(row)
			out = append(out, m)
			return err
		})
	})
	return out, err
}

// LastFailure returns how the last attempt at the oldest of those messages ended that
// wait for a receiver and failed; "" if none did. The others may wait behind it.
func (s *Store) LastFailure(ctx context.Context, receiver string) (string, error) {
	var why string
	err := s.inRead(ctx, "look for failures", func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT last_error FROM outbox WHERE receiver = ? AND state = 'waiting' AND last_error <> '' ORDER BY seq LIMIT 1`, receiver).Scan(&why)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return why, err
}

func (q MessageQuery) filter() filter {
	var f filter
	for _, c := range []struct{ column, value string }{
		{"id", q.ID}, {"state", string(q.State)}, {"receiver", q.Receiver}, {"ordering", q.Ordering}, {"event_id", q.EventID},
	} {
		if c.value != "" {
			f.add(c.column+" = ?", c.value)
		}
	}
	if q.Before > 0 {
		f.add("seq < ?", q.Before)
	}
	return f
}

// Replay has dead messages sent again, as if they were new: those of q,
// whose state is not looked at and whose limit is not kept. It returns how many
// these are, and writes the entries about it with them.
func (s *Store) Replay(ctx context.Context, q MessageQuery, entries ...locksteward.Entry) (int64, error) {
	q.State = MessageDead
	f := q.filter()
	var n int64
	err := s.inWrite(ctx, "replay messages", func(ctx context.Context, t *tx) error {
		var err error
		n, err = t.exec(ctx, `UPDATE outbox SET state = 'waiting', attempts = 0, next_at = `+s.on.now+`, created_at = `+s.on.now+`, done_at = 0`+f.where(), f.args...)
		if err != nil || n == 0 {
			return err
		}
		t.enqueued = true
		return s.written(ctx, t, Written{Entries: entries})
	})
	return n, err
}

// Backlog is what waits for one receiver, or was given up.
type Backlog struct {
	Receiver string
	Waiting  int64
	Dead     int64
	Oldest   time.Duration // how long the oldest that waits has been waiting
}

// Backlogs returns what waits and what is dead, by receiver.
func (s *Store) Backlogs(ctx context.Context) ([]Backlog, error) {
	var out []Backlog
	err := s.inRead(ctx, "count messages", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx,
			`SELECT receiver, SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END), SUM(CASE WHEN state = 'dead' THEN 1 ELSE 0 END),
			     COALESCE(`+s.on.now+` - MIN(CASE WHEN state = 'waiting' THEN created_at END), 0)
			 FROM outbox WHERE state IN ('waiting', 'dead') GROUP BY receiver ORDER BY receiver`)
		return each(rows, err, func(row rowScanner) error {
			var b Backlog
			var oldest int64
			err := row.Scan(&b.Receiver, &b.Waiting, &b.Dead, &oldest)
			b.Oldest = time.Duration(oldest) * time.Microsecond
			out = append(out, b)
			return err
		})
	})
	return out, err
}

const messageColumns = "o.seq, o.id, o.receiver, o.ordering, o.event_id, o.target, o.body, o.state, o.attempts, o.next_at, o.created_at, o.done_at, o.last_error, o.urgency"

func scanMessage(row rowScanner) (Message, error) {
	var m Message
	var state string
	var next, created, done int64
	err := row.Scan(&m.Seq, &m.ID, &m.Receiver, &m.Ordering, &m.EventID, &m.Target, &m.Body, &state, &m.Attempts,
		&next, &created, &done, &m.LastError, &m.Urgency)
	m.State, m.NextAt, m.CreatedAt, m.DoneAt = MessageState(state), fromMicros(next), fromMicros(created), fromMicros(done)
	return m, err
}

// maxLastError is how much of a receiver's answer is kept.
const maxLastError = 1024

func clip(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	if len(s) > maxLastError {
		s = s[:maxLastError]
	}
	return text(strings.TrimSpace(s))
}

// errNoReceiver is a claim for nobody.
var errNoReceiver = errors.New("claim messages: no receiver given")
