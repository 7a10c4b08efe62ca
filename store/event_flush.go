package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/locksteward/locksteward"
)

// Flush calls compose with the due groups of a receiver (at most groups of them, the most
// urgent and of these those due longest first, with at most events in all; behind is
// that of [Store.NextGroup]) and writes, in one transaction, the notifications and what
// becomes of each group. It returns the number of groups; a group that compose returns
// nothing for stays due. compose runs inside the transaction, beside which there is no
// other writer: it must be quick and must not use the store.
func (s *Store) Flush(ctx context.Context, receiver, behind string, groups, events int, compose func([]locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification)) (int, error) {
	if receiver == "" || groups <= 0 || events <= 0 {
		return 0, fmt.Errorf("flush groups: got receiver %q, %d groups, %d events; none of them may be empty", receiver, groups, events)
	}
	n := 0
	err := s.inWrite(ctx, "flush groups", func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, SingletonDuties); err != nil {
			return err
		}
		f := &flush{t: t, receiver: receiver, behind: behind, deliveredBy: map[int64]int64{}, texts: interner{}}
		due, err := f.read(ctx, groups, events)
		if err != nil || len(due) == 0 {
			return err
		}
		n = len(due)
		out, notifications := compose(due)
		for _, one := range out {
			i := slices.IndexFunc(due, func(d locksteward.DueGroup) bool { return d.Group == one.Group })
			if i < 0 {
				return fmt.Errorf("flush groups: %q is not one of the groups that are due", one.Group)
			}
			if err := f.write(ctx, due[i], one); err != nil {
				return err
			}
		}
		if err := f.finish(ctx); err != nil {
			return err
		}
		return enqueue(ctx, t, notifications)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// flush is one flush of a receiver's groups.
type flush struct {
	t        *tx
	receiver string
	behind   string
	now      int64
	done     []any // seqs that this receiver needs no longer
	// deliveredBy is, by the seq of a pending event, the event by which the receiver knows
	// its finding to fire.
	deliveredBy map[int64]int64
	texts       interner
}

// read returns the groups that are due, with their events.
func (f *flush) read(ctx context.Context, groups, events int) ([]locksteward.DueGroup, error) {
	var out []locksteward.DueGroup
	if err := f.t.row(ctx, `SELECT `+f.t.on.now).Scan(&f.now); err != nil {
		return nil, err
	}
	above, err := aboveWaiting(ctx, f.t, f.receiver, f.behind)
	if err != nil {
		return nil, err
	}
	due, err := dueNow(ctx, f.t, f.receiver, f.now, above, groups)
	if err != nil {
		return nil, err
	}
	for _, g := range due {
		out = append(out, locksteward.DueGroup{Group: g.group, Now: fromMicros(f.now), LastAt: fromMicros(g.last)})
	}
	for i := range out {
		if err := f.fill(ctx, &out[i], events); err != nil {
			return nil, err
		}
		if events -= len(out[i].Waiting) + len(out[i].FiringEvents); events <= 0 {
			return out[:i+1], nil
		}
	}
	return out, nil
}

// fill reads the events of a group and what the receiver knows. Events that are held back
// stay out of it, unless a new one is of the same finding: silences can hold any number
// of events.
func (f *flush) fill(ctx context.Context, g *locksteward.DueGroup, events int) error {
	err := f.waiting(ctx, g, ` AND p.held = '' ORDER BY p.seq LIMIT ?`, events+1)
	if err != nil {
		return err
	}
	if len(g.Waiting) > events {
		g.Waiting, g.More = g.Waiting[:events], true
	}
	var prints []any
	for _, w := range g.Waiting {
		prints = append(prints, w.Finding.Fingerprint())
	}
	for part := range slices.Chunk(prints, eventsAtOnce) {
		if err := f.waiting(ctx, g, ` AND p.held <> '' AND e.fingerprint IN (`+marks(len(part))+`)`, part...); err != nil {
			return err
		}
	}
	slices.SortFunc(g.Waiting, func(a, b locksteward.PendingEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	// The same finding can be in several parts.
	g.Waiting = slices.CompactFunc(g.Waiting, func(a, b locksteward.PendingEvent) bool { return a.Seq == b.Seq })
	err = f.t.row(ctx, `SELECT COUNT(*) FROM alert_delivery_state WHERE receiver = ? AND group_key = ?`, f.receiver, g.Group).Scan(&g.Firing)
	if err != nil || len(g.Waiting) > 0 || g.Firing == 0 {
		return err
	}
	rows, err := f.t.query(ctx,
		`SELECT `+eventRead+` FROM alert_delivery_state t JOIN alert_events e ON e.seq = t.seq WHERE t.receiver = ? AND t.group_key = ? ORDER BY t.seq LIMIT ?`,
		f.receiver, g.Group, events)
	return each(rows, err, func(row rowScanner) error {
		e, err := scanEvent(row)
		f.texts.share(&e.Finding)
		g.FiringEvents = append(g.FiringEvents, e)
		return err
	})
}

// waiting adds pending events of a group.
func (f *flush) waiting(ctx context.Context, g *locksteward.DueGroup, which string, args ...any) error {
	rows, err := f.t.query(ctx,
		`SELECT `+eventRead+`, p.held, COALESCE(t.seq, 0) FROM alert_pending p
		 JOIN alert_events e ON e.seq = p.seq
		 LEFT JOIN alert_delivery_state t ON t.receiver = p.receiver AND t.fingerprint = e.fingerprint
		 WHERE p.receiver = ? AND p.group_key = ?`+which, append([]any{f.receiver, g.Group}, args...)...)
	return each(rows, err, func(row rowScanner) error {
		var w locksteward.PendingEvent
		var by int64
		var err error
		w.FindingEvent, err = scanEvent(row, &w.Held, &by)
		f.texts.share(&w.Finding)
		if w.Known = by > 0; w.Known {
			f.deliveredBy[w.Seq] = by
		}
		g.Waiting = append(g.Waiting, w)
		return err
	})
}

// write writes what becomes of one group.
func (f *flush) write(ctx context.Context, g locksteward.DueGroup, out locksteward.FlushedGroup) error {
	waiting := map[int64]locksteward.PendingEvent{}
	for _, w := range g.Waiting {
		waiting[w.Seq] = w
	}
	var notified []locksteward.PendingEvent
	var gone []any
	take := func(seq int64) (locksteward.PendingEvent, error) {
		w, ok := waiting[seq]
		if !ok {
			return w, fmt.Errorf("flush group %q: event %d does not wait in it, or is named twice", g.Group, seq)
		}
		delete(waiting, seq)
		return w, nil
	}
	for _, seq := range out.Notified {
		w, err := take(seq)
		if err != nil {
			return err
		}
		notified, gone = append(notified, w), append(gone, seq)
	}
	for _, seq := range out.Dropped {
		if _, err := take(seq); err != nil {
			return err
		}
		gone = append(gone, seq)
	}
	byReason := map[string][]any{}
	for seq, why := range out.Held {
		w, err := take(seq)
		if err != nil {
			return err
		}
		if why == "" {
			return fmt.Errorf("flush group %q: event %d is held back without a reason", g.Group, seq)
		}
		if w.Held != text(why) {
			byReason[text(why)] = append(byReason[text(why)], seq)
		}
	}
	for why, seqs := range byReason {
		err := f.each(ctx, seqs, `UPDATE alert_pending SET held = ? WHERE receiver = ? AND group_key = ? AND seq IN (%s)`, why, f.receiver, g.Group)
		if err != nil {
			return err
		}
	}
	if err := f.each(ctx, gone, `DELETE FROM alert_pending WHERE receiver = ? AND group_key = ? AND seq IN (%s)`, f.receiver, g.Group); err != nil {
		return err
	}
	f.done = append(f.done, gone...)
	if err := f.saveDeliveryState(ctx, g.Group, notified); err != nil {
		return err
	}
	due, last := int64(0), micros(g.LastAt)
	if out.Next >= 0 {
		due = f.now + out.Next.Microseconds()
	}
	if g.More || len(waiting) > 0 {
		due = f.now
	}
	if out.Sent {
		last = f.now
	}
	if g.More || len(waiting) > 0 { // its urgency stays
		_, err := f.t.exec(ctx, `UPDATE alert_groups SET due_at = ?, last_at = ? WHERE receiver = ? AND group_key = ?`, due, last, f.receiver, g.Group)
		return err
	}
	_, err := f.t.exec(ctx, `UPDATE alert_groups SET due_at = ?, last_at = ?, urgency = (SELECT COALESCE(MAX(p.urgency), 0) FROM alert_pending p
		WHERE p.receiver = alert_groups.receiver AND p.group_key = alert_groups.group_key AND p.held <> '') WHERE receiver = ? AND group_key = ?`, due, last, f.receiver, g.Group)
	return err
}

// saveDeliveryState records what the receiver knows of the findings of a notification.
func (f *flush) saveDeliveryState(ctx context.Context, group string, notified []locksteward.PendingEvent) error {
	slices.SortFunc(notified, func(a, b locksteward.PendingEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	last := map[string]locksteward.PendingEvent{}
	for _, w := range notified {
		last[w.Finding.Fingerprint()] = w
	}
	var rows [][]any
	var ended []any
	for print, w := range last {
		if by := f.deliveredBy[w.Seq]; by > 0 {
			f.done = append(f.done, by)
		}
		switch {
		case w.Finding.Status != locksteward.StatusResolved:
			rows = append(rows, []any{f.receiver, print, group, w.Seq, number(w.FirstSweep)})
		case w.Known:
			ended = append(ended, print)
		}
	}
	if err := f.each(ctx, ended, `DELETE FROM alert_delivery_state WHERE receiver = ? AND fingerprint IN (%s)`, f.receiver); err != nil {
		return err
	}
	return f.t.setDeliveryState(ctx, rows)
}

// finish empties the events that no receiver needs any more. Their ids are known until
// [Store.PruneEvents] deletes them.
func (f *flush) finish(ctx context.Context) error {
	return f.each(ctx, f.done, `UPDATE alert_events SET done_at = ?, finding = '', lock_key = ? WHERE seq IN (%s) AND done_at = 0
		AND NOT EXISTS (SELECT 1 FROM alert_pending p WHERE p.seq = alert_events.seq)
		AND NOT EXISTS (SELECT 1 FROM alert_delivery_state t WHERE t.seq = alert_events.seq)`, f.now, bytesOf(""))
}

// each runs a statement on a list, in parts: %s is the list, args come before it.
func (f *flush) each(ctx context.Context, list []any, statement string, args ...any) error {
	for part := range slices.Chunk(list, eventsAtOnce) {
		if _, err := f.t.exec(ctx, fmt.Sprintf(statement, marks(len(part))), slices.Concat(args, part)...); err != nil {
			return err
		}
	}
	return nil
}
