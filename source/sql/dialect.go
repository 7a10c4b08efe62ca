package sqlsource

import (
	"context"
	"database/sql"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// dialect is what differs between databases.
type dialect interface {
	// open returns a pool for one login, without I/O, and the address of the target:
	// HOST:PORT/DATABASE. Only a pool that writes may change anything.
	open(login source.Login, timeout time.Duration, writes bool) (db *sql.DB, addr string, err error)
	// state reads what the server is now.
	state(ctx context.Context, db *sql.DB) (state, error)
	// sessionLocks reads at most limit locks that end with a session.
	sessionLocks(ctx context.Context, db *sql.DB, st state, limit int, digest locksteward.DigestKey) (snapshot, error)
	// addrs returns the addresses from which clients are connected, by how many sessions of each.
	addrs(ctx context.Context, db *sql.DB) (map[string]int, error)
	// relations returns the tables with any of these names (in lower case), in all schemas.
	relations(ctx context.Context, db *sql.DB, tables []string) ([]relation, error)

	// quote returns an identifier for a statement, param its parameter number n from 1 on.
	quote(name string) string
	param(n int) string
	// text is an expression that has the value of another as text.
	text(expr string) string
	// micros is an expression for a time in µs since 1970, null for none and infinity; kind is that of expr.
	micros(expr string, kind kind) string
	// now is an expression for the time of the statement, of the kind of a column or in µs (kindNumber).
	now(kind kind) string
	// version is an expression for the version of a row, another one after each change; "" if there is none.
	version() string
	// same compares two values of which both may be null.
	same(a, b string) string

	// explain says in one sentence what an error of the database means; "" if it does not know.
	explain(err error) string
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
}

type column struct {
	name string
	typ  string // as the database calls it
	kind kind
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
}
