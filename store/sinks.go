package store

import (
	"context"
	"database/sql"
	"errors"
)

// SinkPlace is the progress of a receiver of the live audit trail.
type SinkPlace struct {
	Seq        int64 // the last entry that it received
	Checkpoint int64 // the entry of the last checkpoint that it received
	Missed     int64 // entries that retention deleted before it received them
}

// SinkPlace returns the progress of a sink; zero if it has received nothing yet.
func (s *Store) SinkPlace(ctx context.Context, name string) (SinkPlace, error) {
	var p SinkPlace
	err := s.inRead(ctx, "read place of audit sink", func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT seq, checkpoint, missed FROM sinks WHERE name = ?`, text(name)).Scan(&p.Seq, &p.Checkpoint, &p.Missed)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return p, err
}

// SaveSinkPlace writes the progress of a sink.
func (s *Store) SaveSinkPlace(ctx context.Context, name string, p SinkPlace) error {
	return s.inOwn(ctx, "save place of audit sink", func(ctx context.Context, t *tx) error {
		return t.insert(ctx, "sinks", "name, seq, checkpoint, missed",
			"ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, checkpoint = excluded.checkpoint, missed = excluded.missed",
			[][]any{{text(name), p.Seq, p.Checkpoint, p.Missed}})
	})
}
