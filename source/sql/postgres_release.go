package sqlsource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/locksteward/locksteward/source"
)

// terminate ends the backend that has exactly one hold: the same process, started at the same
// moment, that still has the lock. OFFSET 0 has the comparison made first.
const terminate = `SELECT pg_terminate_backend(s.pid) FROM (
	SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
	WHERE a.pid = $1 AND (extract(epoch FROM a.backend_start) * 1000000)::bigint = $2
		AND l.locktype = 'advisory' AND l.granted AND l.database = a.datid AND a.datname = current_database()
		AND l.classid::bigint = $3 AND l.objid::bigint = $4 AND (l.objsubid = 2) = $5 AND l.mode = $6
	LIMIT 1 OFFSET 0) s`

const backendIsThere = `SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2`

// errStillThere is a session that was asked to end and still works.
var errStillThere = errors.New("the session was asked to end and has not ended yet")

func (r *advisoryRow) args() []any {
	mode := "ExclusiveLock"
	if r.shared {
		mode = "ShareLock"
	}
	class, obj := int64(uint64(r.key.bigint)>>32), int64(uint32(r.key.bigint))
	return []any{r.pid, r.start, class, obj, r.key.isDouble, mode}
}

// endSession implements dialect.
func (postgres) endSession(ctx context.Context, db querier, _ state, h *hold) (sent bool, err error) {
	r, ok := h.session.(*advisoryRow)
	if !ok || r.pid == 0 || !r.visible {
		return false, nil
	}
	rows, err := db.QueryContext(ctx, terminate, r.args()...)
	if err != nil {
		return false, fmt.Errorf("end the session: %w", err)
	}
	for rows.Next() {
		sent = true
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || !sent {
		return sent, err
	}
	for {
		var there bool
		if err := db.QueryRowContext(ctx, backendIsThere, r.pid, r.start).Scan(&there); err != nil || !there {
			return true, err
		}
		if source.Sleep(ctx, 5*time.Millisecond) != nil {
			return true, errStillThere
		}
	}
}

// endsWith implements dialect.
func (postgres) endsWith(_ state, h *hold) (statement string, args []string) {
	r, ok := h.session.(*advisoryRow)
	if !ok {
		return "", nil
	}
	for _, a := range r.args() {
		args = append(args, fmt.Sprint(a))
	}
	return terminate, args
}

// name implements dialect.
func (postgres) name(ctx context.Context, db querier, requestID string) error {
	_, err := db.ExecContext(ctx, `SELECT set_config('application_name', $1, false)`, applicationName(requestID))
	return err
}

// applicationName is as long as PostgreSQL keeps it.
func applicationName(requestID string) string {
	name := "locksteward " + strconv.QuoteToASCII(requestID)
	return name[:min(len(name), 63)]
}

// runs implements dialect.
func (postgres) runs(ctx context.Context, db querier, requestID string) (bool, error) {
	var there bool
	err := db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()`, applicationName(requestID)).Scan(&there)
	return there, err
}

// transaction implements dialect.
func (postgres) transaction(ctx context.Context, tx querier) (string, error) {
	var id string
	err := tx.QueryRowContext(ctx, `SELECT pg_current_xact_id()::text`).Scan(&id)
	return id, err
}

// committed implements dialect: the server keeps what became of a transaction for long.
func (postgres) committed(ctx context.Context, db querier, transaction string) (bool, error) {
	for {
		var status *string
		if err := db.QueryRowContext(ctx, `SELECT pg_xact_status($1::text::xid8)`, transaction).Scan(&status); err != nil {
			return false, err
		}
		switch {
		case status == nil:
			return false, errors.New("the server does not know any more what became of the transaction")
		case *status != "in progress":
			return *status == "committed", nil
		}
		if err := source.Sleep(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}
