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

// terms are how soon a group that something new waits in may be told of it, and how
// urgent the most urgent of that is.
type terms struct {
	some           bool
	wait, interval time.Duration
	urgency        int
}

// with are the terms of two addresses in one group, which are the same unless the
// configuration changed: the quicker ones.
func (t terms) with(a Address) terms {
	if !t.some {
		return terms{true, a.Wait, a.Interval, a.Urgency}
	}
	return terms{true, min(t.wait, a.Wait), min(t.interval, a.Interval), max(t.urgency, a.Urgency)}
}

// due is when a group is to be looked at, for which something new was written now:
// due and last are as they were. What waits for others, or for the next repeat,
// never waits longer for that.
func (t terms) due(now, due, last int64) int64 {
	soon := now + t.wait.Microseconds()
	if last > 0 {
		soon = max(soon, last+t.interval.Microseconds())
	}
	if due > 0 {
		soon = min(soon, due)
	}
	return soon
}

// dueGroups sets when the groups are to be looked at that something new waits in.
func (in *intake) dueGroups(ctx context.Context) error {
	type stand struct{ due, last, urgency int64 }
	keys := slices.Collect(maps.Keys(in.groups))
	for part := range slices.Chunk(keys, eventsAtOnce) {
		was := map[groupKey]stand{}
		byReceiver := map[string][]any{}
		for _, k := range part {
			byReceiver[k.receiver] = append(byReceiver[k.receiver], k.group)
		}
		for receiver, groups := range byReceiver {
			rows, err := in.t.query(ctx, `SELECT grp, due_at, last_at, urgency FROM alert_groups WHERE receiver = ? AND grp IN (`+marks(len(groups))+`)`,
				append([]any{receiver}, groups...)...)
			err = each(rows, err, func(row rowScanner) error {
				var group string
				var s stand
				err := row.Scan(&group, &s.due, &s.last, &s.urgency)
				was[groupKey{receiver, group}] = s
				return err
			})
			if err != nil {
				return err
			}
		}
		var rows [][]any
		for _, k := range part {
			s, with := was[k], in.groups[k]
			rows = append(rows, []any{k.receiver, k.group, with.due(in.now, s.due, s.last), s.last, max(s.urgency, int64(with.urgency))})
		}
		err := in.t.insert(ctx, "alert_groups", "receiver, grp, due_at, last_at, urgency",
			"ON CONFLICT (receiver, grp) DO UPDATE SET due_at = excluded.due_at, urgency = excluded.urgency", rows)
		if err != nil {
			return fmt.Errorf("write when groups are due: %w", err)
		}
	}
	return nil
}

// NextGroup returns how long it is until a group of the receiver is due, 0 for
// now; false if none will be before something new is written. Not asked for are groups
// that are no more urgent than a message of the ordering behind that waits; "": there
// is none such.
func (s *Store) NextGroup(ctx context.Context, receiver, behind string) (time.Duration, bool, error) {
	var wait sql.NullInt64
	err := s.inRead(ctx, "look for groups", func(ctx context.Context, q querier) error {
		above, err := aboveWaiting(ctx, q, receiver, behind)
		if err != nil {
			return err
		}
		return q.row(ctx, `SELECT MIN(due_at) - `+s.on.now+` FROM alert_groups WHERE receiver = ? AND due_at > 0 AND urgency > ?`, receiver, above).Scan(&wait)
	})
	return max(0, time.Duration(wait.Int64)*time.Microsecond), wait.Valid, err
}

// aboveWaiting returns the urgency that a group must exceed to come before what waits
// for the receiver with an ordering; less than any if nothing does, or for "".
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

// dueGroup is a group that is due, and when its last message was written.
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
		// One urgency after the other, so that no group is looked at that is not due.
		var urgency sql.NullInt64
		err := q.row(ctx, `SELECT MAX(urgency) FROM alert_groups WHERE receiver = ? AND due_at > 0 AND urgency > ? AND urgency < ?`,
			receiver, above, below).Scan(&urgency)
		if err != nil || !urgency.Valid {
			return out, err
		}
		below = urgency.Int64
		rows, err := q.query(ctx, `SELECT grp, last_at FROM alert_groups WHERE receiver = ? AND due_at > 0 AND urgency = ? AND due_at <= ? ORDER BY due_at, grp LIMIT ?`,
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

// HurryGroup makes a group of all receivers due within so long, where something waits in it for longer.
func (s *Store) HurryGroup(ctx context.Context, group string, within time.Duration) error {
	return s.inWrite(ctx, "hurry group", func(ctx context.Context, t *tx) error {
		due := t.on.now + ` + ?`
		n, err := t.exec(ctx, `UPDATE alert_groups SET due_at = `+due+` WHERE grp = ? AND due_at > `+due,
			within.Microseconds(), text(group), within.Microseconds())
		if err != nil {
			return fmt.Errorf("hurry group: %w", err)
		}
		t.enqueued = t.enqueued || n > 0
		return nil
	})
}

// WakeHeld makes all groups due that hold something back: silences, or what
// explains findings, changed.
func (s *Store) WakeHeld(ctx context.Context) error {
	return s.inWrite(ctx, "wake groups", wakeHeld)
}

func wakeHeld(ctx context.Context, t *tx) error {
	_, err := t.exec(ctx, `UPDATE alert_groups SET due_at = `+t.on.now+`
		WHERE (receiver, grp) IN (SELECT receiver, grp FROM alert_pending WHERE held <> '') AND (due_at = 0 OR due_at > `+t.on.now+`)`)
	if err != nil {
		return fmt.Errorf("wake groups: %w", err)
	}
	// It is judged anew, part by part, and held back again if that is so. What was held
	// back until its end stays so: the end takes it along.
	n, err := t.exec(ctx, `UPDATE alert_pending SET held = '' WHERE held <> '' AND NOT EXISTS (
		SELECT 1 FROM alert_events mine
		JOIN alert_events later ON later.fingerprint = mine.fingerprint AND later.seq > mine.seq AND later.status = ?
		JOIN alert_pending waits ON waits.seq = later.seq AND waits.receiver = alert_pending.receiver AND waits.grp = alert_pending.grp
		WHERE mine.seq = alert_pending.seq)`, string(locksteward.StatusResolved))
	if err != nil {
		return fmt.Errorf("wake groups: %w", err)
	}
	if n > 0 {
		t.enqueued = true
	}
	return nil
}
