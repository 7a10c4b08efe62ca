package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// claimable is the condition that a notification can be claimed now. Whether it is the
// first of its ordering is checked first: SQLite reads a body to get at the columns
// behind it, and there may be a thousand of them behind the one that is.
func claimable(now string) string {
	return `CASE WHEN ` + firstOfOrdering + ` THEN o.next_at <= ` + now + ` AND o.claimed_until <= ` + now + ` ELSE FALSE END`
}

// firstOfOrdering is the condition that nothing of the same ordering waits before it.
const firstOfOrdering = `(o.ordering = '' OR NOT EXISTS (SELECT 1 FROM outbox p WHERE p.receiver = o.receiver AND p.ordering = o.ordering
	AND p.state = 'waiting' AND p.seq < o.seq))`

// Claim takes up to limit due notifications of a receiver, the most urgent and of these
// the oldest first, for ttl: nobody else gets them until then. Of those with the same
// Ordering only the first that is not done can be claimed, so that they arrive in their
// order, whichever replica sends them. Each claim counts as an attempt. Its outcome is recorded with
// [Store.Delivered], [Store.Retry] or [Store.DeadLetter]; without an outcome the
// notification is due again after ttl.
func (s *Store) Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]locksteward.Notification, error) {
	if receiver == "" || ttl <= 0 || limit <= 0 {
		return nil, errNoReceiver
	}
	claim := rand.Text()
	var out []locksteward.Notification
	err := s.inOwn(ctx, "claim notifications", func(ctx context.Context, t *tx) error {
		out = nil
		if err := s.leased(ctx, t, SingletonDuties); err != nil {
			return err
		}
		rows, err := t.query(ctx,
			`SELECT `+notificationColumns+` FROM outbox o
			 WHERE o.receiver = ? AND o.state = 'waiting' AND `+claimable(s.on.now)+` ORDER BY o.urgency DESC, o.seq LIMIT ?`+s.on.skip, receiver, limit)
		err = each(rows, err, func(row rowScanner) error {
			n, err := scanNotification(row)
			n.Attempts++
			n.Claim = claim
			out = append(out, n)
			return err
		})
		if err != nil {
			return err
		}
		for _, n := range out {
			_, err := t.exec(ctx, `UPDATE outbox SET attempts = attempts + 1, claim = ?, claimed_until = `+s.on.now+` + ? WHERE seq = ?`,
				claim, ttl.Microseconds(), n.Seq)
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

// Delivered records that a claimed notification arrived.
func (s *Store) Delivered(ctx context.Context, n locksteward.Notification) error {
	return s.done(ctx, n, locksteward.NotificationDelivered, nil)
}

// DeadLetter gives a claimed notification up; those behind it can be claimed.
func (s *Store) DeadLetter(ctx context.Context, n locksteward.Notification, why error) error {
	return s.done(ctx, n, locksteward.NotificationDead, why)
}

func (s *Store) done(ctx context.Context, n locksteward.Notification, state locksteward.NotificationState, why error) error {
	return s.updateClaimed(ctx, n, `state = ?, claim = '', claimed_until = 0, done_at = `+s.on.now+`, last_error = ?`, string(state), clip(why))
}

// Retry makes a claimed notification due again after a time; those behind it in its
// Ordering wait.
func (s *Store) Retry(ctx context.Context, n locksteward.Notification, why error, after time.Duration) error {
	return s.updateClaimed(ctx, n, `claim = '', claimed_until = 0, next_at = `+s.on.now+` + ?, last_error = ?`, after.Microseconds(), clip(why))
}

// updateClaimed changes a notification if the claim under which it was sent is the last
// one. The claim may have expired: as long as nobody else claimed the notification, the
// outcome is true.
func (s *Store) updateClaimed(ctx context.Context, n locksteward.Notification, set string, args ...any) error {
	return s.inOwn(ctx, "update notification", func(ctx context.Context, t *tx) error {
		changed, err := t.exec(ctx, `UPDATE outbox SET `+set+` WHERE seq = ? AND claim = ? AND claim <> '' AND state = 'waiting'`,
			append(args, n.Seq, n.Claim)...)
		if err == nil && changed == 0 {
			err = fmt.Errorf("notification %s: %w, or had it", n.ID, locksteward.ErrClaimLost)
		}
		return err
	})
}

// RetryNow makes what waits for a receiver due at once: it works again or was replaced.
// Notifications that are being sent are not changed.
func (s *Store) RetryNow(ctx context.Context, receiver string) error {
	return s.inOwn(ctx, "make notifications due", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE outbox SET next_at = `+s.on.now+`
			WHERE receiver = ? AND state = 'waiting' AND claimed_until <= `+s.on.now+` AND next_at > `+s.on.now, receiver)
		return err
	})
}

// DeadLetterAll gives up what has waited for a receiver for at least age, and returns the
// number of notifications: age is 0 for a removed receiver. Notifications that are being
// sent are not changed.
func (s *Store) DeadLetterAll(ctx context.Context, receiver string, age time.Duration, why error) (int64, error) {
	var n int64
	err := s.inOwn(ctx, "give up notifications", func(ctx context.Context, t *tx) error {
		var err error
		n, err = t.exec(ctx, `UPDATE outbox SET state = 'dead', claim = '', claimed_until = 0, done_at = `+s.on.now+`, last_error = ?
			WHERE receiver = ? AND state = 'waiting' AND claimed_until <= `+s.on.now+` AND created_at <= `+s.on.now+` - ?`,
			clip(why), receiver, age.Microseconds())
		return err
	})
	return n, err
}

// NextDue returns the time until a notification of the receiver can be claimed, 0 for now;
// false if none waits.
func (s *Store) NextDue(ctx context.Context, receiver string) (time.Duration, bool, error) {
	var wait sql.NullInt64
	err := s.inRead(ctx, "read next notification", func(ctx context.Context, q querier) error {
		// One that is due now is found at once, however many wait; only where there is none
		// all are read.
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
