package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MySQL shows of the catalogue what a role has any right on. With the names in full it opens no
// other table.
const (
	mysqlTables  = `SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND LOWER(TABLE_NAME) IN (%s) ORDER BY TABLE_NAME LIMIT 1000`
	mysqlTable   = `SELECT TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`
	mysqlColumns = `SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COALESCE(DATETIME_PRECISION, 0), FIND_IN_SET('select', PRIVILEGES) > 0
	FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`
)

// transactional are the engines, in lower case, that can take back what a statement did.
var transactional = []string{"innodb", "rocksdb", "ndbcluster", "tokudb"}

// relations implements dialect: those of the database of the URL.
func (d mysqlDialect) relations(ctx context.Context, db querier, tables []string) ([]relation, error) {
	var database string
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	args := []any{database}
	for _, table := range tables {
		args = append(args, table)
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf(mysqlTables, strings.TrimSuffix(strings.Repeat("?, ", len(tables)), ", ")), args...)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []relation
	for rows.Next() {
		r := relation{schema: database}
		if err := rows.Scan(&r.table); err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	for i := range out {
		if err := d.columns(ctx, db, &out[i]); err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
	}
	return slices.DeleteFunc(out, func(r relation) bool { return len(r.columns) == 0 }), nil // views, and what is gone meanwhile
}

// columns reads those of a table, and what may be done with it; none of a view.
func (mysqlDialect) columns(ctx context.Context, db querier, r *relation) error {
	var typ, engine string
	err := db.QueryRowContext(ctx, mysqlTable, r.schema, r.table).Scan(&typ, &engine)
	if errors.Is(err, sql.ErrNoRows) || err == nil && typ != "BASE TABLE" && typ != "SYSTEM VERSIONED" {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.Contains(transactional, strings.ToLower(engine)) {
		r.fixed = "its engine " + engine + " has no transactions, so that a change of more than one row could not be undone"
	}
	rows, err := db.QueryContext(ctx, mysqlColumns, r.schema, r.table)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	r.readable = true
	for rows.Next() {
		var c column
		var data string
		var precision int
		var may bool
		if err := rows.Scan(&c.name, &data, &c.typ, &precision, &may); err != nil {
			return err
		}
		c.kind = mysqlKind(data, c.typ)
		c.coarse = precision < 6
		r.readable = r.readable && may
		r.partly = !r.readable // without the right, a part of the columns may be hidden
		r.columns = append(r.columns, c)
	}
	return rows.Err()
}

func mysqlKind(data, typ string) kind {
	switch strings.ToLower(data) {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "uuid":
		return kindText
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal":
		return kindNumber
	case "bit":
		if typ == "bit(1)" {
			return kindBool
		}
	case "timestamp":
		return kindTime
	case "datetime":
		return kindLocalTime
	}
	return kindOther
}
