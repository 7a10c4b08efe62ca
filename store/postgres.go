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

// writersLock is the advisory lock of writers that continue the audit chain, claim the
// one open request of a key or create the schema: "lockstwd" in ASCII. Each database has
// its own.
const writersLock = "7813573191660762980"

// transactionID is an expression for the ID of the transaction; a standby has none.
const transactionID = `CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_current_xact_id()::text END`

var onPostgres = &backend{
	name:      "postgres",
	numbered:  true,
	number:    "BIGINT",
	columns:   true,
	atOnce:    1000,
	now:       "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
	begin:     `SELECT ` + transactionID + ` FROM pg_advisory_xact_lock(` + writersLock + `)`,
	join:      `SELECT ` + transactionID,
	lower:     `LOWER(%s COLLATE "C")`,
	within:    "position(? in lock_key) > 0",
	share:     " FOR KEY SHARE", // see leases_fence
	skip:      " FOR UPDATE OF o SKIP LOCKED",
	hasSchema: `SELECT 1 FROM pg_tables WHERE tablename = 'schema_version' AND schemaname = ANY (current_schemas(false))`,
	bytes: `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_version'))
		AND c.relname IN ('settings', 'requests', 'decisions', 'entries', 'entries_head', 'history', 'findings', 'holds',
			'outbox', 'outbox_head', 'leases', 'replicas', 'checkpoints', 'sinks', 'imported', 'lock_events',
			'alert_events', 'alert_pending', 'alert_groups', 'alert_told', 'silences', 'schema_version')`,
	script:  []any{pgx.QueryExecModeSimpleProtocol},
	explain: explainPostgres,
}

// maxConnections is the size of each of the two pools: readers must never wait for writers.
const maxConnections = 4

// idleTransactionTimeout ends the transaction of a process that is paused or gone: others
// wait for its lock, and should take over within seconds. It is shorter than the lease
// that they wait for anyway; a live process sends its next statement within milliseconds.
const idleTransactionTimeout = 1500 * time.Millisecond

// openPostgres opens the pools, with the password of passwordFile unless that is empty. It
// does not connect yet.
func (s *Store) openPostgres(dsn, passwordFile string) error {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return errPostgresDSN // the parser's error may contain the password
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
	s.name, s.on, s.semaphores = host+"/"+cfg.Database, onPostgres, serverSemaphores()
	cfg.ConnectTimeout = s.timeout
	s.conns = &connTracker{dial: cfg.DialFunc, open: map[net.Conn]bool{}}
	cfg.DialFunc = s.conns.connect
	s.write = s.postgresPool(cfg, "")
	s.read = s.postgresPool(cfg, "SET default_transaction_read_only = on;")
	return nil
}

func (s *Store) postgresPool(cfg *pgx.ConnConfig, statements string) *pool {
	// With half of the timeout, a lock that is held differs from a server that is
	// unreachable.
	session := fmt.Sprintf(`SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d; %s
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
		(s.timeout / 2).Milliseconds(), idleTransactionTimeout.Milliseconds(), statements)
	db := stdlib.OpenDB(*cfg.Copy(), stdlib.OptionBeforeConnect(s.creds.beforeConnect), stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		// A commit must survive a crash, whatever the default of the role is.
		_, err := c.Exec(ctx, session, pgx.QueryExecModeSimpleProtocol)
		return err
	}))
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(s.creds.lifetime())
	return &pool{db, onPostgres}
}

// connTracker closes the network connections of a store at once when the server does not
// answer. The pools would end them one after the other and wait for the server each time.
type connTracker struct {
	dial pgconn.DialFunc

	mu   sync.Mutex // guards open; never held over I/O
	open map[net.Conn]bool
}

func (t *connTracker) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := t.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	out := &trackedConn{Conn: conn, tracker: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[out] = true
	return out, nil
}

func (t *connTracker) closeAll() {
	t.mu.Lock()
	open := t.open
	t.open = map[net.Conn]bool{}
	t.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
}

type trackedConn struct {
	net.Conn
	tracker *connTracker
}

func (c *trackedConn) Close() error {
	c.tracker.mu.Lock()
	delete(c.tracker.open, c)
	c.tracker.mu.Unlock()
	return c.Conn.Close()
}

// explainPostgres explains an error of the server or of the connection to it.
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
	return fmt.Sprintf("check that PostgreSQL runs and that %q can be reached from here; the agent continues when it answers", s.name)
}

// explainCode reads SQLSTATE; PostgreSQL's manual, appendix A.
func explainCode(s *Store, e *pgconn.PgError, err error) *Error {
	out := &Error{Err: err}
	switch code := e.Code; {
	case code == "53100": // disk_full
		out.Kind, out.Reason = ErrFull, "no space left on the server"
		out.Hint = "free space on the disk of PostgreSQL: nothing accepted before is lost, nothing is released until then"
	case code == "25006": // read_only_sql_transaction
		out.Kind, out.Reason = ErrReadOnly, "the server accepts no writes"
		out.Hint = "point store.dsn at the primary, or add target_session_attrs=read-write to it"
	case code == "42501": // insufficient_privilege
		out.Kind, out.Reason = ErrReadOnly, "this user may not do that"
		out.Hint = "make the user the owner of the database: it creates tables and changes them"
	case code == "55P03", code == "40P01", code == "57014": // lock_not_available, deadlock_detected, query_canceled
		out.Kind, out.Reason = ErrBusy, "another session holds a lock"
		out.Hint = "end the other session (pg_stat_activity shows it) and try again"
	case code == "53300": // too_many_connections
		out.Kind, out.Reason = ErrAway, "the server has no connection left"
		out.Hint = fmt.Sprintf("raise max_connections or end other programs: an agent needs %d", 2*maxConnections)
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"), code == "25P03": // going down or coming up, connection, idle too long
		out.Kind, out.Reason, out.Hint = ErrAway, "the server does not answer", s.awayHint()
	case strings.HasPrefix(code, "28"), code == "3D000": // login, no such database
		out.Kind, out.Reason = ErrAway, "login failed, or the database does not exist"
		out.Hint = "check user, password (store.password_file) and database in store.dsn; the database must exist"
	case code == "XX001", code == "XX002": // data_corrupted, index_corrupted
		out.Kind, out.Reason = ErrDamaged, "the database is damaged"
		out.Hint = "stop the agent and restore the last backup"
	case strings.HasPrefix(code, "53"), code == "58030": // out of memory, io_error
		out.Kind, out.Reason = ErrAway, "the server is out of resources"
		out.Hint = "check the log of PostgreSQL"
	}
	return out
}
