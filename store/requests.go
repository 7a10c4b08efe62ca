package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Written holds the audit entries of one transaction, and the request that they report.
type Written struct {
	After   *locksteward.Request // after the change; nil if they report no request
	Entries []locksteward.Entry
}

// Composer returns the messages about something that is written. It runs inside the
// transaction: it must be quick and must not call the store.
type Composer func(Written) []Message

// Compose sets the function that adds messages to each transaction with audit entries, so
// that no change of a request can omit them. It is called once, before the first change.
func (s *Store) Compose(fn Composer) { s.compose.Store(&fn) }

// CreateRequest inserts req with its audit entries in one transaction. If another request
// is open for the same target, db and key, onOpen decides in the same transaction: it makes
// that one final and returns the entries about it, or returns an error, which
// CreateRequest returns without writing anything. Without an entry the error is
// [ErrNoEntry].
func (s *Store) CreateRequest(ctx context.Context, req locksteward.Request, entries []locksteward.Entry,
	onOpen func(open *locksteward.Request) ([]locksteward.Entry, error),
) error {
	return s.inWrite(ctx, "create request", func(ctx context.Context, t *tx) error {
		return s.createRequest(ctx, t, req, entries, onOpen)
	})
}

// CreateRequests is [Store.CreateRequest] for several requests: all are written in one
// transaction, or none. count is called first and may change list; its argument recent is
// [Store.CountRecent] in the same transaction, beside which no other process writes a
// request. entries returns the audit entries of a request.
func (s *Store) CreateRequests(ctx context.Context, list []locksteward.Request,
	count func(recent func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error)) error,
	entries func(locksteward.Request) []locksteward.Entry,
	onOpen func(open *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error),
) error {
	return s.patient(len(list)*rowsOfRequest).inWrite(ctx, "create requests", func(ctx context.Context, t *tx) error {
		err := count(func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error) {
			return countRecent(ctx, t, since, most, counts)
		})
		if err != nil {
			return err
		}
		for _, r := range list {
			err := s.createRequest(ctx, t, r, entries(r), func(open *locksteward.Request) ([]locksteward.Entry, error) { return onOpen(open, r) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// rowsOfRequest is how many rows one of many requests writes, for the timeout.
const rowsOfRequest = 10

func (s *Store) createRequest(ctx context.Context, t *tx, req locksteward.Request, entries []locksteward.Entry,
	onOpen func(open *locksteward.Request) ([]locksteward.Entry, error),
) error {
	if err := s.leased(ctx, t, req.Evidence.Target); err != nil {
		return err
	}
	var id string
	err := t.row(ctx,
		`SELECT id FROM requests WHERE target = ? AND db = ? AND lock_key = ? AND state IN ('pending', 'approved', 'executing')`,
		text(req.Evidence.Target), req.Evidence.DB, bytesOf(req.Evidence.Key)).Scan(&id)
	switch {
	case err == nil:
		if _, err := s.changeRequest(ctx, t, id, onOpen); err != nil {
			return err
		}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("create request %s: %w", req.ID, ErrNoEntry)
	}
	if err := insertRequest(ctx, t, req); err != nil {
		return err
	}
	return s.written(ctx, t, Written{After: &req, Entries: entries})
}

// UpdateRequest reads a request, lets change alter its state, outcome, times and
// decisions, and writes it back with the audit entries that change returned, all in one
// transaction. If change fails, its error is returned unchanged and nothing is written.
// Fields that are fixed at the creation are not written; decisions can only be added. An
// unknown ID is locksteward.ErrNotFound; a change of state or decisions without an entry is
// [ErrNoEntry].
func (s *Store) UpdateRequest(ctx context.Context, id string,
	change func(*locksteward.Request) ([]locksteward.Entry, error),
) (locksteward.Request, error) {
	return s.DecideRequest(ctx, id, func(r *locksteward.Request, _ func(time.Time) ([]locksteward.Request, error)) ([]locksteward.Entry, error) {
		return change(r)
	})
}

// DecideRequest is [Store.UpdateRequest] for a change that depends on other requests: acts
// is [Store.ListActs] in the same transaction, beside which no other process writes a
// request.
func (s *Store) DecideRequest(ctx context.Context, id string,
	change func(r *locksteward.Request, acts func(since time.Time) ([]locksteward.Request, error)) ([]locksteward.Entry, error),
) (locksteward.Request, error) {
	var out locksteward.Request
	err := s.inWrite(ctx, "update request", func(ctx context.Context, t *tx) error {
		var err error
		out, err = s.changeRequest(ctx, t, id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
			return change(r, func(since time.Time) ([]locksteward.Request, error) { return listActs(ctx, t, since) })
		})
		return err
	})
	if err != nil {
		return locksteward.Request{}, err
	}
	return out, nil
}

func (s *Store) changeRequest(ctx context.Context, t *tx, id string,
	change func(*locksteward.Request) ([]locksteward.Entry, error),
) (locksteward.Request, error) {
	before, err := selectRequest(ctx, t, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	if err := s.leased(ctx, t, before.Evidence.Target); err != nil {
		return locksteward.Request{}, err
	}
	after := before
	after.Decisions = append([]locksteward.Decision(nil), before.Decisions...)
	entries, err := change(&after)
	if err != nil {
		return locksteward.Request{}, err
	}
	switch moved := after.State != before.State; {
	case before.State.Final() && moved:
		return locksteward.Request{}, fmt.Errorf("request %s is %s, which is final: %w", id, before.State, locksteward.ErrConflict)
	case len(after.Decisions) < len(before.Decisions):
		return locksteward.Request{}, fmt.Errorf("update request %s: decisions cannot be taken back", id)
	case len(entries) == 0 && (moved || len(after.Decisions) > len(before.Decisions)):
		return locksteward.Request{}, fmt.Errorf("update request %s: %w", id, ErrNoEntry)
	}
	_, err = t.exec(ctx,
		`UPDATE requests SET state = ?, expires_at = ?, approved_until = ?, finished_at = ?, outcome = ?, waiters_woken = ? WHERE id = ?`,
		string(after.State), micros(after.ExpiresAt), micros(after.ApprovedUntil), micros(after.FinishedAt),
		text(after.Outcome), after.WaitersWoken, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	for n := len(before.Decisions); n < len(after.Decisions); n++ {
		if err := insertDecision(ctx, t, id, n, after.Decisions[n]); err != nil {
			return locksteward.Request{}, err
		}
	}
	written, err := selectRequest(ctx, t, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	return written, s.written(ctx, t, Written{After: &written, Entries: entries})
}

func insertRequest(ctx context.Context, t *tx, r locksteward.Request) error {
	evidence, err := encodeEvidence(r.Evidence)
	if err != nil {
		return fmt.Errorf("encode evidence: %w", err)
	}
	var n int64
	if err := t.row(ctx, `SELECT COALESCE(MAX(n), 0) + 1 FROM requests`).Scan(&n); err != nil {
		return err
	}
	err = t.insert(ctx, "requests", requestColumns+", n", "", [][]any{{
		r.ID, string(r.State), text(r.Evidence.Target), r.Evidence.DB, bytesOf(r.Evidence.Key), evidence, r.EvidenceHash,
		text(r.Requester), text(r.Reason), micros(r.CreatedAt), micros(r.ExpiresAt), micros(r.ApprovedUntil), micros(r.FinishedAt),
		text(r.Outcome), r.WaitersWoken, n,
	}})
	if err != nil {
		return err
	}
	for n, d := range r.Decisions {
		if err := insertDecision(ctx, t, r.ID, n, d); err != nil {
			return err
		}
	}
	return nil
}

func insertDecision(ctx context.Context, t *tx, id string, n int, d locksteward.Decision) error {
	return t.insert(ctx, "decisions", "request_id, n, decided_by, approve, reason, decided_at, evidence_hash", "", [][]any{
		{id, n, text(d.By), number(d.Approve), text(d.Reason), micros(d.At), d.EvidenceHash},
	})
}

const requestColumns = "id, state, target, db, lock_key, evidence, evidence_hash, requester, reason, " +
	"created_at, expires_at, approved_until, finished_at, outcome, waiters_woken"

// selectRequest returns one request with its decisions, or ErrNotFound.
func selectRequest(ctx context.Context, q querier, id string) (locksteward.Request, error) {
	r, err := scanRequest(q.row(ctx, `SELECT `+requestColumns+` FROM requests WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return locksteward.Request{}, fmt.Errorf("request %q: %w; list the requests to see their ids", id, locksteward.ErrNotFound)
	}
	if err != nil {
		return locksteward.Request{}, err
	}
	one := []locksteward.Request{r}
	err = readDecisions(ctx, q, one)
	return one[0], err
}

func scanRequest(row rowScanner) (locksteward.Request, error) {
	var r locksteward.Request
	var state, target, evidence string
	var db int
	var key []byte
	var created, expires, approvedUntil, finished int64
	err := row.Scan(&r.ID, &state, &target, &db, &key, &evidence, &r.EvidenceHash, &r.Requester, &r.Reason,
		&created, &expires, &approvedUntil, &finished, &r.Outcome, &r.WaitersWoken)
	if err != nil {
		return r, err
	}
	r.State = locksteward.RequestState(state)
	r.CreatedAt, r.ExpiresAt = fromMicros(created), fromMicros(expires)
	r.ApprovedUntil, r.FinishedAt = fromMicros(approvedUntil), fromMicros(finished)
	if r.Evidence, err = decodeEvidence(evidence, target, db, string(key)); err != nil {
		return r, fmt.Errorf("decode evidence of request %q: %w", r.ID, err)
	}
	return r, nil
}

// decisionsAtOnce is for how many requests one query reads the decisions.
const decisionsAtOnce = 200

// readDecisions fills in the decisions of requests.
func readDecisions(ctx context.Context, q querier, list []locksteward.Request) error {
	at := make(map[string]*locksteward.Request, min(len(list), decisionsAtOnce))
	for some := range slices.Chunk(list, decisionsAtOnce) {
		clear(at)
		ids := make([]any, len(some))
		for i := range some {
			ids[i], at[some[i].ID] = some[i].ID, &some[i]
		}
		rows, err := q.query(ctx,
			`SELECT request_id, decided_by, approve, reason, decided_at, evidence_hash FROM decisions WHERE request_id IN (`+marks(len(ids))+`) ORDER BY request_id, n`, ids...)
		err = each(rows, err, func(row rowScanner) error {
			var id string
			var d locksteward.Decision
			var decided int64
			if err := row.Scan(&id, &d.By, &d.Approve, &d.Reason, &decided, &d.EvidenceHash); err != nil {
				return err
			}
			d.At = fromMicros(decided)
			at[id].Decisions = append(at[id].Decisions, d)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
