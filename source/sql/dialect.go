package sqlsource

import (
	"context"
	"database/sql"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// dialect is what differs between databases.
type dialect interface {
	// open returns a pool for one login, without I/O, and the address of the target:
	// HOST:PORT/DATABASE. Only a pool that writes may change anything.
	open(login source.Login, timeout time.Duration, writes bool) (db *sql.DB, addr string, err error)
	// state reads what the server is now.
	state(ctx context.Context, db querier) (state, error)
	// prefix begins the names of locks that end with a session.
	prefix() string
	// sessionLocks reads at most limit of them. Where the server lists none, it is asked for those of
	// names, which are computed on demand.
	sessionLocks(ctx context.Context, db querier, st state, names func() []string, limit int, digest locksteward.DigestKey) (snapshot, error)
	// addrs returns the addresses from which clients are connected, by how many sessions of each.
	addrs(ctx context.Context, db querier) (map[string]int, error)
	// endSession ends the session that has exactly this hold, and returns when it has ended. Sent is
	// false if there was none: nothing happened then.
	endSession(ctx context.Context, db querier, st state, h *hold) (sent bool, err error)
	// runs reports whether an earlier connection of a request still runs.
	runs(ctx context.Context, db querier, requestID string) (bool, error)
	// name names a connection after the request that it is for.
	name(ctx context.Context, db querier, requestID string) error
	// transaction returns the id of the transaction that wrote something; "" if it cannot be asked
	// for later. Committed reports whether that one was committed; an error if it is not known.
	transaction(ctx context.Context, tx querier) (string, error)
	committed(ctx context.Context, db querier, transaction string) (bool, error)
	// relations returns the tables with any of these names (in lower case), in all schemas.
	relations(ctx context.Context, db querier, tables []string) ([]relation, error)

	// quote returns an identifier for a statement, param its parameter number n from 1 on.
	quote(name string) string
	param(n int) string
	// text is an expression that has the value of a column as text.
	text(c column) string
	// micros is an expression for a time in µs since 1970, null for none and infinity; kind is that of expr.
	micros(expr string, kind kind) string
	// now is an expression for the time of the statement, of the kind of a column or in µs (kindNumber).
	now(kind kind) string
	// version is an expression for the version of a row, another one after each change; "" if there is none.
	version() string
	// same compares two values of which both may be null.
	same(a, b string) string
	// searches says that a release also compares a column of the lock's name as it is, so that an index
	// finds the row.
	searches(c column) bool

	// explain says in one sentence what an error of the database means; "" if it does not know.
	explain(err error) string
	// limits are the reasons why something cannot be done with a session lock.
	limits(hold locksteward.Evidence) source.Limits
	// endsWith is the statement that ends the session of a hold, for people.
	endsWith(st state, h *hold) (statement string, args []string)
	// rights are the statements that grant the least rights on tables, to read and to release; note
	// is for people.
	rights(st state, tables []*lockTable, note string) string
	// unseen are sentences that say what cannot be seen, and the remedy.
	unseen(st state) []string
	// mayEnd is which right is missing to end sessions, with the remedy; "" for none. MayFree reports
	// whether rows of a table may be freed.
	mayEnd(ctx context.Context, db querier, st state) (missing string, err error)
	mayFree(ctx context.Context, db querier, t *lockTable) (bool, error)
	// versionText is the server's version for people.
	versionText(st state) string
	// denied says that an error means that a right is missing, so that nothing was done.
	denied(err error) bool
	// missing says that an error means that a table or column is not there any more.
	missing(err error) bool
}

// kind is the kind of a column's values.
type kind int

const (
	kindOther kind = iota
	kindText
	kindNumber
	kindBool
	kindTime      // with a zone
	kindLocalTime // without
)

// relation is a table in the database.
type relation struct {
	schema, table string
	readable      bool
	columns       []column
	// partly: there may be columns beside these.
	partly bool
	// fixed is why no row of it is changed; "" if they can be.
	fixed string
}

type column struct {
	name string
	typ  string // as the database calls it
	kind kind
	// coarse says that two moments of work may have the same time in it.
	coarse bool
}

// state is what a server is at a moment.
type state struct {
	at      time.Time
	version int // such as 150018
	// database is the name of the one that is read.
	database string
	// readOnly is why nothing can be written, "" if it can.
	readOnly string
	// sessions: the sessions of other users can be seen in full.
	sessions bool
	mysql    mysqlState // of MySQL and MariaDB
}

// snapshot is what one read of a part saw.
type snapshot struct {
	at    time.Time
	holds []hold
}

// hold is one lock as it was read.
type hold struct {
	obs     locksteward.Observation // but for target, database, node and class
	waiters []locksteward.Waiter
	// row are the columns of a row as text, in the order of lockTable.compared; version is its
	// version and holder who holds it, as the row says.
	row     []sql.NullString
	version sql.NullString
	holder  string
	// session is what its dialect knows of the session of a session lock.
	session any
}
