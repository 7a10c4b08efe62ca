package store

import (
	"context"

	"github.com/locksteward/locksteward"
)

// GetRequest returns a request with its decisions; an unknown id is
// locksteward.ErrNotFound.
func (s *Store) GetRequest(ctx context.Context, id string) (locksteward.Request, error) {
	var r locksteward.Request
	err := s.inRead(ctx, "read request", func(ctx context.Context, q querier) error {
		var err error
		r, err = selectRequest(ctx, q, id)
		return err
	})
	return r, err
}

// ListRequests returns requests with their decisions, newest first. No states
// and an empty target select all; limit 0 is 100, below 0 is no limit.
func (s *Store) ListRequests(ctx context.Context, states []locksteward.RequestState, target string, limit int) ([]locksteward.Request, error) {
	var f filter
	if len(states) > 0 {
		var args []any
		for _, state := range states {
			args = append(args, string(state))
		}
		f.add("state IN ("+marks(len(states))+")", args...)
	}
	if target != "" {
		f.add("target = ?", target)
	}
	return s.requests(ctx, f, limit)
}

// RequestsForKey returns the requests about one lock key, newest first; limit as
// in [Store.ListRequests].
func (s *Store) RequestsForKey(ctx context.Context, target string, db int, key string, limit int) ([]locksteward.Request, error) {
	var f filter
	f.add("target = ? AND db = ? AND lock_key = ?", target, db, bytesOf(key))
	return s.requests(ctx, f, limit)
}

// CountRequests returns how many requests are in each state; states without a
// request are absent.
func (s *Store) CountRequests(ctx context.Context) (map[locksteward.RequestState]int, error) {
	out := map[locksteward.RequestState]int{}
	err := s.inRead(ctx, "count requests", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx, `SELECT state, COUNT(*) FROM requests GROUP BY state`)
		return each(rows, err, func(row rowScanner) error {
			var state string
			var n int
			err := row.Scan(&state, &n)
			out[locksteward.RequestState(state)] = n
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) requests(ctx context.Context, f filter, limit int) ([]locksteward.Request, error) {
	query := `SELECT ` + requestColumns + ` FROM requests` + f.where() + ` ORDER BY created_at DESC, n DESC`
	if limit == 0 {
		limit = defaultLimit
	}
	if limit > 0 {
		query += " LIMIT ?"
		f.args = append(f.args, limit)
	}
	var out []locksteward.Request
	// A request and its decisions are of the same moment.
	err := s.inSnapshot(ctx, "list requests", func(ctx context.Context, q querier) error {
		rows, err := q.query(ctx, query, f.args...)
		err = each(rows, err, func(row rowScanner) error {
			r, err := scanRequest(row)
			out = append(out, r)
			return err
		})
		if err != nil {
			return err
		}
		for i := range out {
			if out[i].Decisions, err = selectDecisions(ctx, q, out[i].ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
