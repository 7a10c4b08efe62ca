package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// pruneAtOnce is how many rows one transaction deletes, so that other writers run in
// between.
const pruneAtOnce = 1000

// ActionPrune is the action of audit entries about deleted entries.
const ActionPrune = "audit.prune"

// PruneHistory deletes the history of locks that were last seen before the given time (the
// servers' clock), for all targets, and returns the number of rows. They belong to targets
// that are no longer swept.
func (s *Store) PruneHistory(ctx context.Context, before time.Time) (int64, error) {
	return s.prune(ctx, "prune history",
		`DELETE FROM history WHERE (target, db, lock_key) IN (SELECT target, db, lock_key FROM history WHERE last_seen < ? LIMIT ?)`, micros(before))
}

// PruneHolds deletes the slots that began before the given time, for all targets, and
// returns the number of rows.
func (s *Store) PruneHolds(ctx context.Context, before time.Time) (int64, error) {
	return s.prune(ctx, "prune holds",
		`DELETE FROM holds WHERE (target, class, slot) IN (SELECT target, class, slot FROM holds WHERE slot < ? LIMIT ?)`, micros(before))
}

// PruneMessages deletes messages that were delivered longer ago than delivered, and dead
// letters older than dead, by the database's clock.
func (s *Store) PruneMessages(ctx context.Context, delivered, dead time.Duration) (int64, error) {
	var total int64
	for _, c := range []struct {
		state MessageState
		age   time.Duration
	}{{MessageDelivered, delivered}, {MessageDead, dead}} {
		n, err := s.prune(ctx, "prune messages",
			`DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE state = ? AND done_at < `+s.on.now+` - ? LIMIT ?)`,
			string(c.state), c.age.Microseconds())
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// PruneRequests deletes requests that became final before the given time, with their
// decisions, and returns their number. Their audit entries are kept.
func (s *Store) PruneRequests(ctx context.Context, before time.Time) (int64, error) {
	var total int64
	for {
		var n int64
		err := s.inWrite(ctx, "prune requests", func(ctx context.Context, t *tx) error {
			const old = `SELECT id FROM requests WHERE finished_at > 0 AND finished_at < ? AND state NOT IN ('pending', 'approved', 'executing') ORDER BY n LIMIT ?`
			if _, err := t.exec(ctx, `DELETE FROM decisions WHERE request_id IN (`+old+`)`, micros(before), pruneAtOnce); err != nil {
				return err
			}
			var err error
			n, err = t.exec(ctx, `DELETE FROM requests WHERE id IN (`+old+`)`, micros(before), pruneAtOnce)
			return err
		})
		total += n
		if err != nil || n < pruneAtOnce {
			return total, err
		}
	}
}

// PruneEntries deletes the oldest audit entries, from before the given time, and returns
// their number. The last deleted place of the chain is kept beside its head, and each step
// is an audit entry itself. To keep the trail for longer, export it first with
// [Store.EachEntry].
func (s *Store) PruneEntries(ctx context.Context, before time.Time) (int64, error) {
	var total int64
	for {
		var n int64
		err := s.inWrite(ctx, "prune audit trail", func(ctx context.Context, t *tx) error {
			var err error
			n, err = pruneEntries(ctx, t, before)
			return err
		})
		total += n
		if err != nil || n < pruneAtOnce {
			return total, err
		}
	}
}

// pruneEntries deletes the next entries of one transaction.
func pruneEntries(ctx context.Context, t *tx, before time.Time) (int64, error) {
	head, base, err := ends(ctx, t)
	if err != nil {
		return 0, err
	}
	// The clock may have been set back: an older entry after a newer one is kept.
	var young sql.NullInt64
	if err := t.row(ctx, `SELECT MIN(seq) FROM entries WHERE at >= ?`, micros(before)).Scan(&young); err != nil {
		return 0, err
	}
	last := min(head.Seq, base.Seq+pruneAtOnce)
	if young.Valid {
		last = min(last, young.Int64-1)
	}
	if last <= base.Seq {
		return 0, nil
	}
	to := Checkpoint{Seq: last}
	err = t.row(ctx, `SELECT hash FROM entries WHERE seq = ?`, last).Scan(&to.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, &ChainError{Seq: last, Problem: "it is missing; nothing is deleted from a broken trail"}
	}
	if err != nil {
		return 0, err
	}
	n, err := t.exec(ctx, `DELETE FROM entries WHERE seq <= ?`, last)
	if err != nil {
		return 0, err
	}
	if n != last-base.Seq {
		return 0, &ChainError{Seq: base.Seq + 1, Problem: fmt.Sprintf("%d entries are expected and %d are there; nothing is deleted from a broken trail", last-base.Seq, n)}
	}
	if _, err := t.exec(ctx, `UPDATE entries_head SET base_seq = ?, base_hash = ? WHERE id = 1`, to.Seq, to.Hash); err != nil {
		return 0, err
	}
	detail, err := json.Marshal(map[string]any{"from": base.Seq + 1, "through": to.Seq, "hash": to.Hash})
	if err != nil {
		return 0, err
	}
	return n, appendEntries(ctx, t, []locksteward.Entry{{
		At: time.Now(), Actor: "agent", Action: ActionPrune, Outcome: "done", Detail: detail,
		Reason: "older than " + before.UTC().Format(time.RFC3339),
	}})
}

// prune runs a DELETE, whose last argument is the maximum number of rows, until it finds no
// more.
func (s *Store) prune(ctx context.Context, op, query string, args ...any) (int64, error) {
	args = append(args, pruneAtOnce)
	var total int64
	for {
		var n int64
		err := s.inOwn(ctx, op, func(ctx context.Context, t *tx) error {
			var err error
			n, err = t.exec(ctx, query, args...)
			return err
		})
		total += n
		if err != nil || n < pruneAtOnce {
			return total, err
		}
	}
}
