package store

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/scanner"
)

// SaveHistory writes upserts and deletes gone, rows of one target, in one transaction.
func (s *Store) SaveHistory(ctx context.Context, target string, upserts []scanner.HistoryRow, gone []scanner.HistoryKey) error {
	if len(upserts) == 0 && len(gone) == 0 {
		return nil
	}
	return s.inOwn(ctx, "save history", func(ctx context.Context, t *tx) error {
		if err := s.leased(ctx, t, target); err != nil {
			return err
		}
		for _, k := range gone {
			if _, err := t.exec(ctx, `DELETE FROM history WHERE target = ? AND db = ? AND lock_key = ?`, target, k.DB, bytesOf(k.Key)); err != nil {
				return err
			}
		}
		return upsertHistory(ctx, t, target, upserts)
	})
}

const historyColumns = "db, lock_key, token_digest, first_seen, last_seen, renewals, last_renewal, renew_every, expire_at, claim_id"

// pageRows is how many rows one call reads where there may be hundreds of thousands: each
// call has its own timeout.
const pageRows = 10_000

// LoadHistory returns all rows of a target, ordered by db and key.
func (s *Store) LoadHistory(ctx context.Context, target string) ([]scanner.HistoryRow, error) {
	var out []scanner.HistoryRow
	db, key := -1, ""
	for {
		before := len(out)
		err := s.inRead(ctx, "load history", func(ctx context.Context, q querier) error {
			rows, err := q.query(ctx, `SELECT `+historyColumns+` FROM history WHERE target = ? AND (db, lock_key) > (?, ?) ORDER BY db, lock_key LIMIT ?`,
				target, db, bytesOf(key), pageRows)
			return each(rows, err, func(row rowScanner) error {
				h, err := scanHistory(row, target)
				out = append(out, h)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		if len(out)-before < pageRows {
			return out, nil
		}
		last := out[len(out)-1]
		db, key = last.DB, last.Key
	}
}

func scanHistory(row rowScanner, target string) (scanner.HistoryRow, error) {
	h := scanner.HistoryRow{Target: target}
	var key []byte
	var first, last, renewal, every int64
	err := row.Scan(&h.DB, &key, &h.TokenDigest, &first, &last, &h.Renewals, &renewal, &every, &h.ExpireAt, &h.ClaimID)
	h.Key = string(key)
	h.FirstSeen, h.LastSeen, h.LastRenewal = fromMicros(first), fromMicros(last), fromMicros(renewal)
	h.RenewEvery = time.Duration(every)
	return h, err
}

func upsertHistory(ctx context.Context, t *tx, target string, upserts []scanner.HistoryRow) error {
	var rows latest[scanner.HistoryKey]
	for _, h := range upserts {
		rows.put(scanner.HistoryKey{DB: h.DB, Key: h.Key},
			target, h.DB, bytesOf(h.Key), h.TokenDigest, micros(h.FirstSeen), micros(h.LastSeen), h.Renewals, micros(h.LastRenewal),
			int64(h.RenewEvery), h.ExpireAt, text(h.ClaimID))
	}
	return t.insert(ctx, "history", "target, "+historyColumns,
		`ON CONFLICT (target, db, lock_key) DO UPDATE SET token_digest = excluded.token_digest,
		     first_seen = excluded.first_seen, last_seen = excluded.last_seen, renewals = excluded.renewals,
		     last_renewal = excluded.last_renewal, renew_every = excluded.renew_every,
		     expire_at = excluded.expire_at, claim_id = excluded.claim_id`, rows.rows)
}

var _ scanner.HistoryStore = (*Store)(nil)
