package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// writersLock is the advisory lock of those who continue the audit chain, claim
// the one open request of a key or migrate: "lockstwd" in ASCII. Each database
// has its own.
const writersLock = "7813573191660762980"

// transaction is the id of the transaction; a standby gives none.
const transaction = `CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_current_xact_id()::text END`

var onPostgres = &backend{
	name:     "postgres",
	numbered: true,
	number:   "BIGINT",
	columns:  true,
	atOnce:   1000,
	now:      "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
	begin:    `SELECT ` + transaction + ` FROM pg_advisory_xact_lock(` + writersLock + `)`,
	join:     `SELECT ` + transaction,
	lower:    `LOWER(%s COLLATE "C")`,
	within:   "position(? in lock_key) > 0",
	share:    " FOR KEY SHARE", // see leases_fence
	skip:     " FOR UPDATE OF o SKIP LOCKED",
	known:    `SELECT 1 FROM pg_tables WHERE tablename = 'schema_version' AND schemaname = ANY (current_schemas(false))`,
	bytes: `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_version'))
		AND c.relname IN ('settings', 'requests', 'decisions', 'entries', 'entries_head', 'history', 'findings', 'holds',
			'outbox', 'outbox_head', 'leases', 'replicas', 'checkpoints', 'sinks', 'imported', 'lock_events',
			'alert_events', 'alert_pending', 'alert_groups', 'alert_delivery_state', 'silences', 'schema_version')`,
	script:  []any{pgx.QueryExecModeSimpleProtocol},
	explain: explainPostgres,
}

// connections is how many connections each of the two pools has at most: what
// reads must never wait for what writes.
const connections = 4

// idleTransaction ends what a paused or vanished process left open: the others
// wait for the lock that it holds, and are to take over within seconds. It is
// shorter than the lease that they wait out anyway; a process that lives says its
// next word within milliseconds.
const idleTransaction = 1500 * time.Millisecond

// openPostgres opens the pools, with the password in a file, if one is named. It
// connects to nothing yet.
func (s *Store) openPostgres(dsn, passwordFile string) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errPostgresDSN // what the parser says may hold the password
	}
	if s.creds, err = openCredentials(dsn, passwordFile, cfg); err != nil {
		return err
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "locksteward"
	}
	host := cfg.Host
	if !strings.HasPrefix(host, "/") { // else the directory of a socket
		host = net.JoinHostPort(host, strconv.Itoa(int(cfg.Port)))
	}
	s.name, s.on, s.pens = host+"/"+cfg.Database, onPostgres, pensOfServer()
	cfg.ConnectTimeout = s.patience
	lines := &lines{dial: cfg.DialFunc, open: map[net.Conn]bool{}}
	cfg.DialFunc = lines.connect
	s.lines = lines
	s.write = s.postgresPool(cfg, "")
	s.read = s.postgresPool(cfg, "SET default_transaction_read_only = on;")
	return nil
}

func (s *Store) postgresPool(cfg *pgx.ConnConfig, besides string) *pool {
	// A lock that is waited for is told from a server that is away: by half of the
	// patience.
	session := fmt.Sprintf(`SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d; %s
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
		(s.patience / 2).Milliseconds(), idleTransaction.Milliseconds(), besides)
	db := stdlib.OpenDB(*cfg.Copy(), stdlib.OptionBeforeConnect(s.creds.beforeConnect), stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		// What is reported committed must be so after a crash, whatever the role's
		// own default is.
		_, err := c.Exec(ctx, session, pgx.QueryExecModeSimpleProtocol)
		return err
	}))
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(s.creds.lifetime())
	return &pool{db, onPostgres}
}

// lines are the network connections of a store, to be cut when nobody answers:
// an orderly farewell would wait for the server, one connection after the other.
type lines struct {
	dial pgconn.DialFunc

	mu   sync.Mutex
	open map[net.Conn]bool
}

func (l *lines) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	out := &line{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[out] = true
	return out, nil
}

func (l *lines) cut() {
	l.mu.Lock()
	open := l.open
	l.open = map[net.Conn]bool{}
	l.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}

type line struct {
	net.Conn
	of *lines
}

func (l *line) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

// explainPostgres says what an error of the server or of the way to it means.
func explainPostgres(s *Store, err error) *Error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainCode(s, e, err)
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	if connecting || network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "bad connection") {
		return &Error{Err: err, Kind: ErrAway, Reason: "the server does not answer", Hint: s.awayHint()}
	}
	return nil
}

func (s *Store) awayHint() string {
	return fmt.Sprintf("check that PostgreSQL runs and that %q can be reached from here; the agent goes on by itself when it answers", s.name)
}

// explainCode reads SQLSTATE; PostgreSQL's manual, appendix A.
func explainCode(s *Store, e *pgconn.PgError, err error) *Error {
	out := &Error{Err: err}
	switch code := e.Code; {
	case code == "53100": // disk_full
		out.Kind, out.Reason = ErrFull, "no space left on the server"
		out.Hint = "free space on the disk of PostgreSQL: nothing accepted before is lost, nothing is released until then"
	case code == "25006": // read_only_sql_transaction
		out.Kind, out.Reason = ErrReadOnly, "the server takes no writes"
		out.Hint = "point store.dsn at the primary, or add target_session_attrs=read-write to it"
	case code == "42501": // insufficient_privilege
		out.Kind, out.Reason = ErrReadOnly, "this user may not do that"
		out.Hint = "make the user the owner of the database: it creates tables and changes them"
	case code == "55P03", code == "40P01", code == "57014": // lock_not_available, deadlock_detected, query_canceled
		out.Kind, out.Reason = ErrBusy, "another session keeps a lock"
		out.Hint = "end the other session (pg_stat_activity shows it) and try again"
	case code == "53300": // too_many_connections
		out.Kind, out.Reason = ErrAway, "the server has no connection left"
		out.Hint = fmt.Sprintf("raise max_connections or end other programs: an agent needs %d", 2*connections)
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"), code == "25P03": // going down or coming up, connection, idle too long
		out.Kind, out.Reason, out.Hint = ErrAway, "the server does not answer", s.awayHint()
	case strings.HasPrefix(code, "28"), code == "3D000": // login, no such database
		out.Kind, out.Reason = ErrAway, "the server lets nobody in under that name"
		out.Hint = "check user, password (store.password_file) and database in store.dsn; the database must exist"
	case code == "XX001", code == "XX002": // data_corrupted, index_corrupted
		out.Kind, out.Reason = ErrDamaged, "the database is damaged"
		out.Hint = "stop the agent and restore the last backup"
	case strings.HasPrefix(code, "53"), code == "58030": // out of memory, io_error
		out.Kind, out.Reason = ErrAway, "the server is out of means"
		out.Hint = "look into the log of PostgreSQL"
	}
	return out
}
