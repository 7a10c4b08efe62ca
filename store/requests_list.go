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
	// AfterAt and AfterID continue a list after a request: its CreatedAt and ID. A zero
	// AfterAt begins with the newest request.
	AfterAt time.Time
	AfterID string
	Limit   int // 0: 100; below 0: all
}

// QueryRequests returns requests with their decisions, newest first. Paging with AfterAt and
// AfterID returns each request once, also while others are created.
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
	// The class is part of the evidence and has no column, and the databases fold case
	// differently.
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

// maxRequestAge exceeds the time from the creation of a request to its end: it is pending
// for at most a week, approved for at most a day, and resolved within another.
const maxRequestAge = 10 * 24 * time.Hour

// CountRecent counts the requests that counts accepts among those that are open and those
// that were executed since a time, also with an unknown outcome. It does not read their
// decisions, and stops at most.
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

// ListActs returns all requests that are approved or executing, and those that were
// executed since a time, also with an unknown outcome, with their decisions, newest first.
// release.max_per_hour bounds their number.
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

// actedStates are the states of requests that were executed, may have been, or will be.
var actedStates = []locksteward.RequestState{
	locksteward.RequestApproved, locksteward.RequestExecuting, locksteward.RequestReleased, locksteward.RequestUnknown,
}

// openOrActed are actedStates and pending.
var openOrActed = slices.Concat(actedStates, []locksteward.RequestState{locksteward.RequestPending})

// eachRecent reads the requests of some states, without their decisions; of final states
// those that ended since a time. It reads state by state, since each query then follows an
// index, and the newest of a state first.
func eachRecent(ctx context.Context, q querier, states []locksteward.RequestState, since time.Time, fn func(locksteward.Request) error) error {
	for _, state := range states {
		f := requestFilter([]locksteward.RequestState{state}, "")
		if state.Final() {
			f.add("created_at >= ? AND finished_at >= ?", micros(since.Add(-maxRequestAge)), micros(since))
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

// errEnough stops the reading of rows.
var errEnough = errors.New("enough rows")

// requests returns the requests that f selects and keep, if set, accepts.
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
	// A snapshot, so that decisions match their request.
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
