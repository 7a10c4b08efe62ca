package sqlsource

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/locksteward/locksteward/source"
)

// postgres is the dialect of PostgreSQL 13 and later.
type postgres struct{}

// minPostgres is the oldest version that is read.
const minPostgres = 130000

// pingAfter is how long a connection may be idle before it is tried by an empty statement: the watch
// sends one each second anyway.
const pingAfter = 5 * time.Second

var errURL = errors.New("not a URL of PostgreSQL: write postgres://USER@HOST:PORT/DATABASE")

// open implements dialect.
func (postgres) open(login source.Login, timeout time.Duration, writes bool) (*sql.DB, string, error) {
	u, err := url.Parse(login.URL)
	if err != nil || strings.Trim(u.Path, "/") == "" {
		return nil, "", errURL // the parser's error may contain a password
	}
	cfg, err := pgx.ParseConfig(login.URL)
	if err != nil {
		return nil, "", errURL
	}
	if u.Host == "" && u.Query().Get("host") == "" {
		return nil, "", errURL // else the environment would say where
	}
	var encrypted *tls.Config
	if login.TLS != nil {
		encrypted = login.TLS.Clone()
		if encrypted.ServerName == "" {
			encrypted.ServerName = cfg.Host
		}
	} else if u.Query().Has("sslmode") {
		encrypted = cfg.TLSConfig
	}
	cfg.TLSConfig, cfg.Fallbacks = encrypted, nil
	if cfg.Password, _ = u.User.Password(); login.Password != nil {
		cfg.Password = ""
	}
	if login.Username != "" {
		cfg.User = login.Username
	}
	cfg.ConnectTimeout = timeout
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing is prepared: schemas change
	cfg.RuntimeParams = map[string]string{
		"application_name":  "locksteward",
		"client_encoding":   "UTF8",
		"search_path":       "pg_catalog",
		"TimeZone":          "UTC",
		"statement_timeout": milliseconds(timeout),
		// A table that a migration alters is read later: a reader in its queue would hold up others.
		"lock_timeout":                        milliseconds(min(timeout/4, time.Second)),
		"idle_in_transaction_session_timeout": milliseconds(timeout),
	}
	if !writes {
		cfg.RuntimeParams["default_transaction_read_only"] = "on"
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if login.Password == nil {
			return nil
		}
		password, err := login.Password()
		c.Password = password.Reveal()
		return err
	}), stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		if c.PgConn().ParameterStatus("server_encoding") != "SQL_ASCII" {
			return nil
		}
		_, err := c.Exec(ctx, "SET client_encoding = 'SQL_ASCII'") // any bytes, which UTF8 would refuse
		return err
	}), stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > pingAfter
	}))
	db.SetMaxOpenConns(1)
	host := cfg.Host
	if !strings.HasPrefix(host, "/") { // else the directory of a socket
		host = net.JoinHostPort(host, strconv.Itoa(int(cfg.Port)))
	}
	return db, host + "/" + cfg.Database, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

const postgresState = `SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint, current_setting('server_version_num')::int, current_database()::text,
	pg_is_in_recovery(), current_setting('transaction_read_only') = 'on' AND current_setting('default_transaction_read_only') = 'on',
	current_setting('is_superuser') = 'on' OR pg_has_role('pg_read_all_stats', 'USAGE')`

// state implements dialect.
func (postgres) state(ctx context.Context, db querier) (state, error) {
	var st state
	var at int64
	var recovery, readOnly bool
	err := db.QueryRowContext(ctx, postgresState).Scan(&at, &st.version, &st.database, &recovery, &readOnly, &st.sessions)
	if err != nil {
		return state{}, fmt.Errorf("read the state of the server: %w", err)
	}
	if st.version < minPostgres {
		return state{}, &oldError{fmt.Sprintf("the server is PostgreSQL %d: versions from 13 on are read", st.version/10000)}
	}
	st.at = time.UnixMicro(at)
	switch {
	case recovery:
		st.readOnly = "the server is in recovery (a standby): release on the primary"
	case readOnly:
		st.readOnly = "the database is read-only (default_transaction_read_only): make it writable"
	}
	return st, nil
}

// oldError is a server that is too old to be read.
type oldError struct{ text string }

func (e *oldError) Error() string { return e.text }

const postgresRelations = `SELECT n.nspname::text, c.relname::text, has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE'), a.attname::text,
		format_type(a.atttypid, NULL), format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL), t.typtype = 'e'
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND lower(c.relname) = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped
		AND n.nspname NOT LIKE 'pg\_%'
	ORDER BY n.nspname, c.relname, a.attnum LIMIT 20000`

// relations implements dialect.
func (postgres) relations(ctx context.Context, db querier, tables []string) ([]relation, error) {
	rows, err := db.QueryContext(ctx, postgresRelations, tables)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []relation
	for rows.Next() {
		var r relation
		var c column
		var base string
		var enum bool
		if err := rows.Scan(&r.schema, &r.table, &r.readable, &c.name, &c.typ, &base, &enum); err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
		if c.kind = postgresKind(base); enum {
			c.kind = kindText
		}
		if n := len(out); n == 0 || out[n-1].schema != r.schema || out[n-1].table != r.table {
			out = append(out, r)
		}
		last := &out[len(out)-1]
		last.columns = append(last.columns, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	return out, nil
}

func postgresKind(typ string) kind {
	switch typ {
	case "text", "character varying", "character", "uuid", "name":
		return kindText
	case "smallint", "integer", "bigint", "numeric":
		return kindNumber
	case "boolean":
		return kindBool
	case "timestamp with time zone":
		return kindTime
	case "timestamp without time zone":
		return kindLocalTime
	}
	return kindOther
}

func (postgres) quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func (postgres) param(n int) string { return "$" + strconv.Itoa(n) + "::text" }

func (d postgres) text(c column) string { return d.quote(c.name) + "::text" }

func (postgres) micros(expr string, k kind) string {
	if k == kindNumber {
		return "(" + expr + " * 1000)::bigint"
	}
	// date_part counts in floating point, which is exact enough until 2100 and much faster than extract.
	return "CASE WHEN isfinite(" + expr + ") THEN (date_part('epoch', " + expr + ") * 1000000)::bigint END"
}

func (postgres) now(k kind) string {
	switch k {
	case kindTime:
		return "statement_timestamp()"
	case kindLocalTime:
		return "(statement_timestamp() AT TIME ZONE 'UTC')"
	default:
		return "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
	}
}

func (postgres) version() string { return "xmin::text" }

func (postgres) same(a, b string) string { return a + " IS NOT DISTINCT FROM " + b }

func (postgres) searches(column) bool { return false } // it locks no row that it does not change
