package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// backend is all in which the databases differ; every other line of this package
// runs on both.
type backend struct {
	// name is the folder of the migrations.
	name string
	// numbered says that a placeholder is $1, not ?.
	numbered bool
	// now is the database's clock in microseconds, as an expression.
	now string
	// begin is run first in a transaction that must have no other writer beside
	// it, in whatever process; join is for one that others may run beside. Each
	// returns the transaction's id, "" if it has none.
	begin, join string
	// lower makes the letters of ASCII in a column small, and no others.
	lower string
	// within is the condition that a lock's key has some bytes in it.
	within string
	// share is put behind a SELECT of a row that must not change until the end of
	// the transaction; skip behind one of rows that others may be working on.
	share, skip string
	// known is a query with a row if there is a table schema_version.
	known string
	// bytes is a query of how much room the database takes.
	bytes string
	// atOnce is how many rows one INSERT writes: where each is a round trip, many.
	atOnce int
	// columns says that rows go as one list for each column.
	columns bool
	// number is the type of whole numbers.
	number string
	// script are arguments that let one Exec run several statements.
	script []any
	// explain says what an error of the driver means; nil for another's error.
	explain func(s *Store, err error) *Error
}

// text returns a query of ours, written with ?, as the database wants it. No
// query of ours has a question mark in a literal.
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

// pool is a database that is read, or in which transactions begin.
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
	// outboxChanged says that notifications or groups became due.
	outboxChanged bool
	// trail is how long the audit trail is with what was added; 0: nothing was.
	trail int64
}

func (t *tx) database() *backend { return t.on }

func (t *tx) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, t.on.text(query), args...)
}

func (t *tx) row(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, t.on.text(query), args...)
}

// exec returns how many rows it changed.
func (t *tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(ctx, t.on.text(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert writes rows with few round trips; tail stands behind the values. All
// values of a column are of one type.
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

// byColumn turns rows into one list for each column, and names their types.
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

// marks are n placeholders.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// latest collects rows to be written. One statement cannot write a row twice: of
// those with the same key the last counts.
type latest[K comparable] struct {
	at   map[K]int
	rows [][]any
}

func (l *latest[K]) put(key K, row ...any) {
	if i, twice := l.at[key]; twice {
		l.rows[i] = row
		return
	}
	if l.at == nil {
		l.at = map[K]int{}
	}
	l.at[key] = len(l.rows)
	l.rows = append(l.rows, row)
}

// querier is what a pool and a transaction have in common.
type querier interface {
	database() *backend
	query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	row(ctx context.Context, query string, args ...any) *sql.Row
}

// rowScanner is what sql.Row and sql.Rows have in common.
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
