package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Silence holds back notifications about some findings until a time. It does not resolve
// findings, and does not hide them in the console.
type Silence struct {
	ID string
	// Matchers have the syntax of the configuration: a finding must match all of them.
	Matchers  []string
	Reason    string
	CreatedBy string
	CreatedAt time.Time
	StartsAt  time.Time
	EndsAt    time.Time
	// EndedBy and EndedAt are set if it was ended before EndsAt.
	EndedBy string
	EndedAt time.Time
	// Fingerprint is that of the one finding that was accepted; "" for a silence by
	// labels.
	Fingerprint string
}

// AddSilence writes a silence with its audit entries, and wakes the groups with events that
// were held back, in one transaction.
func (s *Store) AddSilence(ctx context.Context, silence Silence, entries ...locksteward.Entry) error {
	if silence.ID == "" {
		return fmt.Errorf("add silence: the id must not be empty")
	}
	matchers, err := json.Marshal(silence.Matchers)
	if err != nil {
		return fmt.Errorf("encode matchers of silence %s: %w", silence.ID, err)
	}
	return s.inWrite(ctx, "add silence", func(ctx context.Context, t *tx) error {
		err := t.insert(ctx, "silences", silenceColumns, "", [][]any{{
			silence.ID, string(matchers), text(silence.Reason), text(silence.CreatedBy), micros(silence.CreatedAt),
			micros(silence.StartsAt), micros(silence.EndsAt), "", 0, silence.Fingerprint,
		}})
		if err != nil {
			return err
		}
		return s.silenced(ctx, t, entries)
	})
}

// EndSilence ends a silence now, with its audit entries, and wakes the groups with events
// that were held back. An unknown ID is locksteward.ErrNotFound, a silence that ended
// already locksteward.ErrConflict.
func (s *Store) EndSilence(ctx context.Context, id, by string, entries ...locksteward.Entry) error {
	return s.inWrite(ctx, "end silence", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE silences SET ended_by = ?, ended_at = `+s.on.now+` WHERE id = ? AND ended_at = 0 AND ends_at > `+s.on.now, text(by), id)
		if err != nil {
			return err
		}
		if n == 0 {
			var exists int
			if err := t.row(ctx, `SELECT COUNT(*) FROM silences WHERE id = ?`, id).Scan(&exists); err != nil {
				return err
			}
			if exists == 0 {
				return fmt.Errorf("silence %q: %w; list the silences to see their ids", id, locksteward.ErrNotFound)
			}
			return fmt.Errorf("silence %q is over already: %w", id, locksteward.ErrConflict)
		}
		return s.silenced(ctx, t, entries)
	})
}

// silenced completes the transaction of a change of silences.
func (s *Store) silenced(ctx context.Context, t *tx, entries []locksteward.Entry) error {
	if err := wakeHeld(ctx, t); err != nil {
		return err
	}
	return s.written(ctx, t, Written{Entries: entries})
}

const silenceColumns = "id, matchers, reason, created_by, created_at, starts_at, ends_at, ended_by, ended_at, fingerprint"

// Silences returns the silences that have not ended, including those that have not begun,
// or all; newest first.
func (s *Store) Silences(ctx context.Context, includeEnded bool) ([]Silence, error) {
	var f filter
	if !includeEnded {
		f.add("ended_at = 0")
		f.add("ends_at > " + s.on.now)
	}
	var out []Silence
	err := s.inRead(ctx, "list silences", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx, `SELECT `+silenceColumns+` FROM silences`+f.where()+` ORDER BY created_at DESC, id`)
		return each(rows, err, func(row rowScanner) error {
			one, err := scanSilence(row)
			out = append(out, one)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func scanSilence(row rowScanner) (Silence, error) {
	var one Silence
	var matchers string
	var created, starts, ends, ended int64
	err := row.Scan(&one.ID, &matchers, &one.Reason, &one.CreatedBy, &created, &starts, &ends, &one.EndedBy, &ended, &one.Fingerprint)
	if err != nil {
		return one, err
	}
	one.CreatedAt, one.StartsAt, one.EndsAt, one.EndedAt = fromMicros(created), fromMicros(starts), fromMicros(ends), fromMicros(ended)
	if err := json.Unmarshal([]byte(matchers), &one.Matchers); err != nil {
		return one, fmt.Errorf("decode matchers of silence %s: %w", one.ID, err)
	}
	return one, nil
}

// PruneSilences deletes silences that ended before the given time, and returns their
// number. Their audit entries are kept.
func (s *Store) PruneSilences(ctx context.Context, before time.Time) (int64, error) {
	return s.prune(ctx, "prune silences", `DELETE FROM silences WHERE id IN (SELECT id FROM silences WHERE ends_at < ? LIMIT ?)`, micros(before))
}
