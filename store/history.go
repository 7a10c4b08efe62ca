package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/locksteward/locksteward/scanner"
)

// SaveHistory writes upserts and removes gone, rows of one target, in one
// transaction.
func (s *Store) SaveHistory(ctx context.Context, target string, upserts []scanner.HistoryRow, gone []scanner.HistoryKey) error {
	if len(upserts) == 0 && len(gone) == 0 {
		return nil
	}
	return s.inWrite(ctx, "save history", func(tx *sql.Tx) error {
		if err := deleteHistory(ctx, tx, target, gone); err != nil {
			return err
		}
		return upsertHistory(ctx, tx, target, upserts)
	})
}

// LoadHistory returns all rows of a target in the order of db and key.
func (s *Store) LoadHistory(ctx context.Context, target string) ([]scanner.HistoryRow, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT db, lock_key, token_digest, first_seen, last_seen, renewals, last_renewal, renew_every, expire_at, claim_id
		 FROM history WHERE target = ? ORDER BY db, lock_key`, target)
	if err != nil {
		return nil, s.explain("load history", err)
	}
	defer rows.Close()
	var out []scanner.HistoryRow
	for rows.Next() {
		h := scanner.HistoryRow{Target: target}
		var key []byte
		var first, last, renewal, every int64
		err := rows.Scan(&h.DB, &key, &h.TokenDigest, &first, &last, &h.Renewals, &renewal, &every, &h.ExpireAt, &h.ClaimID)
		if err != nil {
			return nil, s.explain("load history", err)
		}
		h.Key = string(key)
		h.FirstSeen, h.LastSeen, h.LastRenewal = fromMicros(first), fromMicros(last), fromMicros(renewal)
		h.RenewEvery = time.Duration(every)
		out = append(out, h)
	}
	return out, s.explain("load history", rows.Err())
}

// PruneHistory forgets the holds that were last seen before the given time (the
// servers' clock), of all targets, and returns how many: what no sweep has met
// for that long belongs to targets that are gone.
func (s *Store) PruneHistory(ctx context.Context, before time.Time) (int64, error) {
	var n int64
	err := s.inWrite(ctx, "prune history", func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM history WHERE last_seen < ?`, micros(before))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

func deleteHistory(ctx context.Context, tx *sql.Tx, target string, gone []scanner.HistoryKey) error {
	if len(gone) == 0 {
		return nil
	}
	remove, err := tx.PrepareContext(ctx, `DELETE FROM history WHERE target = ? AND db = ? AND lock_key = ?`)
	if err != nil {
		return err
	}
	defer remove.Close()
	for _, k := range gone {
		if _, err := remove.ExecContext(ctx, target, k.DB, bytesOf(k.Key)); err != nil {
			return err
		}
	}
	return nil
}

func upsertHistory(ctx context.Context, tx *sql.Tx, target string, upserts []scanner.HistoryRow) error {
	if len(upserts) == 0 {
		return nil
	}
	upsert, err := tx.PrepareContext(ctx,
		`INSERT INTO history (target, db, lock_key, token_digest, first_seen, last_seen, renewals, last_renewal, renew_every, expire_at, claim_id)
		 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		 ON CONFLICT (target, db, lock_key) DO UPDATE SET token_digest = excluded.token_digest,
		     first_seen = excluded.first_seen, last_seen = excluded.last_seen, renewals = excluded.renewals,
		     last_renewal = excluded.last_renewal, renew_every = excluded.renew_every,
		     expire_at = excluded.expire_at, claim_id = excluded.claim_id`)
	if err != nil {
		return err
	}
	defer upsert.Close()
	for _, h := range upserts {
		_, err := upsert.ExecContext(ctx, target, h.DB, bytesOf(h.Key), h.TokenDigest,
			micros(h.FirstSeen), micros(h.LastSeen), h.Renewals, micros(h.LastRenewal), int64(h.RenewEvery),
			h.ExpireAt, h.ClaimID)
		if err != nil {
			return err
		}
	}
	return nil
}

var _ scanner.HistoryStore = (*Store)(nil)
