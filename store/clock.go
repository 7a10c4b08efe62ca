package store

import (
	"context"
	"time"
)

// Clock returns the time of the database's clock, which for a file is this machine's.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var us int64
	err := s.inRead(ctx, "read clock", func(ctx context.Context, q querier) error {
		return q.row(ctx, `SELECT `+s.on.now).Scan(&us)
	})
	return time.UnixMicro(us).UTC(), err
}

// ClockWentBack moves the times for which messages and groups wait in a file by the step
// that this machine's clock went back. A server has its own clock: there it does nothing.
func (s *Store) ClockWentBack(ctx context.Context, by time.Duration) error {
	if s.on != onSQLite {
		return nil
	}
	// Rows that were written since the step become due too early, which does less harm than
	// too late.
	step := by.Microseconds()
	return s.inWrite(ctx, "adjust times to clock", func(ctx context.Context, t *tx) error {
		for _, q := range []string{
			`UPDATE outbox SET next_at = MAX(next_at - ?1, ` + t.on.now + `) WHERE state = 'waiting' AND next_at > ` + t.on.now,
			`UPDATE outbox SET claimed_until = claimed_until - ?1 WHERE state = 'waiting' AND claimed_until - ` + t.on.now + ` > ?1 / 2`,
			`UPDATE alert_groups SET due_at = MAX(due_at - ?1, ` + t.on.now + `) WHERE due_at > ` + t.on.now,
			`UPDATE alert_groups SET last_at = last_at - ?1 WHERE last_at > ` + t.on.now,
		} {
			if _, err := t.exec(ctx, q, step); err != nil {
				return err
			}
		}
		t.enqueued = true
		return nil
	})
}
