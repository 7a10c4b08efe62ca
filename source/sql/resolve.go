package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// record is what is known of a request.
type record struct {
	done    bool // outcome says what it did
	outcome source.Outcome
	// transaction is one whose commit was not answered, "" if its database names none; sent says that a
	// commit was sent, or a session was asked to end.
	transaction string
	sent        bool
	withdrawn   bool
}

// maxRecords bounds the requests that are remembered.
const maxRecords = 10_000

// record returns the record of a request; first says that it was made now.
func (r *Releaser) record(id string) (rec *record, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec := r.records[id]; rec != nil {
		return rec, false
	}
	if len(r.order) >= maxRecords {
		delete(r.records, r.order[0])
		r.order = r.order[1:]
	}
	rec = new(record)
	r.records[id] = rec
	r.order = append(r.order, id)
	return rec, true
}

func (r *Releaser) finish(rec *record, out source.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.done, rec.outcome = true, out
}

// again is the release of a request that ran before or runs.
func (r *Releaser) again(ctx context.Context, req locksteward.Request, rec *record) (source.Outcome, error) {
	r.mu.Lock()
	done, withdrawn := rec.done, rec.withdrawn
	r.mu.Unlock()
	if withdrawn && !done {
		return source.Failed("it was withdrawn before"), nil
	}
	return r.Resolve(ctx, req)
}

// Resolve implements [source.Releaser]. Without a record of its own it goes by the lock: a hold that
// is as it was has not been released.
func (r *Releaser) Resolve(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	rec, _ := r.record(req.ID)
	r.mu.Lock()
	if rec.done {
		defer r.mu.Unlock()
		out := rec.outcome
		if out.ConfirmedBy != "" {
			out.ConfirmedBy = source.ConfirmedByRecord
		}
		return out, nil
	}
	rec.withdrawn = true
	transaction, sent := rec.transaction, rec.sent
	r.mu.Unlock()
	var out source.Outcome
	err := r.with(ctx, func(ctx context.Context, conn *sql.Conn) error {
		var err error
		out, err = r.resolve(ctx, conn, req, transaction, sent)
		return err
	})
	if err != nil {
		return source.Outcome{}, fmt.Errorf("resolve release: %s", r.Explain(err))
	}
	r.finish(rec, out)
	return out, nil
}

var errRuns = errors.New("the release still runs on the server; wait until its statement timeout")

func (r *Releaser) resolve(ctx context.Context, conn *sql.Conn, req locksteward.Request, transaction string, sent bool) (source.Outcome, error) {
	if transaction != "" {
		done, err := r.dialect.committed(ctx, conn, transaction)
		switch {
		case err != nil:
			return source.Outcome{}, err
		case done:
			return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByRecord}, nil
		}
		return source.Failed("its transaction was rolled back: it is not carried out and is withdrawn"), nil
	}
	runs, err := r.dialect.runs(ctx, conn, req.ID)
	if err != nil {
		return source.Outcome{}, err
	}
	if runs {
		return source.Outcome{}, errRuns
	}
	now, err := r.lookAt(ctx, conn, req.Evidence.Key)
	if err != nil {
		return source.Outcome{}, err
	}
	same := now.hold != nil && len(source.Differences(req.Evidence, now.evidence(req.Evidence))) == 0
	switch {
	case sent && same && now.part.table == nil:
		return source.Unknown("the session may have been asked to end, and still holds the lock"), nil
	case same && req.Evidence.Identity != locksteward.IdentityNone:
		return source.Failed("it was not carried out and is withdrawn; the lock is still held"), nil
	case same:
		return source.Unknown("the database has no record of it, and this hold cannot be distinguished from the next one of that name"), nil
	}
	return source.Unknown("the database has no record of it, and the lock is not as it was"), nil
}
