package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// groupTerms are how soon a group with new events becomes due, and the urgency of the
// most urgent of them.
type groupTerms struct {
	some           bool
	wait, interval time.Duration
	urgency        int
}

// with combines the terms of two recipients in one group, which are the same unless the
// configuration changed: the shorter times.
func (t groupTerms) with(r locksteward.Recipient) groupTerms {
	if !t.some {
		return groupTerms{true, r.Wait, r.Interval, r.Urgency}
	}
	return groupTerms{true, min(t.wait, r.Wait), min(t.interval, r.Interval), max(t.urgency, r.Urgency)}
}

// due is when a group with an event that is written now becomes due: due and last are
// its current columns. It never becomes due later than before.
func (t groupTerms) due(now, due, last int64) int64 {
	soon := now + t.wait.Microseconds()
	if last > 0 {
		soon = max(soon, last+t.interval.Microseconds())
	}
	if due > 0 {
		soon = min(soon, due)
	}
	return soon
}

// scheduleGroups sets when the groups with new events become due.
func (in *eventWriter) scheduleGroups(ctx context.Context) error {
	type schedule struct{ due, last, urgency int64 }
	keys := slices.Collect(maps.Keys(in.groups))
	for part := range slices.Chunk(keys, eventsAtOnce) {
		before := map[groupKey]schedule{}
		byReceiver := map[string][]any{}
		for _, k := range part {
			byReceiver[k.receiver] = append(byReceiver[k.receiver], k.group)
		}
		for receiver, groups := range byReceiver {
			rows, err := in.t.query(ctx, `SELECT group_key, due_at, last_at, urgency FROM alert_groups WHERE receiver = ? AND group_key IN (`+marks(len(groups))+`)`,
				append([]any{receiver}, groups...)...)
			err = each(rows, err, func(row rowScanner) error {
				var group string
				var s schedule
				err := row.Scan(&group, &s.due, &s.last, &s.urgency)
				before[groupKey{receiver, group}] = s
				return err
			})
			if err != nil {
				return err
			}
		}
		var rows [][]any
		for _, k := range part {
			s, terms := before[k], in.groups[k]
			rows = append(rows, []any{k.receiver, k.group, terms.due(in.now, s.due, s.last), s.last, max(s.urgency, int64(terms.urgency))})
		}
		err := in.t.insert(ctx, "alert_groups", "receiver, group_key, due_at, last_at, urgency",
			"ON CONFLICT (receiver, group_key) DO UPDATE SET due_at = excluded.due_at, urgency = excluded.urgency", rows)
		if err != nil {
			return fmt.Errorf("write when groups are due: %w", err)
		}
	}
	return nil
}

// NextGroup returns the time until a group of the receiver is due, 0 for now; false if
// none will be before an event is written. Groups that are no more urgent than a waiting
// notification with the ordering behind do not count; "": all count.
func (s *Store) NextGroup(ctx context.Context, receiver, behind string) (time.Duration, bool, error) {
	var wait sql.NullInt64
	err := s.inRead(ctx, "read next group", func(ctx context.Context, q querier) error {
		above, err := aboveWaiting(ctx, q, receiver, behind)
		if err != nil {
			return err
		}
		return q.row(ctx, `SELECT MIN(due_at) - `+s.on.now+` FROM alert_groups WHERE receiver = ? AND due_at > 0 AND urgency > ?`, receiver, above).Scan(&wait)
	})
	return max(0, time.Duration(wait.Int64)*time.Microsecond), wait.Valid, err
}

// aboveWaiting returns the urgency that a group must exceed to come before notifications
// that wait for the receiver with an ordering; less than any if none does, or for "".
func aboveWaiting(ctx context.Context, q querier, receiver, behind string) (int64, error) {
	if behind == "" {
		return math.MinInt64, nil
	}
	var most sql.NullInt64
	err := q.row(ctx, `SELECT MAX(urgency) FROM outbox WHERE receiver = ? AND ordering = ? AND state = 'waiting'`, receiver, behind).Scan(&most)
	if !most.Valid {
		return math.MinInt64, err
	}
	return most.Int64, err
}

// dueGroup is a group that is due, and when its last notification was written.
type dueGroup struct {
	group string
	last  int64
}

// dueNow returns groups of a receiver that are due and more urgent than above, the most
// urgent and of these those due longest first.
func dueNow(ctx context.Context, q querier, receiver string, now, above int64, limit int) ([]dueGroup, error) {
	var out []dueGroup
	below := int64(math.MaxInt64)
	for len(out) < limit {
		// One urgency after the other, so that only groups that are due are read.
		var urgency sql.NullInt64
		err := q.row(ctx, `SELECT MAX(urgency) FROM alert_groups WHERE receiver = ? AND due_at > 0 AND urgency > ? AND urgency < ?`,
			receiver, above, below).Scan(&urgency)
		if err != nil || !urgency.Valid {
			return out, err
		}
		below = urgency.Int64
		rows, err := q.query(ctx, `SELECT group_key, last_at FROM alert_groups WHERE receiver = ? AND due_at > 0 AND urgency = ? AND due_at <= ? ORDER BY due_at, group_key LIMIT ?`,
			receiver, below, now, limit-len(out))
		err = each(rows, err, func(row rowScanner) error {
			var g dueGroup
			err := row.Scan(&g.group, &g.last)
			out = append(out, g)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// WakeGroup makes a group of all receivers due within a time, if it is due later.
func (s *Store) WakeGroup(ctx context.Context, group string, within time.Duration) error {
	return s.inWrite(ctx, "wake group", func(ctx context.Context, t *tx) error {
		due := t.on.now + ` + ?`
		n, err := t.exec(ctx, `UPDATE alert_groups SET due_at = `+due+` WHERE group_key = ? AND due_at > `+due,
			within.Microseconds(), text(group), within.Microseconds())
		if err != nil {
			return fmt.Errorf("wake group: %w", err)
		}
		t.outboxChanged = t.outboxChanged || n > 0
		return nil
	})
}

// WakeHeld makes all groups due in which events are held back: silences or inhibitions
// changed.
func (s *Store) WakeHeld(ctx context.Context) error {
	return s.inWrite(ctx, "wake groups", wakeHeld)
}

func wakeHeld(ctx context.Context, t *tx) error {
	_, err := t.exec(ctx, `UPDATE alert_groups SET due_at = `+t.on.now+`
		WHERE (receiver, group_key) IN (SELECT receiver, group_key FROM alert_pending WHERE held <> '') AND (due_at = 0 OR due_at > `+t.on.now+`)`)
	if err != nil {
		return fmt.Errorf("wake groups: %w", err)
	}
	// Each event is decided on again, part by part. What was held back until the end of
	// its finding stays so: it is dropped with the end.
	n, err := t.exec(ctx, `UPDATE alert_pending SET held = '' WHERE held <> '' AND NOT EXISTS (
		SELECT 1 FROM alert_events mine
		JOIN alert_events later ON later.fingerprint = mine.fingerprint AND later.seq > mine.seq AND later.status = ?
		JOIN alert_pending waits ON waits.seq = later.seq AND waits.receiver = alert_pending.receiver AND waits.group_key = alert_pending.group_key
		WHERE mine.seq = alert_pending.seq)`, string(locksteward.StatusResolved))
	if err != nil {
		return fmt.Errorf("wake groups: %w", err)
	}
	if n > 0 {
		t.outboxChanged = true
	}
	return nil
}
