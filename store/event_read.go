package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// eventRead are the columns that scanEvent reads.
const eventRead = "e.seq, e.event_id, e.number, e.target, e.at, e.first_sweep, e.lock_key, e.finding"

// scanEvent reads an event; besides are the columns behind its own.
func scanEvent(row rowScanner, besides ...any) (locksteward.FindingEvent, error) {
	var e locksteward.FindingEvent
	var target, written string
	var number, at, firstSweep int64
	var key []byte
	err := row.Scan(slices.Concat([]any{&e.Seq, &e.ID, &number, &target, &at, &firstSweep, &key, &written}, besides)...)
	if err != nil {
		return e, err
	}
	e.Number, e.At, e.FirstSweep = uint64(number), fromMicros(at), firstSweep != 0
	var f findingRow
	if err := json.Unmarshal([]byte(written), &f); err != nil {
		return e, fmt.Errorf("decode finding of event %q: %w", e.ID, err)
	}
	e.Finding = f.finding(target, string(key))
	return e, nil
}

// interner keeps one copy of texts that many findings have in common: a storm is a
// thousand times the same cause and remedy.
type interner map[string]string

func (a interner) share(f *locksteward.Finding) {
	for _, s := range []*string{
		&f.Rule, &f.Risk, &f.Target, &f.Class, &f.Library, &f.Team, &f.RunbookURL, &f.InhibitedBy,
	} {
		*s = a.one(*s)
	}
	for _, m := range []*locksteward.Message{&f.Summary, &f.Cause, &f.Remedy, &f.Resolution} {
		a.message(m)
	}
	for _, messages := range [][]locksteward.Message{f.Evidence, f.CounterEvidence} {
		for i := range messages {
			a.message(&messages[i])
		}
	}
}

func (a interner) message(m *locksteward.Message) {
	m.ID = a.one(m.ID)
	for i := range m.Args {
		arg := &m.Args[i]
		arg.Kind, arg.Text = locksteward.ArgKind(a.one(string(arg.Kind))), a.one(arg.Text)
		if arg.Message != nil {
			a.message(arg.Message)
		}
	}
}

func (a interner) one(s string) string {
	if s == "" {
		return ""
	}
	if same, ok := a[s]; ok {
		return same
	}
	a[s] = s
	return s
}

// Firing returns the last events of findings that the receiver knows to fire, in the
// order of fingerprints, those after the given one.
func (s *Store) Firing(ctx context.Context, receiver, after string, limit int) ([]locksteward.FindingEvent, error) {
	var out []locksteward.FindingEvent
	err := s.inRead(ctx, "list firing events", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx,
			`SELECT `+eventRead+` FROM alert_delivery_state t JOIN alert_events e ON e.seq = t.seq
			 WHERE t.receiver = ? AND t.fingerprint > ? ORDER BY t.fingerprint LIMIT ?`, receiver, after, limit)
		return each(rows, err, func(row rowScanner) error {
			e, err := scanEvent(row)
			out = append(out, e)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// HasPending reports whether an event waits for a receiver that is not held back.
func (s *Store) HasPending(ctx context.Context, receiver string) (bool, error) {
	var n int64
	err := s.inRead(ctx, "look for pending events", func(ctx context.Context, q querier) error {
		return q.row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM alert_pending WHERE receiver = ? AND held = '' LIMIT 1) one`, receiver).Scan(&n)
	})
	return n > 0, err
}

// readPending adds what waits in groups to backlogs.
func (s *Store) readPending(ctx context.Context, q querier, add func(receiver string) *locksteward.Backlog) error {
	rows, err := q.query(ctx, `SELECT receiver, COUNT(*), SUM(CASE WHEN held <> '' THEN 1 ELSE 0 END) FROM alert_pending GROUP BY receiver`)
	err = each(rows, err, func(row rowScanner) error {
		var receiver string
		var grouped, held int64
		err := row.Scan(&receiver, &grouped, &held)
		b := add(receiver)
		b.Grouped, b.Held = grouped, held
		return err
	})
	if err != nil {
		return err
	}
	rows, err = q.query(ctx, `SELECT receiver, COUNT(*), `+s.on.now+` - MIN(due_at) FROM alert_groups WHERE due_at > 0 GROUP BY receiver`)
	return each(rows, err, func(row rowScanner) error {
		var receiver string
		var groups, late int64
		err := row.Scan(&receiver, &groups, &late)
		b := add(receiver)
		b.Groups, b.Oldest = groups, max(b.Oldest, time.Duration(late)*time.Microsecond)
		return err
	})
}

// DropReceiver forgets the events and the delivery state of a receiver that was removed,
// and returns how many events waited.
func (s *Store) DropReceiver(ctx context.Context, receiver string) (int64, error) {
	var n int64
	err := s.inWrite(ctx, "drop receiver", func(ctx context.Context, t *tx) error {
		var err error
		if n, err = t.exec(ctx, `DELETE FROM alert_pending WHERE receiver = ?`, receiver); err != nil {
			return err
		}
		for _, table := range []string{"alert_delivery_state", "alert_groups"} {
			if _, err := t.exec(ctx, `DELETE FROM `+table+` WHERE receiver = ?`, receiver); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
