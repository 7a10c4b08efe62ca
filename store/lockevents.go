package store

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/scanner"
)

// EventsPerLock is how many events of one lock are returned, and how many
// [Store.TrimLockEvents] keeps.
const EventsPerLock = 50

// LockEvent is an event of a lock. It is not part of the audit trail.
type LockEvent struct {
	DB   int
	Key  string // exact bytes
	At   time.Time
	Kind string
	// Event is JSON that the store does not interpret. It contains no token.
	Event string
}

// SaveLockEvents appends events of one target, in order, in one transaction.
func (s *Store) SaveLockEvents(ctx context.Context, target string, events []LockEvent) error {
	if len(events) == 0 {
		return nil
	}
	return s.inOwn(ctx, "save lock events", func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, target); err != nil {
			return err
		}
		var rows [][]any
		for _, e := range events {
			rows = append(rows, []any{target, e.DB, bytesOf(e.Key), micros(e.At), e.Kind, text(e.Event)})
		}
		return t.insert(ctx, "lock_events", "target, db, lock_key, at, kind, event", "", rows)
	})
}

// TrimLockEvents deletes the oldest events of some locks of a target beyond
// [EventsPerLock], in one transaction. Call it for locks that had many events.
func (s *Store) TrimLockEvents(ctx context.Context, target string, locks []scanner.HistoryKey) error {
	if len(locks) == 0 {
		return nil
	}
	const one = "target = ? AND db = ? AND lock_key = ?"
	return s.inOwn(ctx, "trim lock events", func(ctx context.Context, t *tx) error {
		for _, l := range locks {
			key := bytesOf(l.Key)
			// With fewer events the subquery is NULL, which selects nothing.
			_, err := t.exec(ctx, `DELETE FROM lock_events WHERE `+one+` AND n <= (SELECT n FROM lock_events WHERE `+one+` ORDER BY n DESC LIMIT 1 OFFSET ?)`,
				target, l.DB, key, target, l.DB, key, EventsPerLock)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// LockEvents returns the events of one lock, newest first, at most EventsPerLock.
func (s *Store) LockEvents(ctx context.Context, target string, db int, key string, limit int) ([]LockEvent, error) {
	if limit <= 0 || limit > EventsPerLock {
		limit = EventsPerLock
	}
	var out []LockEvent
	err := s.inRead(ctx, "list lock events", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx, `SELECT at, kind, event FROM lock_events WHERE target = ? AND db = ? AND lock_key = ? ORDER BY n DESC LIMIT ?`,
			target, db, bytesOf(key), limit)
		return each(rows, err, func(row rowScanner) error {
			e := LockEvent{DB: db, Key: key}
			var at int64
			err := row.Scan(&at, &e.Kind, &e.Event)
			e.At = fromMicros(at)
			out = append(out, e)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// FiredSince returns the events of findings that fired at a time or later (the servers' clock), newest first, at most limit.
func (s *Store) FiredSince(ctx context.Context, since time.Time, limit int) ([]LockEvent, error) {
	var out []LockEvent
	err := s.inRead(ctx, "list fired findings", func(ctx context.Context, q querier) error {
		// The literal kind selects the index of these events.
		rows, err := q.query(ctx, `SELECT at, event FROM lock_events WHERE kind = 'firing' AND at >= ? ORDER BY at DESC LIMIT ?`, micros(since), limit)
		return each(rows, err, func(row rowScanner) error {
			e := LockEvent{Kind: "firing"}
			var at int64
			err := row.Scan(&at, &e.Event)
			e.At = fromMicros(at)
			out = append(out, e)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PruneLockEvents deletes events from before a time (the servers' clock), and the oldest
// beyond most, beginning with those of the kind least. It returns their number.
func (s *Store) PruneLockEvents(ctx context.Context, before time.Time, most int64, least string) (int64, error) {
	total, err := s.prune(ctx, "prune lock events",
		`DELETE FROM lock_events WHERE n IN (SELECT n FROM lock_events WHERE at < ? LIMIT ?)`, micros(before))
	if err != nil {
		return total, err
	}
	for _, pick := range []string{`SELECT n FROM lock_events WHERE kind = ? ORDER BY n LIMIT ?`, `SELECT n FROM lock_events WHERE kind <> ? ORDER BY n LIMIT ?`} {
		n, err := s.pruneTo(ctx, most, pick, least)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// pruneTo deletes events that pick selects until at most most are left.
func (s *Store) pruneTo(ctx context.Context, most int64, pick, kind string) (int64, error) {
	var total int64
	for {
		var n int64
		err := s.inOwn(ctx, "prune lock events", func(ctx context.Context, t *tx) error {
			var all int64
			if err := t.row(ctx, `SELECT COUNT(*) FROM lock_events`).Scan(&all); err != nil || all <= most {
				return err
			}
			var err error
			n, err = t.exec(ctx, `DELETE FROM lock_events WHERE n IN (`+pick+`)`, kind, min(all-most, 10*pruneAtOnce))
			return err
		})
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
