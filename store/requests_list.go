package store

import (
	"context"
	"strings"

	"github.com/locksteward/locksteward"
)

// GetRequest returns a request with its decisions; an unknown id is
// locksteward.ErrNotFound.
func (s *Store) GetRequest(ctx context.Context, id string) (locksteward.Request, error) {
	r, err := selectRequest(ctx, s.read, id)
	return r, s.explain("read request", err)
}

// ListRequests returns requests with their decisions, newest first. No states
// and an empty target select all; limit 0 is 100, below 0 is no limit.
func (s *Store) ListRequests(ctx context.Context, states []locksteward.RequestState, target string, limit int) ([]locksteward.Request, error) {
	var where []string
	var args []any
	if len(states) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(states)), ", ")
		where = append(where, "state IN ("+marks+")")
		for _, state := range states {
			args = append(args, string(state))
		}
	}
	if target != "" {
		where = append(where, "target = ?")
		args = append(args, target)
	}
	return s.requests(ctx, where, args, limit)
}

// RequestsForKey returns the requests about one lock key, newest first; limit as
// in [Store.ListRequests].
func (s *Store) RequestsForKey(ctx context.Context, target string, db int, key string, limit int) ([]locksteward.Request, error) {
	return s.requests(ctx, []string{"target = ?", "db = ?", "lock_key = ?"}, []any{target, db, bytesOf(key)}, limit)
}

// CountRequests returns how many requests are in each state; states without a
// request are absent.
func (s *Store) CountRequests(ctx context.Context) (map[locksteward.RequestState]int, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT state, COUNT(*) FROM requests GROUP BY state`)
	if err != nil {
		return nil, s.explain("count requests", err)
	}
	defer rows.Close()
	out := map[locksteward.RequestState]int{}
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return nil, s.explain("count requests", err)
		}
		out[locksteward.RequestState(state)] = n
	}
	return out, s.explain("count requests", rows.Err())
}

func (s *Store) requests(ctx context.Context, where []string, args []any, limit int) ([]locksteward.Request, error) {
	if limit == 0 {
		limit = defaultLimit
	}
	query := `SELECT ` + requestColumns + ` FROM requests`
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	// rowid breaks ties of requests made within one microsecond.
	query += " ORDER BY created_at DESC, rowid DESC LIMIT ?"

	// One transaction: a request and its decisions are of the same moment.
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, s.explain("list requests", err)
	}
	defer tx.Rollback() //nolint:errcheck // a read has nothing to undo
	rows, err := tx.QueryContext(ctx, query, append(args, limit)...)
	if err != nil {
		return nil, s.explain("list requests", err)
	}
	defer rows.Close()
	var out []locksteward.Request
	for rows.Next() {
		r, err := scanRequest(rows)
		if err != nil {
			return nil, s.explain("list requests", err)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain("list requests", err)
	}
	for i := range out {
		if out[i].Decisions, err = selectDecisions(ctx, tx, out[i].ID); err != nil {
			return nil, s.explain("list requests", err)
		}
	}
	return out, nil
}
