package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward"
)

// CreateRequest inserts req with its audit entries in one transaction. If a
// request is open for the same target, db and key, onOpen decides in the same
// transaction: it either makes that one final and returns the entries about
// that, or returns the error that CreateRequest then returns, and nothing is
// written.
func (s *Store) CreateRequest(ctx context.Context, req locksteward.Request, entries []locksteward.Entry,
	onOpen func(open *locksteward.Request) ([]locksteward.Entry, error),
) error {
	return s.inWrite(ctx, "create request", func(tx *sql.Tx) error {
		var id string
		err := tx.QueryRowContext(ctx,
			`SELECT id FROM requests WHERE target = ? AND db = ? AND lock_key = ? AND state IN ('pending', 'approved', 'executing')`,
			req.Evidence.Target, req.Evidence.DB, bytesOf(req.Evidence.Key)).Scan(&id)
		switch {
		case err == nil:
			if _, err := changeRequest(ctx, tx, id, onOpen); err != nil {
				return err
			}
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if err := insertRequest(ctx, tx, req); err != nil {
			return err
		}
		return appendEntries(ctx, tx, entries)
	})
}

// UpdateRequest reads a request, lets change alter its state, outcome, times
// and decisions, and writes it back with the audit entries that change returned,
// all in one transaction. An error of change is returned as it is and nothing is
// written. What a request froze at its creation is not written again; decisions
// are only added. An unknown id is locksteward.ErrNotFound.
func (s *Store) UpdateRequest(ctx context.Context, id string,
	change func(*locksteward.Request) ([]locksteward.Entry, error),
) (locksteward.Request, error) {
	var out locksteward.Request
	err := s.inWrite(ctx, "update request", func(tx *sql.Tx) error {
		var err error
		out, err = changeRequest(ctx, tx, id, change)
		return err
	})
	if err != nil {
		return locksteward.Request{}, err
	}
	return out, nil
}

func changeRequest(ctx context.Context, tx *sql.Tx, id string,
	change func(*locksteward.Request) ([]locksteward.Entry, error),
) (locksteward.Request, error) {
	before, err := selectRequest(ctx, tx, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	after := before
	after.Decisions = append([]locksteward.Decision(nil), before.Decisions...)
	entries, err := change(&after)
	if err != nil {
		return locksteward.Request{}, err
	}
	if before.State.Final() && after.State != before.State {
		return locksteward.Request{}, fmt.Errorf("request %s is %s, which is final: %w", id, before.State, locksteward.ErrConflict)
	}
	if len(after.Decisions) < len(before.Decisions) {
		return locksteward.Request{}, fmt.Errorf("update request %s: decisions cannot be taken back", id)
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE requests SET state = ?, expires_at = ?, approved_until = ?, finished_at = ?, outcome = ?, waiters_woken = ? WHERE id = ?`,
		string(after.State), micros(after.ExpiresAt), micros(after.ApprovedUntil), micros(after.FinishedAt),
		after.Outcome, after.WaitersWoken, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	for n := len(before.Decisions); n < len(after.Decisions); n++ {
		if err := insertDecision(ctx, tx, id, n, after.Decisions[n]); err != nil {
			return locksteward.Request{}, err
		}
	}
	if err := appendEntries(ctx, tx, entries); err != nil {
		return locksteward.Request{}, err
	}
	return selectRequest(ctx, tx, id)
}

func insertRequest(ctx context.Context, tx *sql.Tx, r locksteward.Request) error {
	evidence, err := encodeEvidence(r.Evidence)
	if err != nil {
		return fmt.Errorf("encode evidence: %w", err)
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO requests (`+requestColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, string(r.State), r.Evidence.Target, r.Evidence.DB, bytesOf(r.Evidence.Key), evidence, r.EvidenceHash,
		r.Requester, r.Reason, micros(r.CreatedAt), micros(r.ExpiresAt), micros(r.ApprovedUntil), micros(r.FinishedAt),
		r.Outcome, r.WaitersWoken)
	if err != nil {
		return err
	}
	for n, d := range r.Decisions {
		if err := insertDecision(ctx, tx, r.ID, n, d); err != nil {
			return err
		}
	}
	return nil
}

func insertDecision(ctx context.Context, tx *sql.Tx, id string, n int, d locksteward.Decision) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO decisions (request_id, n, decided_by, approve, reason, decided_at, evidence_hash) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		id, n, d.By, d.Approve, d.Reason, micros(d.At), d.EvidenceHash)
	return err
}

const requestColumns = "id, state, target, db, lock_key, evidence, evidence_hash, requester, reason, " +
	"created_at, expires_at, approved_until, finished_at, outcome, waiters_woken"

// querier is what sql.DB and sql.Tx have in common.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// selectRequest returns one request with its decisions, or ErrNotFound.
func selectRequest(ctx context.Context, q querier, id string) (locksteward.Request, error) {
	r, err := scanRequest(q.QueryRowContext(ctx, `SELECT `+requestColumns+` FROM requests WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return locksteward.Request{}, fmt.Errorf("request %q: %w; list the requests to see their ids", id, locksteward.ErrNotFound)
	}
	if err != nil {
		return locksteward.Request{}, err
	}
	r.Decisions, err = selectDecisions(ctx, q, id)
	return r, err
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

func selectDecisions(ctx context.Context, q querier, id string) ([]locksteward.Decision, error) {
	rows, err := q.QueryContext(ctx,
		`SELECT decided_by, approve, reason, decided_at, evidence_hash FROM decisions WHERE request_id = ? ORDER BY n`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []locksteward.Decision
	for rows.Next() {
		var d locksteward.Decision
		var at int64
		if err := rows.Scan(&d.By, &d.Approve, &d.Reason, &at, &d.EvidenceHash); err != nil {
			return nil, err
		}
		d.At = fromMicros(at)
		out = append(out, d)
	}
	return out, rows.Err()
}
