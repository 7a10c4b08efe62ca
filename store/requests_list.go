package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

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
	return s.requests(ctx, requestFilter(states, target), limit, nil)
}

func requestFilter(states []locksteward.RequestState, target string) filter {
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
	return f
}

// RequestQuery selects requests; zero fields select all.
type RequestQuery struct {
	States    []locksteward.RequestState
	Target    string
	Class     string
	Requester string    // in any case
	Key       *string   // exact bytes
	Since     time.Time // made then or later
	// AfterAt and AfterID go on behind a request: its CreatedAt and ID. A zero AfterAt
	// begins with the newest.
	AfterAt time.Time
	AfterID string
	Limit   int // 0: 100; below 0: all
}

// QueryRequests returns requests with their decisions, newest first. Paging by the
// last request that was seen finds each of them once, however many are made
// meanwhile.
func (s *Store) QueryRequests(ctx context.Context, q RequestQuery) ([]locksteward.Request, error) {
	f := requestFilter(q.States, q.Target)
	if q.Key != nil {
		f.add("lock_key = ?", bytesOf(*q.Key))
	}
	if !q.Since.IsZero() {
		f.add("created_at >= ?", micros(q.Since))
	}
	if !q.AfterAt.IsZero() {
		f.add("(created_at < ? OR created_at = ? AND n < COALESCE((SELECT n FROM requests WHERE id = ?), 0))",
			micros(q.AfterAt), micros(q.AfterAt), q.AfterID)
	}
	if q.Class == "" && q.Requester == "" {
		return s.requests(ctx, f, q.Limit, nil)
	}
	// The class has no column, it is part of the evidence; and the databases do not
	// agree on what letters without case are.
	return s.requests(ctx, f, q.Limit, func(r locksteward.Request) bool {
		return (q.Class == "" || r.Evidence.Class == q.Class) && (q.Requester == "" || strings.EqualFold(r.Requester, q.Requester))
	})
}

// RequestsForKey returns the requests about one lock key, newest first; limit as
// in [Store.ListRequests].
func (s *Store) RequestsForKey(ctx context.Context, target string, db int, key string, limit int) ([]locksteward.Request, error) {
	var f filter
	f.add("target = ? AND db = ? AND lock_key = ?", target, db, bytesOf(key))
	return s.requests(ctx, f, limit, nil)
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

// oldestActed is longer than what lies between the making of a request and its end:
// it waits for at most a week, is approved for at most a day, and resolved in another.
const oldestActed = 10 * 24 * time.Hour

// CountRecent counts the requests that are open, and those that were released, or may
// have been, since a time, as far as counts accepts them. Their decisions are not
// read. It stops at most: in a storm the newest are enough.
func (s *Store) CountRecent(ctx context.Context, since time.Time, most int, counts func(locksteward.Request) bool) (n int, err error) {
	err = s.inSnapshot(ctx, "count recent requests", func(ctx context.Context, q querier) error {
		n, err = countRecent(ctx, q, since, most, counts)
		return err
	})
	return n, err
}

func countRecent(ctx context.Context, q querier, since time.Time, most int, counts func(locksteward.Request) bool) (int, error) {
	n := 0
	err := eachRecent(ctx, q, openOrActed, since, func(r locksteward.Request) error {
		if n >= most {
			return errEnough
		}
		if counts(r) {
			n++
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return n, nil
	}
	return n, err
}

// ListActs returns the requests that are approved or being carried out, and those that
// were released, or may have been, since a time, with their decisions, newest first: all
// of them, which release.max_per_hour bounds.
func (s *Store) ListActs(ctx context.Context, since time.Time) (out []locksteward.Request, err error) {
	err = s.inSnapshot(ctx, "list acts", func(ctx context.Context, q querier) error {
		out, err = listActs(ctx, q, since)
		return err
	})
	return out, err
}

func listActs(ctx context.Context, q querier, since time.Time) ([]locksteward.Request, error) {
	var out []locksteward.Request
	err := eachRecent(ctx, q, actedStates, since, func(r locksteward.Request) error {
		out = append(out, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := readDecisions(ctx, q, out); err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b locksteward.Request) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out, nil
}

// actedStates are those of requests that were carried out, may have been, just are, or
// are about to be.
var actedStates = []locksteward.RequestState{
	locksteward.RequestApproved, locksteward.RequestExecuting, locksteward.RequestReleased, locksteward.RequestUnknown,
}

// openOrActed are those too that wait for people.
var openOrActed = slices.Concat(actedStates, []locksteward.RequestState{locksteward.RequestPending})

// eachRecent reads the requests of some states, without their decisions: of final ones
// those that ended since a time. One state after the other, since each goes backwards
// through an index; the newest of a state first.
func eachRecent(ctx context.Context, q querier, states []locksteward.RequestState, since time.Time, fn func(locksteward.Request) error) error {
	for _, state := range states {
		f := requestFilter([]locksteward.RequestState{state}, "")
		if state.Final() {
			f.add("created_at >= ? AND finished_at >= ?", micros(since.Add(-oldestActed)), micros(since))
		}
		rows, err := q.query(ctx, `SELECT `+requestColumns+` FROM requests`+f.where()+` ORDER BY created_at DESC, n DESC`, f.args...)
		err = each(rows, err, func(row rowScanner) error {
			r, err := scanRequest(row)
			if err != nil {
				return err
			}
			return fn(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough rows")

// requests reads what a filter selects and keep, if set, lets pass.
func (s *Store) requests(ctx context.Context, f filter, limit int, keep func(locksteward.Request) bool) ([]locksteward.Request, error) {
	query := `SELECT ` + requestColumns + ` FROM requests` + f.where() + ` ORDER BY created_at DESC, n DESC`
	if limit == 0 {
		limit = defaultLimit
	}
	if limit > 0 && keep == nil {
		query += " LIMIT ?"
		f.args = append(f.args, limit)
	}
	var out []locksteward.Request
	// A request and its decisions are of the same moment.
	err := s.inSnapshot(ctx, "list requests", func(ctx context.Context, q querier) error {
		out = nil
		rows, err := q.query(ctx, query, f.args...)
		err = each(rows, err, func(row rowScanner) error {
			r, err := scanRequest(row)
			switch {
			case err != nil:
				return err
			case keep != nil && limit > 0 && len(out) == limit:
				return errEnough
			case keep == nil || keep(r):
				out = append(out, r)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		return readDecisions(ctx, q, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
