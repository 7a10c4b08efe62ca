package store

import (
	"context"
	"errors"
	"time"
)

// SignedCheckpoint is a place of the chain to which an agent put its name.
type SignedCheckpoint struct {
	Checkpoint
	At time.Time // agent's clock
	// KeyID names the key, "" for a place that nobody signed; Signature is base64.
	// Package internal/audit makes and checks both.
	KeyID     string
	Signature string
}

// errNoPlace is a checkpoint of nothing.
var errNoPlace = errors.New("save checkpoint: it is of no entry")

// SaveCheckpoint keeps a checkpoint, in place of another one of that place.
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

// Checkpoints returns the checkpoints that are kept, newest first unless the query
// says otherwise.
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

// AllCheckpoints returns all checkpoints in their order.
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

// PruneCheckpoints forgets the checkpoints of entries that retention took, but for
// the last of them: behind it the trail begins.
func (s *Store) PruneCheckpoints(ctx context.Context) (int64, error) {
	return s.prune(ctx, "prune checkpoints",
		`DELETE FROM checkpoints WHERE seq IN (SELECT seq FROM checkpoints WHERE seq < (SELECT base_seq FROM entries_head WHERE id = 1) ORDER BY seq LIMIT ?)`)
}

// PlaceAt returns the number of the first entry that was made at or after a time, 0
// if there is none. Clocks are set back at times: entries before it may be younger.
func (s *Store) PlaceAt(ctx context.Context, at time.Time) (int64, error) {
	var seq int64
	err := s.inRead(ctx, "find place in audit trail", func(ctx context.Context, q querier) error {
		return q.row(ctx, `SELECT COALESCE(MIN(seq), 0) FROM entries WHERE at >= ?`, micros(at)).Scan(&seq)
	})
	return seq, err
}
