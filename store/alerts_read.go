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
const eventRead = "e.seq, e.event_id, e.number, e.target, e.at, e.survey, e.lock_key, e.finding"

// scanEvent reads an event; besides are the columns behind its own.
func scanEvent(row rowScanner, besides ...any) (Event, error) {
	var e Event
	var target, written string
	var number, at, survey int64
	var key []byte
	err := row.Scan(slices.Concat([]any{&e.Seq, &e.ID, &number, &target, &at, &survey, &key, &written}, besides)...)
	if err != nil {
		return e, err
	}
	e.Number, e.At, e.Survey = uint64(number), fromMicros(at), survey != 0
	var f findingRow
	if err := json.Unmarshal([]byte(written), &f); err != nil {
		return e, fmt.Errorf("decode finding of event %q: %w", e.ID, err)
	}
	e.Finding = f.finding(target, string(key))
	return e, nil
}

// alike keeps one copy of texts that many findings have in common: a storm is a
// thousand times the same cause and remedy.
type alike map[string]string

func (a alike) share(f *locksteward.Finding) {
	for _, s := range []*string{
		&f.Rule, &f.Risk, &f.Target, &f.Class, &f.Dialect, &f.Cause.EN, &f.Cause.ZH, &f.Remedy.EN, &f.Remedy.ZH, &f.Team, &f.RunbookURL, &f.InhibitedBy,
	} {
		*s = a.one(*s)
	}
	for _, lines := range [][]locksteward.Text{f.Evidence, f.CounterEvidence} {
		for i := range lines {
			lines[i].EN, lines[i].ZH = a.one(lines[i].EN), a.one(lines[i].ZH)
		}
	}
}

func (a alike) one(s string) string {
	if s == "" {
		return ""
	}
	if same, ok := a[s]; ok {
		return same
	}
	a[s] = s
	return s
}

// Standing returns the last told events of findings that the receiver knows to
// fire, in the order of fingerprints, those after the given one.
func (s *Store) Standing(ctx context.Context, receiver, after string, limit int) ([]Event, error) {
	var out []Event
	err := s.inRead(ctx, "list what stands", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx,
			`SELECT `+eventRead+` FROM alert_told t JOIN alert_events e ON e.seq = t.seq
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

// Waits says whether something waits in groups for a receiver that is not held
// back.
func (s *Store) Waits(ctx context.Context, receiver string) (bool, error) {
	var n int64
	err := s.inRead(ctx, "look for events", func(ctx context.Context, q querier) error {
		return q.row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM alert_pending WHERE receiver = ? AND held = '' LIMIT 1) one`, receiver).Scan(&n)
	})
	return n > 0, err
}

// Pending is what waits in groups for one receiver.
type Pending struct {
	Receiver string
	Waiting  int64
	Held     int64         // of these: held back
	Groups   int64         // groups that will be told of: of what waits, or again
	Late     time.Duration // how long ago the first of them was due
}

// Pending returns how many events wait in groups, by receiver, and how many of
// them are held back.
func (s *Store) Pending(ctx context.Context) ([]Pending, error) {
	var out []Pending
	err := s.inRead(ctx, "count events", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx, `SELECT receiver, COUNT(*), SUM(CASE WHEN held <> '' THEN 1 ELSE 0 END)
			FROM alert_pending GROUP BY receiver ORDER BY receiver`)
		err = each(rows, err, func(row rowScanner) error {
			var p Pending
			err := row.Scan(&p.Receiver, &p.Waiting, &p.Held)
			out = append(out, p)
			return err
		})
		if err != nil {
			return err
		}
		rows, err = q.query(ctx, `SELECT receiver, COUNT(*), `+s.on.now+` - MIN(due_at) FROM alert_groups
			WHERE due_at > 0 GROUP BY receiver ORDER BY receiver`)
		return each(rows, err, func(row rowScanner) error {
			var p Pending
			var late int64
			if err := row.Scan(&p.Receiver, &p.Groups, &late); err != nil {
				return err
			}
			p.Late = max(0, time.Duration(late)*time.Microsecond)
			if n := slices.IndexFunc(out, func(o Pending) bool { return o.Receiver == p.Receiver }); n >= 0 {
				out[n].Groups, out[n].Late = p.Groups, p.Late
			} else {
				out = append(out, p)
			}
			return nil
		})
	})
	return out, err
}

// DropReceiver forgets what waits for a receiver that is configured no longer, and
// what it knows; it returns how many events waited.
func (s *Store) DropReceiver(ctx context.Context, receiver string) (int64, error) {
	var n int64
	err := s.inWrite(ctx, "drop receiver", func(ctx context.Context, t *tx) error {
		var err error
		if n, err = t.exec(ctx, `DELETE FROM alert_pending WHERE receiver = ?`, receiver); err != nil {
			return err
		}
		for _, table := range []string{"alert_told", "alert_groups"} {
			if _, err := t.exec(ctx, `DELETE FROM `+table+` WHERE receiver = ?`, receiver); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
