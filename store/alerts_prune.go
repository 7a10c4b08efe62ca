package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// PruneEvents forgets what is left of events that no receiver needs any more, and
// groups in which nothing waits or stands, when that is older than age (by the
// database's clock); it returns how many events that were. An event that is written
// again within age is not told again.
func (s *Store) PruneEvents(ctx context.Context, age time.Duration) (int64, error) {
	old := s.on.now + " - " + fmt.Sprint(age.Microseconds())
	spent, err := s.prune(ctx, "prune events",
		`DELETE FROM alert_events WHERE seq IN (SELECT seq FROM alert_events WHERE spent > 0 AND spent < `+old+` LIMIT ?)`)
	if err != nil {
		return spent, err
	}
	const alone = `AND NOT EXISTS (SELECT 1 FROM alert_pending p WHERE p.seq = e.seq) AND NOT EXISTS (SELECT 1 FROM alert_told t WHERE t.seq = e.seq)`
	// Those of receivers that are configured no longer. Most of what is looked at is
	// needed still: readers do that, page by page, and nobody who writes waits.
	var last int64
	for {
		var seqs []any
		var looked int
		err := s.inRead(ctx, "prune events", func(ctx context.Context, q querier) error {
			rows, err := q.query(ctx, `SELECT e.seq, e.spent = 0 AND e.created_at < `+old+` `+alone+` FROM alert_events e WHERE e.seq > ? ORDER BY e.seq LIMIT ?`,
				last, pruneAtOnce)
			return each(rows, err, func(row rowScanner) error {
				var useless bool
				err := row.Scan(&last, &useless)
				looked++
				if useless {
					seqs = append(seqs, last)
				}
				return err
			})
		})
		if err != nil {
			return spent, err
		}
		for part := range slices.Chunk(seqs, eventsAtOnce) {
			err := s.inWrite(ctx, "prune events", func(ctx context.Context, t *tx) error {
				n, err := t.exec(ctx, `DELETE FROM alert_events AS e WHERE e.seq IN (`+marks(len(part))+`) `+alone, part...)
				spent += n
				return err
			})
			if err != nil {
				return spent, err
			}
		}
		if looked < pruneAtOnce {
			return spent, s.pruneGroups(ctx, old)
		}
	}
}

// pruneGroups forgets groups whose last message is so old that it delays none.
func (s *Store) pruneGroups(ctx context.Context, old string) error {
	const idle = `g.due_at = 0 AND NOT EXISTS (SELECT 1 FROM alert_pending p WHERE p.receiver = g.receiver AND p.grp = g.grp)
		AND NOT EXISTS (SELECT 1 FROM alert_told t WHERE t.receiver = g.receiver AND t.grp = g.grp) AND g.last_at < `
	for {
		var n int64
		err := s.inWrite(ctx, "prune groups", func(ctx context.Context, t *tx) error {
			var err error
			n, err = t.exec(ctx, `DELETE FROM alert_groups WHERE (receiver, grp) IN (SELECT g.receiver, g.grp FROM alert_groups g WHERE `+idle+old+` LIMIT ?)`, pruneAtOnce)
			return err
		})
		if err != nil || n < pruneAtOnce {
			return err
		}
	}
}
