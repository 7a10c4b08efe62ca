package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// backend holds everything in which the databases differ. All other code of this package
// runs on both.
type backend struct {
	// name is the name of the schema file.
	name string
	// numbered means that a placeholder is $1, not ?.
	numbered bool
	// now is an expression for the database's clock in microseconds.
	now string
	// begin is the first statement of a transaction that excludes all other writers, in all
	// processes; join that of one beside which others may run. Each returns the ID of the
	// transaction, "" if it has none.
	begin, join string
	// lower is a format that converts the ASCII letters of a column to lower case.
	lower string
	// within is the condition that the key of a lock contains some bytes.
	within string
	// share follows a SELECT of a row that must not change before the commit; skip follows
	// one of rows that others may have locked.
	share, skip string
	// hasSchema is a query with one row if there is a table schema_version.
	hasSchema string
	// bytes is a query for the size of the database.
	bytes string
	// atOnce is how many rows one INSERT writes: many where each is a round trip.
	atOnce int
	// columns means that rows are sent as one list per column.
	columns bool
	// number is the type of integers.
	number string
	// script are arguments with which one Exec runs several statements.
	script []any
	// explain explains an error of the driver; nil for other errors.
	explain func(s *Store, err error) *Error
}

// text returns query, written with ?, with the placeholders of the database. Queries must
// not have question marks in literals.
func (b *backend) text(query string) string {
	if !b.numbered {
		return query
	}
	var out strings.Builder
	n := 0
	for {
		before, rest, found := strings.Cut(query, "?")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		n++
		out.WriteByte('$')
		out.WriteString(strconv.Itoa(n))
		query = rest
	}
}

// pool is a pool of connections, for reading or for transactions.
type pool struct {
	db *sql.DB
	on *backend
}

func (p *pool) database() *backend { return p.on }

func (p *pool) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.db.QueryContext(ctx, p.on.text(query), args...)
}

func (p *pool) row(ctx context.Context, query string, args ...any) *sql.Row {
	return p.db.QueryRowContext(ctx, p.on.text(query), args...)
}

// tx is a transaction.
type tx struct {
	tx *sql.Tx
	on *backend
	// enqueued is set if the transaction added messages to the outbox.
	enqueued bool
	// trail is the length of the audit trail with the entries of this transaction; 0 if it
	// has none.
	trail int64
}

func (t *tx) database() *backend { return t.on }

func (t *tx) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, t.on.text(query), args...)
}

func (t *tx) row(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, t.on.text(query), args...)
}

// exec returns the number of rows that it changed.
func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(ctx, t.on.text(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert writes rows with few round trips; tail follows the values. All values of a column
// have one type.
func (t *tx) insert(ctx context.Context, table, columns, tail string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	if t.on.columns {
		for part := range slices.Chunk(rows, t.on.atOnce) {
			names, lists := byColumn(part)
			statement := fmt.Sprintf("INSERT INTO %s (%s) SELECT * FROM unnest(%s) %s", table, columns, names, tail)
			if _, err := t.tx.ExecContext(ctx, statement, lists...); err != nil {
				return err
			}
		}
		return nil
	}
	mark := "(" + marks(len(rows[0])) + ")"
	statement := func(n int) string {
		return t.on.text(fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s %s", table, columns, strings.Repeat(mark+", ", n-1), mark, tail))
	}
	if len(rows) > t.on.atOnce {
		full, err := t.tx.PrepareContext(ctx, statement(t.on.atOnce))
		if err != nil {
			return err
		}
		defer full.Close()
		for len(rows) >= t.on.atOnce {
			if _, err := full.ExecContext(ctx, slices.Concat(rows[:t.on.atOnce]...)...); err != nil {
				return err
			}
			rows = rows[t.on.atOnce:]
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := t.tx.ExecContext(ctx, statement(len(rows)), slices.Concat(rows...)...)
	return err
}

// byColumn turns rows into one list per column, and returns the types of the lists.
func byColumn(rows [][]any) (types string, lists []any) {
	var names []string
	for c := range rows[0] {
		name, list := "text[]", any(nil)
		switch rows[0][c].(type) {
		case int, int64:
			name, list = "bigint[]", column(rows, c, func(v any) int64 {
				if n, ok := v.(int); ok {
					return int64(n)
				}
				return v.(int64)
			})
		case []byte:
			name, list = "bytea[]", column(rows, c, func(v any) []byte { return v.([]byte) })
		default:
			list = column(rows, c, func(v any) string { return v.(string) })
		}
		names = append(names, fmt.Sprintf("$%d::%s", c+1, name))
		lists = append(lists, list)
	}
	return strings.Join(names, ", "), lists
}

func column[T any](rows [][]any, c int, of func(any) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = of(row[c])
	}
	return out
}

// marks returns n placeholders.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// latest collects rows for an INSERT, which cannot write a row twice: the last row of a key
// replaces the others.
type latest[K comparable] struct {
	at   map[K]int
	rows [][]any
}

func (l *latest[K]) put(key K, row ...any) {
	if i, exists := l.at[key]; exists {
		l.rows[i] = row
		return
	}
	if l.at == nil {
		l.at = map[K]int{}
	}
	l.at[key] = len(l.rows)
	l.rows = append(l.rows, row)
}

// querier is a pool or a transaction.
type querier interface {
	database() *backend
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	row(ctx context.Context, query string, args ...any) *sql.Row
}

// rowScanner is a sql.Row or sql.Rows.
type rowScanner interface{ Scan(dest ...any) error }

// each calls fn for every row and closes rows.
func each(rows *sql.Rows, err error, fn func(rowScanner) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
