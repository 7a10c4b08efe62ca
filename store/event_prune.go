package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// PruneEvents deletes events that no receiver needs any more, and groups in which nothing
// waits or fires, when they are older than age (by the database's clock), and returns the
// number of events. An event that is written again within age is not sent again.
func (s *Store) PruneEvents(ctx context.Context, age time.Duration) (int64, error) {
	old := s.on.now + " - " + fmt.Sprint(age.Microseconds())
	pruned, err := s.prune(ctx, "prune events",
		`DELETE FROM alert_events WHERE seq IN (SELECT seq FROM alert_events WHERE done_at > 0 AND done_at < `+old+` LIMIT ?)`)
	if err != nil {
		return pruned, err
	}
	const alone = `AND NOT EXISTS (SELECT 1 FROM alert_pending p WHERE p.seq = e.seq) AND NOT EXISTS (SELECT 1 FROM alert_delivery_state t WHERE t.seq = e.seq)`
	// Events of removed receivers. Most events are still needed: they are read page by
	// page, so that no writer waits.
	var last int64
	for {
		var seqs []any
		var read int
		err := s.inRead(ctx, "prune events", func(ctx context.Context, q querier) error {
			rows, err := q.query(ctx, `SELECT e.seq, e.done_at = 0 AND e.created_at < `+old+` `+alone+` FROM alert_events e WHERE e.seq > ? ORDER BY e.seq LIMIT ?`,
				last, pruneAtOnce)
			return each(rows, err, func(row rowScanner) error {
				var unused bool
				err := row.Scan(&last, &unused)
				read++
				if unused {
					seqs = append(seqs, last)
				}
				return err
			})
		})
		if err != nil {
			return pruned, err
		}
		for part := range slices.Chunk(seqs, eventsAtOnce) {
			err := s.inWrite(ctx, "prune events", func(ctx context.Context, t *tx) error {
				n, err := t.exec(ctx, `DELETE FROM alert_events AS e WHERE e.seq IN (`+marks(len(part))+`) `+alone, part...)
				pruned += n
				return err
			})
			if err != nil {
				return pruned, err
			}
		}
		if read < pruneAtOnce {
			return pruned, s.pruneGroups(ctx, old)
		}
	}
}

// pruneGroups deletes groups whose last notification is so old that it delays none.
func (s *Store) pruneGroups(ctx context.Context, old string) error {
	const idle = `g.due_at = 0 AND NOT EXISTS (SELECT 1 FROM alert_pending p WHERE p.receiver = g.receiver AND p.group_key = g.group_key)
		AND NOT EXISTS (SELECT 1 FROM alert_delivery_state t WHERE t.receiver = g.receiver AND t.group_key = g.group_key) AND g.last_at < `
	for {
		var n int64
		err := s.inWrite(ctx, "prune groups", func(ctx context.Context, t *tx) error {
			var err error
			n, err = t.exec(ctx, `DELETE FROM alert_groups WHERE (receiver, group_key) IN (SELECT g.receiver, g.group_key FROM alert_groups g WHERE `+idle+old+` LIMIT ?)`, pruneAtOnce)
			return err
		})
		if err != nil || n < pruneAtOnce {
			return err
		}
	}
}
