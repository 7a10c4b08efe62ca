package store

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/internal/report"
)

// SaveHolds writes rows, replacing those of the same target, class and slot, in one
// transaction.
func (s *Store) SaveHolds(ctx context.Context, rows []report.Row) error {
	if len(rows) == 0 {
		return nil
	}
	return s.inOwn(ctx, "save holds", func(ctx context.Context, t *tx) error {
		type id struct {
			target, class string
			slot          int64
		}
		var values latest[id]
		for _, r := range rows {
			if err := s.leased(ctx, t, r.Target); err != nil {
				return err
			}
			stats, err := r.Encode()
			if err != nil {
				return err
			}
			values.put(id{r.Target, r.Class, micros(r.Slot)}, r.Target, r.Class, micros(r.Slot), stats)
		}
		return t.insert(ctx, "holds", "target, class, slot, stats", "ON CONFLICT (target, class, slot) DO UPDATE SET stats = excluded.stats", values.rows)
	})
}

// LoadHolds returns the rows of a target whose slots begin at since or later, ordered by
// slot and class.
func (s *Store) LoadHolds(ctx context.Context, target string, since time.Time) ([]report.Row, error) {
	var out []report.Row
	err := s.inRead(ctx, "load holds", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx,
			`SELECT class, slot, stats FROM holds WHERE target = ? AND slot >= ? ORDER BY slot, class`, target, micros(since))
		return each(rows, err, func(row rowScanner) error {
			r := report.Row{Target: target}
			var slot int64
			var stats string
			if err := row.Scan(&r.Class, &slot, &stats); err != nil {
				return err
			}
			r.Slot = fromMicros(slot)
			err := r.Decode(stats)
			out = append(out, r)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
