package sqlsource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/source"
)

// mysqlKill ends the session that has exactly one lock, on the server that our own session has seen: one
// statement compares and kills. There is no session 0. The releaser has compared the server's start on
// this connection, which a restart would have ended.
const mysqlKill = `KILL CONNECTION IF(CONNECTION_ID() = %d AND IS_USED_LOCK(%s) = %d, %d, 0)`

// mysqlNoSession is the number of the error of a KILL of nobody.
const mysqlNoSession = 1094

func (l *userLock) kill(connection int64) string {
	return fmt.Sprintf(mysqlKill, connection, userLockName(l.name), l.id, l.id)
}

// endSession implements dialect.
func (mysqlDialect) endSession(ctx context.Context, db querier, st state, h *hold) (sent bool, err error) {
	l, ok := h.session.(*userLock)
	if !ok || !l.exact {
		return false, nil
	}
	if _, err := db.ExecContext(ctx, l.kill(st.mysql.connection)); mysqlNumber(err, mysqlNoSession) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("end the session: %w", err)
	}
	there := fmt.Sprintf("SELECT IS_USED_LOCK(%s) <=> %d", userLockName(l.name), l.id)
	for {
		var holds bool
		if err := db.QueryRowContext(ctx, there).Scan(&holds); err != nil || !holds {
			return true, err
		}
		if source.Sleep(ctx, 5*time.Millisecond) != nil {
			return true, errStillThere
		}
	}
}

// endsWith implements dialect.
func (mysqlDialect) endsWith(st state, h *hold) (statement string, args []string) {
	l, ok := h.session.(*userLock)
	if !ok {
		return "", nil
	}
	return l.kill(st.mysql.connection), nil
}

// requestName is the name of the user lock of a request's connection.
func requestName(requestID string) string {
	sum := sha256.Sum256([]byte(requestID))
	return fmt.Sprintf("%s%x", requestLock, sum[:16])
}

// name implements dialect: the connection takes a user lock, which ends with it.
func (mysqlDialect) name(ctx context.Context, db querier, requestID string) error {
	var got bool
	err := db.QueryRowContext(ctx, "SELECT RELEASE_ALL_LOCKS() >= 0 AND GET_LOCK(?, 0) = 1", requestName(requestID)).Scan(&got)
	if err == nil && !got {
		return errRuns
	}
	return err
}

// runs implements dialect.
func (mysqlDialect) runs(ctx context.Context, db querier, requestID string) (bool, error) {
	var there bool
	err := db.QueryRowContext(ctx, "SELECT COALESCE(IS_USED_LOCK(?) <> CONNECTION_ID(), FALSE)", requestName(requestID)).Scan(&there)
	return there, err
}

// transaction implements dialect: the server keeps no record of what became of one.
func (mysqlDialect) transaction(context.Context, querier) (string, error) { return "", nil }

// committed implements dialect.
func (mysqlDialect) committed(context.Context, querier, string) (bool, error) {
	return false, errors.New("the server has no record of its transactions")
}
