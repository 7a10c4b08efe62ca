package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// claimable is that a message can be claimed now. Whether it is the first of its
// ordering is asked first: SQLite reads a body to get at the columns behind it, and
// there may be a thousand of them behind the one that is.
func claimable(now string) string {
	return `CASE WHEN ` + firstOfOrdering + ` THEN o.next_at <= ` + now + ` AND o.claimed_until <= ` + now + ` ELSE FALSE END`
}

// firstOfOrdering is that nothing of a message's ordering waits before it.
const firstOfOrdering = `(o.ordering = '' OR NOT EXISTS (SELECT 1 FROM outbox p WHERE p.receiver = o.receiver AND p.ordering = o.ordering
	AND p.state = 'waiting' AND p.seq < o.seq))`

// Claim takes up to limit messages of a receiver that are due, the most urgent and of
// these the oldest first, for ttl: nobody else gets them until then. Of messages with the same Ordering
// only the first that is not done can be claimed, so that they arrive in their
// order whoever sends them. Each claim counts as an attempt. Word about what
// became of it is [Store.Delivered], [Store.Retry] or [Store.Bury]; without word
// it is due again when ttl is over.
func (s *Store) Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]Message, error) {
	if receiver == "" || ttl <= 0 || limit <= 0 {
		return nil, errNoReceiver
	}
	claim := rand.Text()
	var out []Message
	err := s.inOwn(ctx, "claim messages", func(ctx context.Context, t *tx) error {
		out = nil
		if err := s.leased(ctx, t, SingletonDuties); err != nil {
			return err
		}
		rows, err := t.query(ctx,
			`SELECT `+messageColumns+` FROM outbox o
			 WHERE o.receiver = ? AND o.state = 'waiting' AND `+claimable(s.on.now)+` ORDER BY o.urgency DESC, o.seq LIMIT ?`+s.on.skip, receiver, limit)
		err = each(rows, err, func(row rowScanner) error {
			m, err := scanMessage(row)
			m.Attempts++
			m.claim = claim
			out = append(out, m)
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range out {
			_, err := t.exec(ctx, `UPDATE outbox SET attempts = attempts + 1, claim = ?, claimed_until = `+s.on.now+` + ? WHERE seq = ?`,
				claim, ttl.Microseconds(), m.Seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Delivered says that a claimed message arrived.
func (s *Store) Delivered(ctx context.Context, m Message) error {
	return s.done(ctx, m, MessageDelivered, nil)
}

// Bury gives a claimed message up; those behind it go on.
func (s *Store) Bury(ctx context.Context, m Message, why error) error {
	return s.done(ctx, m, MessageDead, why)
}

func (s *Store) done(ctx context.Context, m Message, state MessageState, why error) error {
	return s.claimed(ctx, m, `state = ?, claim = '', claimed_until = 0, done_at = `+s.on.now+`, last_error = ?`, string(state), clip(why))
}

// Retry has a claimed message sent again, after a time; those of its Ordering
// behind it wait.
func (s *Store) Retry(ctx context.Context, m Message, why error, after time.Duration) error {
	return s.claimed(ctx, m, `claim = '', claimed_until = 0, next_at = `+s.on.now+` + ?, last_error = ?`, after.Microseconds(), clip(why))
}

// claimed changes a message if the claim under which it was sent is the last one.
// It may have expired: as long as nobody else took the message, word about it is
// true.
func (s *Store) claimed(ctx context.Context, m Message, set string, args ...any) error {
	return s.inOwn(ctx, "update message", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE outbox SET `+set+` WHERE seq = ? AND claim = ? AND claim <> '' AND state = 'waiting'`,
			append(args, m.Seq, m.claim)...)
		if err == nil && n == 0 {
			err = fmt.Errorf("message %s: %w: another process is sending it, or did", m.ID, ErrClaimLost)
		}
		return err
	})
}

// Hurry makes what waits for a receiver due at once: it works again, or is another.
// What is being sent at this moment is left alone.
func (s *Store) Hurry(ctx context.Context, receiver string) error {
	return s.inOwn(ctx, "hurry messages", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE outbox SET next_at = `+s.on.now+`
			WHERE receiver = ? AND state = 'waiting' AND claimed_until <= `+s.on.now+` AND next_at > `+s.on.now, receiver)
		return err
	})
}

// BuryAll gives up all that waits for a receiver for at least age, and returns how
// many messages that were: age is 0 for one that is configured no longer. What is
// being sent at this moment is left alone.
func (s *Store) BuryAll(ctx context.Context, receiver string, age time.Duration, why error) (int64, error) {
	var n int64
	err := s.inOwn(ctx, "give up messages", func(ctx context.Context, t *tx) error {
		var err error
		n, err = t.exec(ctx, `UPDATE outbox SET state = 'dead', claim = '', claimed_until = 0, done_at = `+s.on.now+`, last_error = ?
			WHERE receiver = ? AND state = 'waiting' AND claimed_until <= `+s.on.now+` AND created_at <= `+s.on.now+` - ?`,
			clip(why), receiver, age.Microseconds())
		return err
	})
	return n, err
}

// NextDue returns how long it is until a message of the receiver may be claimed,
// 0 for now; false if none waits.
func (s *Store) NextDue(ctx context.Context, receiver string) (time.Duration, bool, error) {
	var wait sql.NullInt64
	err := s.inRead(ctx, "look for messages", func(ctx context.Context, q querier) error {
		// One that is due now is found at once, however many wait; only where there is
		// none all are looked at.
		err := q.row(ctx, `SELECT 0 FROM outbox o WHERE o.receiver = ? AND o.state = 'waiting' AND `+claimable(s.on.now)+` ORDER BY o.urgency DESC, o.seq LIMIT 1`, receiver).Scan(&wait)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = q.row(ctx,
			`SELECT MIN(CASE WHEN o.claimed_until > o.next_at THEN o.claimed_until ELSE o.next_at END) - `+s.on.now+` FROM outbox o
			 WHERE o.receiver = ? AND o.state = 'waiting' AND `+firstOfOrdering, receiver).Scan(&wait)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return max(0, time.Duration(wait.Int64)*time.Microsecond), wait.Valid, err
}
