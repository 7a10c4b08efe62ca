package store

import (
	"context"
	"errors"
	"time"
)

// SignedCheckpoint is a checkpoint with the signature of an agent.
type SignedCheckpoint struct {
	Checkpoint
	At time.Time // agent's clock
	// KeyID names the key, "" if there is no signature; Signature is base64. Package
	// internal/audit creates and checks both.
	KeyID     string
	Signature string
}

var errNoPlace = errors.New("save checkpoint: it has no sequence number or no hash")

// SaveCheckpoint writes a checkpoint, replacing one of the same entry.
func (s *Store) SaveCheckpoint(ctx context.Context, c SignedCheckpoint) error {
	if c.Seq <= 0 || c.Hash == "" {
		return errNoPlace
	}
	return s.inOwn(ctx, "save checkpoint", func(ctx context.Context, t *tx) error {
		return t.insert(ctx, "checkpoints", checkpointColumns,
			`ON CONFLICT (seq) DO UPDATE SET hash = excluded.hash, at = excluded.at, key_id = excluded.key_id, signature = excluded.signature`,
			[][]any{{c.Seq, c.Hash, micros(c.At), text(c.KeyID), text(c.Signature)}})
	})
}

const checkpointColumns = "seq, hash, at, key_id, signature"

// CheckpointQuery selects checkpoints; zero fields select all.
type CheckpointQuery struct {
	After, Before int64 // only those with a larger, a smaller Seq
	Ascending     bool  // the oldest first
	Limit         int   // 0: 100
}

// Checkpoints returns checkpoints, newest first unless q.Ascending is set.
func (s *Store) Checkpoints(ctx context.Context, q CheckpointQuery) ([]SignedCheckpoint, error) {
	var f filter
	if q.After > 0 {
		f.add("seq > ?", q.After)
	}
	if q.Before > 0 {
		f.add("seq < ?", q.Before)
	}
	order := " ORDER BY seq DESC LIMIT ?"
	if q.Ascending {
		order = " ORDER BY seq LIMIT ?"
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var out []SignedCheckpoint
	err := s.inRead(ctx, "list checkpoints", func(ctx context.Context, r querier) error {
		rows, err := r.query(ctx, "SELECT "+checkpointColumns+" FROM checkpoints"+f.where()+order, append(f.args, limit)...)
		return each(rows, err, func(row rowScanner) error {
			var c SignedCheckpoint
			var at int64
			err := row.Scan(&c.Seq, &c.Hash, &at, &c.KeyID, &c.Signature)
			c.At = fromMicros(at)
			out = append(out, c)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// AllCheckpoints returns all checkpoints, oldest first.
func (s *Store) AllCheckpoints(ctx context.Context) ([]SignedCheckpoint, error) {
	var out []SignedCheckpoint
	for after := int64(0); ; after = out[len(out)-1].Seq {
		page, err := s.Checkpoints(ctx, CheckpointQuery{After: after, Ascending: true, Limit: pageOfEntries})
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if len(page) < pageOfEntries {
			return out, nil
		}
	}
}

// PruneCheckpoints deletes the checkpoints of entries that retention deleted, except the
// last one, which the trail continues.
func (s *Store) PruneCheckpoints(ctx context.Context) (int64, error) {
	return s.prune(ctx, "prune checkpoints",
		`DELETE FROM checkpoints WHERE seq IN (SELECT seq FROM checkpoints WHERE seq < (SELECT base_seq FROM entries_head WHERE id = 1) ORDER BY seq LIMIT ?)`)
}

// PlaceAt returns the number of the first entry from a time or later, 0 if there is none.
// Since clocks can be set back, entries before it may be younger.
func (s *Store) PlaceAt(ctx context.Context, at time.Time) (int64, error) {
	var seq int64
	err := s.inRead(ctx, "find place in audit trail", func(ctx context.Context, q querier) error {
		return q.row(ctx, `SELECT COALESCE(MIN(seq), 0) FROM entries WHERE at >= ?`, micros(at)).Scan(&seq)
	})
	return seq, err
}
