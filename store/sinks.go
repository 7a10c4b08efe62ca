package store

import (
	"context"
	"database/sql"
	"errors"
)

// SinkPlace is how far a receiver of the live audit trail is.
type SinkPlace struct {
	Seq        int64 // the last entry that it got
	Checkpoint int64 // the place of the last checkpoint that it got
	Missed     int64 // entries that retention took before it got them
}

// SinkPlace returns how far a sink is; zero for one that got nothing yet.
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

// SaveSinkPlace keeps how far a sink is.
func (s *Store) SaveSinkPlace(ctx context.Context, name string, p SinkPlace) error {
	return s.inOwn(ctx, "save place of audit sink", func(ctx context.Context, t *tx) error {
		return t.insert(ctx, "sinks", "name, seq, checkpoint, missed",
			"ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, checkpoint = excluded.checkpoint, missed = excluded.missed",
			[][]any{{text(name), p.Seq, p.Checkpoint, p.Missed}})
	})
}
