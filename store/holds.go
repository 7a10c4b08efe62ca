package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/locksteward/locksteward/internal/report"
)

// SaveHolds writes rows in place of what was kept for the same target, class and
// slot, in one transaction.
func (s *Store) SaveHolds(ctx context.Context, rows []report.Row) error {
	if len(rows) == 0 {
		return nil
	}
	return s.inWrite(ctx, "save holds", func(tx *sql.Tx) error {
		upsert, err := tx.PrepareContext(ctx,
			`INSERT INTO holds (target, class, slot, stats) VALUES (?, ?, ?, ?)
			 ON CONFLICT (target, class, slot) DO UPDATE SET stats = excluded.stats`)
		if err != nil {
			return err
		}
		defer upsert.Close()
		for _, r := range rows {
			text, err := r.Encode()
			if err != nil {
				return err
			}
			if _, err := upsert.ExecContext(ctx, r.Target, r.Class, micros(r.Slot), text); err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadHolds returns the rows of a target whose slots begin at since or later, in
// the order of slot and class.
func (s *Store) LoadHolds(ctx context.Context, target string, since time.Time) ([]report.Row, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT class, slot, stats FROM holds WHERE target = ? AND slot >= ? ORDER BY slot, class`, target, micros(since))
	if err != nil {
		return nil, s.explain("load holds", err)
	}
	defer rows.Close()
	var out []report.Row
	for rows.Next() {
		r := report.Row{Target: target}
		var slot int64
		var text string
		if err := rows.Scan(&r.Class, &slot, &text); err != nil {
			return nil, s.explain("load holds", err)
		}
		r.Slot = fromMicros(slot)
		if err := r.Decode(text); err != nil {
			return nil, s.explain("load holds", err)
		}
		out = append(out, r)
	}
	return out, s.explain("load holds", rows.Err())
}

// PruneHolds forgets the slots that began before the given time, of all targets,
// and returns how many rows that were.
func (s *Store) PruneHolds(ctx context.Context, before time.Time) (int64, error) {
	var n int64
	err := s.inWrite(ctx, "prune holds", func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM holds WHERE slot < ?`, micros(before))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}
