package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// DueGroup is a group with what waits in it.
type DueGroup struct {
	Group  string
	LastAt time.Time // its last message; zero: none
	Now    time.Time // the database's clock
	// Waiting is oldest first: at most as many as asked for of what is not held back,
	// and what is of the same findings.
	Waiting []WaitingEvent
	More    bool // more wait
	Told    int  // findings of it that the receiver knows to fire
	// Standing are those findings' last told events, at most as many as asked for,
	// in the order of their writing; only when nothing waits but what is held back: a
	// repeat.
	Standing []Event
}

// WaitingEvent is an event that one receiver is to be told of.
type WaitingEvent struct {
	Event            // To is empty
	Known     bool   // the receiver knows this finding to fire
	Held      string // why it was held back before; ""
	CreatedAt time.Time

	told int64 // the event that told the receiver of the finding last; 0: none
}

// Flushed is what becomes of one group. What waits in it and is named in none of
// Told, Dropped and Held goes on waiting, and the group stays due at once.
type Flushed struct {
	Group   string
	Told    []int64          // seqs: told; a firing one becomes what the receiver knows, a resolved one ends that
	Dropped []int64          // seqs: neither told nor waiting any more
	Held    map[int64]string // seqs that go on waiting, and why
	Sent    bool             // LastAt becomes now
	Next    time.Duration    // due again after; < 0: when something new is written
}

// Flush gives compose the due groups of a receiver (at most groups of them, the most
// urgent and of these those due longest first, with at most events in all; behind is
// that of [Store.NextGroup]) and writes, in one transaction, the
// messages and what becomes of each group. It returns how many groups there were;
// a group that compose says nothing about stays due. compose runs inside the
// transaction, beside which there is no other writer: it must be quick and must not
// use the store. Its errors come back as they are, and nothing is written then.
func (s *Store) Flush(ctx context.Context, receiver, behind string, groups, events int, compose func([]DueGroup) ([]Flushed, []Message)) (int, error) {
	if receiver == "" || groups <= 0 || events <= 0 {
		return 0, fmt.Errorf("flush groups: got receiver %q, %d groups, %d events; none of them may be empty", receiver, groups, events)
	}
	n := 0
	err := s.inWrite(ctx, "flush groups", func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, SingletonDuties); err != nil {
			return err
		}
		f := &flush{t: t, receiver: receiver, behind: behind, alike: alike{}}
		due, err := f.read(ctx, groups, events)
		if err != nil || len(due) == 0 {
			return err
		}
		n = len(due)
		out, messages := compose(due)
		for _, one := range out {
			i := slices.IndexFunc(due, func(d DueGroup) bool { return d.Group == one.Group })
			if i < 0 {
				return fmt.Errorf("flush groups: %q is not one of the groups that are due", one.Group)
			}
			if err := f.write(ctx, due[i], one); err != nil {
				return err
			}
		}
		if err := f.spend(ctx); err != nil {
			return err
		}
		return enqueue(ctx, t, messages)
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
	alike    alike
}

// read returns the groups that are due, with all that compose is told of them.
func (f *flush) read(ctx context.Context, groups, events int) ([]DueGroup, error) {
	var out []DueGroup
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
		out = append(out, DueGroup{Group: g.group, Now: fromMicros(f.now), LastAt: fromMicros(g.last)})
	}
	for i := range out {
		if err := f.fill(ctx, &out[i], events); err != nil {
			return nil, err
		}
		if events -= len(out[i].Waiting) + len(out[i].Standing); events <= 0 {
			return out[:i+1], nil
		}
	}
	return out, nil
}

// fill reads what waits in a group and what the receiver knows of it. What is held
// back stays out of it, unless something new is to be told of the same finding:
// silences can keep any number of events.
func (f *flush) fill(ctx context.Context, g *DueGroup, events int) error {
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
	slices.SortFunc(g.Waiting, func(a, b WaitingEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	// The same finding can stand in several parts.
	g.Waiting = slices.CompactFunc(g.Waiting, func(a, b WaitingEvent) bool { return a.Seq == b.Seq })
	err = f.t.row(ctx, `SELECT COUNT(*) FROM alert_told WHERE receiver = ? AND grp = ?`, f.receiver, g.Group).Scan(&g.Told)
	if err != nil || len(g.Waiting) > 0 || g.Told == 0 {
		return err
	}
	rows, err := f.t.query(ctx,
		`SELECT `+eventRead+` FROM alert_told t JOIN alert_events e ON e.seq = t.seq WHERE t.receiver = ? AND t.grp = ? ORDER BY t.seq LIMIT ?`,
		f.receiver, g.Group, events)
	return each(rows, err, func(row rowScanner) error {
		e, err := scanEvent(row)
		f.alike.share(&e.Finding)
		g.Standing = append(g.Standing, e)
		return err
	})
}

// waiting adds events that wait in a group.
func (f *flush) waiting(ctx context.Context, g *DueGroup, which string, args ...any) error {
	rows, err := f.t.query(ctx,
		`SELECT `+eventRead+`, p.held, e.created_at, COALESCE(t.seq, 0) FROM alert_pending p
		 JOIN alert_events e ON e.seq = p.seq
		 LEFT JOIN alert_told t ON t.receiver = p.receiver AND t.fingerprint = e.fingerprint
		 WHERE p.receiver = ? AND p.grp = ?`+which, append([]any{f.receiver, g.Group}, args...)...)
	return each(rows, err, func(row rowScanner) error {
		var w WaitingEvent
		var created int64
		var err error
		w.Event, err = scanEvent(row, &w.Held, &created, &w.told)
		f.alike.share(&w.Finding)
		w.CreatedAt, w.Known = fromMicros(created), w.told > 0
		g.Waiting = append(g.Waiting, w)
		return err
	})
}

// write makes so what becomes of one group.
func (f *flush) write(ctx context.Context, g DueGroup, out Flushed) error {
	waiting := map[int64]WaitingEvent{}
	for _, w := range g.Waiting {
		waiting[w.Seq] = w
	}
	var told []WaitingEvent
	var gone []any
	take := func(seq int64) (WaitingEvent, error) {
		w, ok := waiting[seq]
		if !ok {
			return w, fmt.Errorf("flush group %q: event %d does not wait in it, or is named twice", g.Group, seq)
		}
		delete(waiting, seq)
		return w, nil
	}
	for _, seq := range out.Told {
		w, err := take(seq)
		if err != nil {
			return err
		}
		told, gone = append(told, w), append(gone, seq)
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
		err := f.each(ctx, seqs, `UPDATE alert_pending SET held = ? WHERE receiver = ? AND grp = ? AND seq IN (%s)`, why, f.receiver, g.Group)
		if err != nil {
			return err
		}
	}
	if err := f.each(ctx, gone, `DELETE FROM alert_pending WHERE receiver = ? AND grp = ? AND seq IN (%s)`, f.receiver, g.Group); err != nil {
		return err
	}
	f.done = append(f.done, gone...)
	if err := f.know(ctx, g.Group, told); err != nil {
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
	if g.More || len(waiting) > 0 { // it stays as urgent
		_, err := f.t.exec(ctx, `UPDATE alert_groups SET due_at = ?, last_at = ? WHERE receiver = ? AND grp = ?`, due, last, f.receiver, g.Group)
		return err
	}
	_, err := f.t.exec(ctx, `UPDATE alert_groups SET due_at = ?, last_at = ?, urgency = (SELECT COALESCE(MAX(p.urgency), 0) FROM alert_pending p
		WHERE p.receiver = alert_groups.receiver AND p.grp = alert_groups.grp AND p.held <> '') WHERE receiver = ? AND grp = ?`, due, last, f.receiver, g.Group)
	return err
}

// know keeps what the receiver knows from now on of findings that it is told of.
func (f *flush) know(ctx context.Context, group string, told []WaitingEvent) error {
	slices.SortFunc(told, func(a, b WaitingEvent) int { return int(a.Seq - b.Seq) })
	last := map[string]WaitingEvent{}
	for _, w := range told {
		last[w.Finding.Fingerprint()] = w
	}
	var rows [][]any
	var ended []any
	for print, w := range last {
		if w.told > 0 {
			f.done = append(f.done, w.told)
		}
		switch {
		case w.Finding.Status != locksteward.StatusResolved:
			rows = append(rows, []any{f.receiver, print, group, w.Seq, number(w.Survey)})
		case w.Known:
			ended = append(ended, print)
		}
	}
	if err := f.each(ctx, ended, `DELETE FROM alert_told WHERE receiver = ? AND fingerprint IN (%s)`, f.receiver); err != nil {
		return err
	}
	return f.t.insert(ctx, "alert_told", "receiver, fingerprint, grp, seq, survey",
		"ON CONFLICT (receiver, fingerprint) DO UPDATE SET grp = excluded.grp, seq = excluded.seq, survey = excluded.survey", rows)
}

// spend empties the events that no receiver needs any more. That they were there is
// known until [Store.PruneEvents] forgets them.
func (f *flush) spend(ctx context.Context) error {
	return f.each(ctx, f.done, `UPDATE alert_events SET spent = ?, finding = '', lock_key = ? WHERE seq IN (%s) AND spent = 0
		AND NOT EXISTS (SELECT 1 FROM alert_pending p WHERE p.seq = alert_events.seq)
		AND NOT EXISTS (SELECT 1 FROM alert_told t WHERE t.seq = alert_events.seq)`, f.now, bytesOf(""))
}

// each runs a statement on a list, for which %s stands, in parts; args come before.
func (f *flush) each(ctx context.Context, list []any, statement string, args ...any) error {
	for part := range slices.Chunk(list, eventsAtOnce) {
		if _, err := f.t.exec(ctx, fmt.Sprintf(statement, marks(len(part))), slices.Concat(args, part)...); err != nil {
			return err
		}
	}
	return nil
}
