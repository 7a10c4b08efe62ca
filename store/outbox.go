package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// enqueue writes notifications inside the transaction of the change that they report. The
// caller is the only writer of its kind, so that their numbers are in the order of
// commits.
func enqueue(ctx context.Context, t *tx, notifications []locksteward.Notification) error {
	if len(notifications) == 0 {
		return nil
	}
	fresh, err := unknown(ctx, t, notifications)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var seq, now int64
	if err := t.row(ctx, `SELECT seq, `+t.on.now+` FROM outbox_head WHERE id = 1`).Scan(&seq, &now); err != nil {
		return fmt.Errorf("read head of outbox: %w", err)
	}
	var rows [][]any
	urgencies := map[[2]string]int{} // by receiver and ordering
	for _, n := range slices.Backward(fresh) {
		urgency := n.Urgency
		if at := [2]string{n.Receiver, text(n.Ordering)}; at[1] != "" {
			urgency = max(urgency, urgencies[at])
			urgencies[at] = urgency
		}
		rows = append(rows, []any{
			seq + int64(len(fresh)-len(rows)), n.ID, n.Receiver, text(n.Ordering), n.EventID, text(n.Target), bytesOf(string(n.Body)),
			string(locksteward.NotificationWaiting), 0, now + n.Delay.Microseconds(), "", 0, now, 0, "", urgency,
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
	t.outboxChanged = true
	_, err = t.exec(ctx, `UPDATE outbox_head SET seq = ? WHERE id = 1`, seq+int64(len(fresh)))
	return err
}

// raise makes what waits in orderings as urgent as what will wait behind it.
func raise(ctx context.Context, t *tx, urgencies map[[2]string]int) error {
	for at, urgency := range urgencies {
		if urgency <= 0 {
			continue
		}
		_, err := t.exec(ctx, `UPDATE outbox SET urgency = ? WHERE receiver = ? AND ordering = ? AND state = 'waiting' AND urgency < ?`,
			urgency, at[0], at[1], urgency)
		if err != nil {
			return fmt.Errorf("raise urgency of notifications: %w", err)
		}
	}
	return nil
}

// OnOutboxChange sets the function that is called after each transaction that made
// notifications or groups due. It is called with no lock held, and must be quick.
// OnOutboxChange is called once, before there are changes.
func (s *Store) OnOutboxChange(fn func()) { s.onOutboxChange.Store(&fn) }

// unknown returns the notifications that the outbox does not have, each once.
func unknown(ctx context.Context, t *tx, notifications []locksteward.Notification) ([]locksteward.Notification, error) {
	known := map[string]bool{}
	for part := range slices.Chunk(notifications, 100) {
		var ids []any
		for _, n := range part {
			if n.ID == "" || n.Receiver == "" {
				return nil, fmt.Errorf("enqueue notification of event %q: id %q and receiver %q must not be empty", n.EventID, n.ID, n.Receiver)
			}
			ids = append(ids, n.ID)
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
	var out []locksteward.Notification
	for _, n := range notifications {
		if !known[n.ID] {
			known[n.ID] = true
			out = append(out, n)
		}
	}
	return out, nil
}

// NotificationQuery selects notifications; zero fields select all.
type NotificationQuery struct {
	ID       string
	State    locksteward.NotificationState
	Receiver string
	Ordering string
	EventID  string
	Before   int64 // only notifications with a smaller Seq, for the next page
	Limit    int   // 0: 100
}

// Notifications returns notifications, newest first.
func (s *Store) Notifications(ctx context.Context, q NotificationQuery) ([]locksteward.Notification, error) {
	f := q.filter()
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var out []locksteward.Notification
	err := s.inRead(ctx, "list notifications", func(ctx context.Context, r querier) error {
		rows, err := r.query(ctx, `SELECT `+notificationColumns+` FROM outbox o`+f.where()+` ORDER BY seq DESC LIMIT ?`, append(f.args, limit)...)
		return each(rows, err, func(row rowScanner) error {
			n, err := scanNotification(row)
			out = append(out, n)
			return err
		})
	})
	return out, err
}

// LastFailure returns the last error of the oldest notification that waits for a receiver
// and failed; "" if none did. The others may wait behind it.
func (s *Store) LastFailure(ctx context.Context, receiver string) (string, error) {
	var why string
	err := s.inRead(ctx, "read last failure", func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT last_error FROM outbox WHERE receiver = ? AND state = 'waiting' AND last_error <> '' ORDER BY seq LIMIT 1`, receiver).Scan(&why)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return why, err
}

func (q NotificationQuery) filter() filter {
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

// RetryDead makes dead letters due as if they were new: those that q selects, whose state
// and limit are ignored. It returns their number, and writes the entries with them.
func (s *Store) RetryDead(ctx context.Context, q NotificationQuery, entries ...locksteward.Entry) (int64, error) {
	q.State = locksteward.NotificationDead
	f := q.filter()
	var n int64
	err := s.inWrite(ctx, "retry dead letters", func(ctx context.Context, t *tx) error {
		var err error
		n, err = t.exec(ctx, `UPDATE outbox SET state = 'waiting', attempts = 0, next_at = `+s.on.now+`, created_at = `+s.on.now+`, done_at = 0`+f.where(), f.args...)
		if err != nil || n == 0 {
			return err
		}
		t.outboxChanged = true
		return s.written(ctx, t, Written{Entries: entries})
	})
	return n, err
}

// Backlogs returns what waits and what was given up, in the order of receivers.
func (s *Store) Backlogs(ctx context.Context) ([]locksteward.Backlog, error) {
	var out []locksteward.Backlog
	err := s.inRead(ctx, "read backlogs", func(ctx context.Context, q querier) error {
		of := map[string]*locksteward.Backlog{}
		add := func(receiver string) *locksteward.Backlog {
			if of[receiver] == nil {
				of[receiver] = &locksteward.Backlog{Receiver: receiver}
			}
			return of[receiver]
		}
		rows, err := q.query(ctx,
			`SELECT receiver, SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END), SUM(CASE WHEN state = 'dead' THEN 1 ELSE 0 END),
			     COALESCE(`+s.on.now+` - MIN(CASE WHEN state = 'waiting' THEN created_at END), 0)
			 FROM outbox WHERE state IN ('waiting', 'dead') GROUP BY receiver`)
		err = each(rows, err, func(row rowScanner) error {
			var receiver string
			var waiting, dead, oldest int64
			err := row.Scan(&receiver, &waiting, &dead, &oldest)
			b := add(receiver)
			b.Waiting, b.Dead, b.Oldest = waiting, dead, time.Duration(oldest)*time.Microsecond
			return err
		})
		if err == nil {
			err = s.readPending(ctx, q, add)
		}
		out = nil
		for _, receiver := range slices.Sorted(maps.Keys(of)) {
			out = append(out, *of[receiver])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const notificationColumns = "o.seq, o.id, o.receiver, o.ordering, o.event_id, o.target, o.body, o.state, o.attempts, o.next_at, o.created_at, o.done_at, o.last_error, o.urgency"

func scanNotification(row rowScanner) (locksteward.Notification, error) {
	var n locksteward.Notification
	var state string
	var next, created, done int64
	err := row.Scan(&n.Seq, &n.ID, &n.Receiver, &n.Ordering, &n.EventID, &n.Target, &n.Body, &state, &n.Attempts,
		&next, &created, &done, &n.LastError, &n.Urgency)
	n.State, n.NextAt, n.CreatedAt, n.DoneAt = locksteward.NotificationState(state), fromMicros(next), fromMicros(created), fromMicros(done)
	return n, err
}

// maxLastError bounds what is stored of a receiver's answer, in bytes.
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

// errNoReceiver is a claim without a receiver.
var errNoReceiver = errors.New("claim notifications: no receiver given")
