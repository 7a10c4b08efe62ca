package sqlsource

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/locksteward/locksteward/source"
)

// mysqlDialect is the dialect of MariaDB 10.5 and later and of MySQL 8 and later.
type mysqlDialect struct{}

// The oldest versions that are read.
const (
	minMariaDB = 100500
	minMySQL   = 80000
)

var errMySQLURL = errors.New("not a URL of MySQL or MariaDB: write mysql://USER@HOST:PORT/DATABASE, with ?tls=true for an encrypted connection")

// open implements dialect.
func (mysqlDialect) open(login source.Login, timeout time.Duration, writes bool) (*sql.DB, string, error) {
	u, err := url.Parse(login.URL)
	if err != nil || u.User != nil && u.User.Username() == "" || u.Fragment != "" {
		return nil, "", errMySQLURL // the parser's error may contain a password
	}
	query, err := url.ParseQuery(u.RawQuery)
	cfg := mysql.NewConfig()
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	if err != nil || cfg.DBName == "" || u.Hostname() == "" {
		return nil, "", errMySQLURL
	}
	for key := range query {
		if key != "tls" && key != "socket" {
			return nil, "", fmt.Errorf("parameter %q of the URL is not known; remove it: tls=true and socket=PATH are", key)
		}
	}
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	if socket := query.Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
	}
	switch text := query.Get("tls"); {
	case text != "" && text != "true" && text != "false":
		return nil, "", fmt.Errorf("tls=%s of the URL: write tls=true, which checks the server's certificate, or leave it out", text)
	case login.TLS != nil:
		cfg.TLS = login.TLS.Clone()
	case text == "true":
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cfg.TLS != nil && cfg.TLS.ServerName == "" {
		cfg.TLS.ServerName = u.Hostname()
	}
	cfg.User = login.Username
	if u.User != nil {
		cfg.Passwd, _ = u.User.Password()
		cfg.User = cmp.Or(cfg.User, u.User.Username())
	}
	cfg.Timeout, cfg.ClientFoundRows, cfg.Logger = timeout, true, &mysql.NopLogger{}
	cfg.ConnectionAttributes = "program_name:locksteward"
	if err := cfg.Apply(mysql.Charset("utf8mb4", ""), mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		if login.Password == nil {
			return nil
		}
		password, err := login.Password()
		c.Passwd = password.Reveal()
		return err
	})); err != nil {
		return nil, "", errMySQLURL
	}
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, "", errMySQLURL
	}
	db := sql.OpenDB(mysqlConnector{Connector: inner, settings: mysqlSettings(timeout, writes)})
	db.SetMaxOpenConns(1)
	return db, cfg.Addr + "/" + cfg.DBName, nil
}

// mysqlSettings are the statements that a session begins with, whatever the server's defaults are.
func mysqlSettings(timeout time.Duration, writes bool) []string {
	seconds := strconv.FormatFloat(timeout.Seconds(), 'f', 3, 64)
	idle := int(math.Ceil(2*timeout.Seconds())) + 1
	settings := []string{fmt.Sprintf(`SET autocommit = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', `+
		// A table that a migration alters is read later: a reader in its queue would hold up others.
		`lock_wait_timeout = 1, innodb_lock_wait_timeout = 1`+
		`/*M! , max_statement_time = %s *//*!80000 , max_execution_time = %s */`, seconds, milliseconds(timeout))}
	if writes {
		return append(settings, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", fmt.Sprintf("SET wait_timeout = %d", idle))
	}
	return append(settings, "SET SESSION TRANSACTION READ ONLY")
}

// mysqlConnector makes connections that begin with settings.
type mysqlConnector struct {
	driver.Connector
	settings []string
}

func (c mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, statement := range c.settings {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// mysqlState is what of a server's state is of MySQL and MariaDB alone.
type mysqlState struct {
	maria bool
	// lists is how it lists user locks.
	lists mysqlList
	// connection is the id of our own session.
	connection int64
	kills      bool // sessions of other users can be ended
}

// mysqlList is how a server lists user locks.
type mysqlList int

const (
	// listNames: it does not, and is asked for each name.
	listNames mysqlList = iota
	// listPlugin: by MariaDB's plugin metadata_lock_info.
	listPlugin
	// listPerformance: by performance_schema.
	listPerformance
)

const (
	mysqlNow        = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	mysqlReads      = `SELECT ` + mysqlNow + `, VERSION(), DATABASE(), CAST(@@global.read_only AS CHAR), CAST(@@global.innodb_read_only AS CHAR), @@global.performance_schema, CONNECTION_ID()`
	mysqlPlugin     = `SELECT 1 FROM information_schema.METADATA_LOCK_INFO LIMIT 0`
	mysqlInstrument = `SELECT ENABLED = 'YES' FROM performance_schema.setup_instruments WHERE NAME = 'wait/lock/metadata/sql/mdl'`
)

// state implements dialect.
func (mysqlDialect) state(ctx context.Context, db querier) (state, error) {
	var st state
	var at int64
	var version, readOnly, engine string
	var database sql.NullString
	var performance bool
	my := &st.mysql
	err := db.QueryRowContext(ctx, mysqlReads).Scan(&at, &version, &database, &readOnly, &engine, &performance, &my.connection)
	if err != nil {
		return state{}, fmt.Errorf("read the state of the server: %w", err)
	}
	st.at, st.database, my.maria = time.UnixMicro(at), database.String, strings.Contains(version, "MariaDB")
	st.version = mysqlVersion(version)
	if oldest := mysqlOldest(my.maria); st.version < oldest {
		return state{}, &oldError{fmt.Sprintf("the server is %s: MariaDB from 10.5 and MySQL from 8.0 on are read", mysqlVersionText(st))}
	}
	switch {
	case mysqlIs(readOnly):
		st.readOnly = "the server is read-only (read_only), as a replica is: release on the primary"
	case mysqlIs(engine):
		st.readOnly = "the server is read-only (innodb_read_only): make it writable"
	}
	granted, err := mysqlGrants(ctx, db)
	if err != nil {
		return state{}, err
	}
	st.sessions = granted["PROCESS"]
	my.kills = granted["SUPER"] || granted["CONNECTION ADMIN"]
	if my.maria {
		if _, err = db.ExecContext(ctx, mysqlPlugin); err == nil {
			my.lists = listPlugin
			return st, nil
		} else if !mysqlNumber(err, mysqlNoTable) {
			return state{}, fmt.Errorf("look for the plugin metadata_lock_info: %w", err)
		}
	}
	if !performance {
		return st, nil
	}
	my.lists, err = mysqlPerformance(ctx, db)
	return st, err
}

// mysqlNoTable is the number of the error of a table of the server that there is not.
const mysqlNoTable = 1109

// mysqlIs says whether a variable is on; MariaDB 12 has several words for it.
func mysqlIs(value string) bool { return value != "0" && !strings.EqualFold(value, "OFF") }

// mysqlPerformance returns how performance_schema lists user locks, if it does and may be read.
func mysqlPerformance(ctx context.Context, db querier) (mysqlList, error) {
	var enabled bool
	err := db.QueryRowContext(ctx, mysqlInstrument).Scan(&enabled)
	if errors.Is(err, sql.ErrNoRows) || err != nil && mysqlNumber(err, mysqlDenied...) || err == nil && !enabled {
		return listNames, nil
	}
	for _, table := range []string{"metadata_locks", "threads", "session_connect_attrs", "events_transactions_current"} {
		if err != nil {
			break
		}
		_, err = db.ExecContext(ctx, "DO (SELECT COUNT(*) FROM performance_schema."+table+" WHERE FALSE)")
	}
	switch {
	case err == nil:
		return listPerformance, nil
	case mysqlNumber(err, mysqlDenied...):
		return listNames, nil
	}
	return listNames, fmt.Errorf("read performance_schema: %w", err)
}

// mysqlGrants returns the rights of this session on the whole server, those of its roles included.
func mysqlGrants(ctx context.Context, db querier) (map[string]bool, error) {
	rows, err := db.QueryContext(ctx, "SHOW GRANTS")
	if mysqlNumber(err, mysqlOption) { // --skip-grant-tables: everybody may do everything
		return map[string]bool{"PROCESS": true, "SUPER": true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the rights: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]bool{}
	for rows.Next() {
		var line string // which may have the hash of a password: it goes nowhere
		if err := rows.Scan(&line); err != nil {
			return nil, fmt.Errorf("read the rights: %w", err)
		}
		list, _, global := strings.Cut(strings.TrimPrefix(line, "GRANT "), " ON *.* TO ")
		if !global {
			continue
		}
		for right := range strings.SplitSeq(list, ",") {
			right = strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(right)), "_", " ")
			out[right] = true
			if right == "ALL PRIVILEGES" {
				out["PROCESS"], out["SUPER"] = true, true
			}
		}
	}
	return out, rows.Err()
}

var mysqlVersionShape = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)`)

// mysqlVersion returns 101119 for 10.11.19-MariaDB, 80404 for 8.4.4; 0 for another text.
func mysqlVersion(text string) int {
	m := mysqlVersionShape.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	out := 0
	for _, part := range m[1:] {
		n, _ := strconv.Atoi(part)
		out = out*100 + min(n, 99)
	}
	return out
}

func mysqlOldest(maria bool) int {
	if maria {
		return minMariaDB
	}
	return minMySQL
}

func mysqlVersionText(st state) string {
	name := "MySQL"
	if st.mysql.maria {
		name = "MariaDB"
	}
	return fmt.Sprintf("%s %d.%d.%d", name, st.version/10000, st.version/100%100, st.version%100)
}

// versionText implements dialect.
func (mysqlDialect) versionText(st state) string { return mysqlVersionText(st) }

func (mysqlDialect) quote(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

func (mysqlDialect) param(int) string { return "?" }

// text implements dialect: bytes, so that no collation takes two values for one.
func (d mysqlDialect) text(c column) string {
	if mysqlBinary(c.typ) {
		return "HEX(" + d.quote(c.name) + ")"
	}
	return "CAST(CONVERT(" + d.quote(c.name) + " USING utf8mb4) AS BINARY)"
}

// mysqlBinary says that a column's values are no text in any character set.
func mysqlBinary(typ string) bool {
	return strings.Contains(typ, "binary") || strings.Contains(typ, "blob") || strings.HasPrefix(typ, "bit")
}

// micros implements dialect. All sessions of ours are in UTC. The year 9999, the last one that can be written,
// stands for no end.
func (mysqlDialect) micros(expr string, k kind) string {
	if k == kindNumber {
		return "(CAST(" + expr + " AS DECIMAL(40, 6)) * 1000)"
	}
	return "IF(" + expr + " < '9999-01-01', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + expr + "), NULL)"
}

func (mysqlDialect) now(k kind) string {
	switch k {
	case kindTime:
		return "NOW(6)"
	case kindLocalTime:
		return "UTC_TIMESTAMP(6)"
	default:
		return mysqlNow
	}
}

func (mysqlDialect) version() string { return "" }

func (mysqlDialect) same(a, b string) string { return a + " <=> " + b }

// searches implements dialect: InnoDB locks each row that a statement looks at.
func (mysqlDialect) searches(c column) bool { return c.kind == kindText || c.kind == kindNumber }
