package sqlsource

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// TypeUserLock is the type of MySQL's and MariaDB's user-level locks (GET_LOCK).
const TypeUserLock = "user lock"

// userLockPrefix begins the names of user locks, which the whole server shares: getlock:NAME.
const userLockPrefix = "getlock:"

// requestLock begins the names of user locks of our own: a connection that releases has one, so that
// another one sees whether it still runs.
const requestLock = "locksteward request "

// userLockColumns are what is read of a lock or a waiter; each list of them has these.
const userLockColumns = `id, name, granted, exact, held, user, host, command, time, info, trx, program`

// The lists of user locks. The plugin has the first 64 letters of a name, with '?' for letters that it cannot
// have; waiters are statements in the process list.
const (
	userLocksOfPlugin = `SELECT m.THREAD_ID AS id, m.TABLE_SCHEMA AS name, 1 AS granted, IS_USED_LOCK(CONVERT(m.TABLE_SCHEMA USING utf8mb4)) <=> m.THREAD_ID AS exact,
		m.LOCK_TIME_MS AS held, p.USER AS user, p.HOST AS host, p.COMMAND AS command, %[2]s AS time, NULL AS info, %[3]s AS trx, NULL AS program
	FROM information_schema.METADATA_LOCK_INFO m LEFT JOIN information_schema.PROCESSLIST p ON p.ID = m.THREAD_ID %[4]s
	WHERE m.LOCK_TYPE = 'User lock'
	UNION ALL ` + userLockWaiters
	userLocksOfNames = `SELECT l.id, l.name, 1 AS granted, 1 AS exact, NULL AS held, p.USER AS user, p.HOST AS host, p.COMMAND AS command, %[2]s AS time, NULL AS info, %[3]s AS trx, NULL AS program
	FROM (%[1]s) l LEFT JOIN information_schema.PROCESSLIST p ON p.ID = l.id %[4]s
	WHERE l.id IS NOT NULL
	UNION ALL ` + userLockWaiters
	userLockWaiters = `SELECT p.ID, NULL, 0, 0, NULL, p.USER, p.HOST, p.COMMAND, %[2]s, LEFT(p.INFO, 1000), 0, NULL
	FROM information_schema.PROCESSLIST p WHERE p.STATE = 'User lock'`
	userLocksOfPerformance = `SELECT t.PROCESSLIST_ID AS id, COALESCE(NULLIF(m.OBJECT_NAME, ''), m.OBJECT_SCHEMA) AS name, m.LOCK_STATUS = 'GRANTED' AS granted,
		IS_USED_LOCK(CONVERT(COALESCE(NULLIF(m.OBJECT_NAME, ''), m.OBJECT_SCHEMA) USING utf8mb4)) <=> t.PROCESSLIST_ID AS exact, NULL AS held,
		t.PROCESSLIST_USER AS user, t.PROCESSLIST_HOST AS host, t.PROCESSLIST_COMMAND AS command, t.PROCESSLIST_TIME * 1000 AS time, NULL AS info,
		x.THREAD_ID IS NOT NULL AS trx, a.ATTR_VALUE AS program
	FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID
		LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = m.OWNER_THREAD_ID AND x.STATE = 'ACTIVE' AND x.AUTOCOMMIT = 'NO'
		LEFT JOIN performance_schema.session_connect_attrs a ON a.PROCESSLIST_ID = t.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name'
	WHERE m.OBJECT_TYPE = 'USER LEVEL LOCK' AND m.LOCK_STATUS IN ('GRANTED', 'PENDING')`
)

// The server computes its uptime from the time of the statement, so that the difference is the same each time.
const serverStarted = `(SELECT CAST(UNIX_TIMESTAMP(NOW()) - VARIABLE_VALUE AS SIGNED) FROM %s WHERE VARIABLE_NAME = 'Uptime')`

// userLock is a user lock that a session has or waits for.
type userLock struct {
	id             int64 // of the session
	started        int64 // when the server was, in s since 1970: ids of sessions grow from then on
	name           string
	granted, exact bool // exact: the name is the whole name
	held           time.Duration
	acquired       bool // held is known
	user, addr     string
	command        string
	idle           time.Duration // how long it has been doing what command says
	info, program  string
	inTransaction  bool
	visible        bool
}

// key is the lock's name for people. Locks whose names are not known in full may be several.
func (l *userLock) key() string {
	if l.exact {
		return userLockPrefix + l.name
	}
	return userLockPrefix + l.name + "…#" + strconv.FormatInt(l.id, 10)
}

func (mysqlDialect) prefix() string { return userLockPrefix }

// userLocksQuery returns the statement that lists the user locks of a server.
func userLocksQuery(st state, names []string) string {
	if st.mysql.lists == listPerformance {
		return userLocksOfPerformance
	}
	// The table of transactions may not be asked without the right to.
	time, trx, join := "p.TIME * 1000", "0", ""
	if st.mysql.maria {
		time = "p.TIME_MS"
	}
	if st.sessions {
		trx, join = "x.trx_id IS NOT NULL", "LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = p.ID"
	}
	if st.mysql.lists == listPlugin {
		return fmt.Sprintf(userLocksOfPlugin, "", time, trx, join)
	}
	asks := []string{"SELECT '' AS name, NULL AS id"}
	for _, name := range names {
		literal := userLockName(name)
		asks = append(asks, "SELECT "+literal+", IS_USED_LOCK("+literal+")")
	}
	return fmt.Sprintf(userLocksOfNames, strings.Join(asks, " UNION ALL "), time, trx, join)
}

// userLockName is an expression for a name of any bytes, whatever quotes mean.
func userLockName(name string) string {
	return "CONVERT(X'" + hex.EncodeToString([]byte(name)) + "' USING utf8mb4)"
}

// askable are the names that a server can be asked for, those of libraries among them.
func askable(st state, keys []string) []string {
	out := userLockNames(st.database)
	for _, key := range keys {
		name, ok := strings.CutPrefix(key, userLockPrefix)
		limit := utf8.RuneCountInString(name) <= 64
		if st.mysql.maria {
			limit = len(name) <= 192
		}
		if ok && name != "" && limit && utf8.ValidString(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sessionLocks implements dialect.
func (mysqlDialect) sessionLocks(ctx context.Context, db querier, st state, names func() []string, limit int, digest locksteward.DigestKey) (snapshot, error) {
	var asked []string
	if st.mysql.lists == listNames {
		if asked = askable(st, names()); len(asked) > maxAsked {
			return snapshot{}, &tooManyError{what: "the list of user locks to ask for", limit: maxAsked}
		}
	}
	started := fmt.Sprintf(serverStarted, "performance_schema.global_status")
	if st.mysql.maria {
		started = fmt.Sprintf(serverStarted, "information_schema.GLOBAL_STATUS")
	}
	query := fmt.Sprintf("SELECT n.now, n.started, %s FROM (SELECT %s AS now, %s AS started) n LEFT JOIN (%s LIMIT %d) l ON 1 = 1", userLockColumns, mysqlNow, started, userLocksQuery(st, asked), limit+1)
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return snapshot{}, fmt.Errorf("read user locks: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var now int64
	var all []userLock
	for rows.Next() {
		var l userLock
		var id sql.NullInt64
		var granted, exact, trx sql.NullBool
		var held, idle sql.NullFloat64
		var name, user, host, command, info, program sql.NullString
		if err := rows.Scan(&now, &l.started, &id, &name, &granted, &exact, &held, &user, &host, &command, &idle, &info, &trx, &program); err != nil {
			return snapshot{}, fmt.Errorf("read user locks: %w", err)
		}
		if !id.Valid || strings.HasPrefix(name.String, requestLock) {
			continue // there are none, or it is ours
		}
		l.id, l.name, l.granted = id.Int64, name.String, granted.Bool
		l.exact = exact.Bool || whole(l.name)
		l.held, l.acquired = time.Duration(held.Float64*float64(time.Millisecond)), held.Valid
		l.idle = time.Duration(idle.Float64 * float64(time.Millisecond))
		l.user, l.command, l.info, l.program, l.inTransaction, l.visible = user.String, command.String, info.String, program.String, trx.Bool, command.Valid
		l.addr = hostOf(host.String, st.mysql.lists != listPerformance)
		all = append(all, l)
	}
	if err := rows.Err(); err != nil {
		return snapshot{}, fmt.Errorf("read user locks: %w", err)
	}
	if len(all) > limit {
		return snapshot{}, &tooManyError{what: "the list of user locks", limit: limit}
	}
	blind := !st.sessions && st.mysql.lists != listPerformance
	return userLockSnapshot(time.UnixMicro(now), all, st.database, blind, digest), nil
}

// maxAsked bounds the names that a server without a list of user locks is asked for.
const maxAsked = 1000

// whole says that a name is neither cut nor altered by the list that it is from.
func whole(name string) bool {
	return utf8.RuneCountInString(name) < 64 && !strings.Contains(name, "?")
}

// hostOf returns the client's address or name, "" for one of the machine itself. The process list has
// ports behind addresses.
func hostOf(host string, port bool) string {
	if i := strings.LastIndexByte(host, ':'); port && i >= 0 {
		host = host[:i]
	}
	if host == "localhost" {
		return ""
	}
	return host
}

// userLockSnapshot makes locks of what was read; blind says that waiters of other users are hidden.
func userLockSnapshot(at time.Time, all []userLock, database string, blind bool, digest locksteward.DigestKey) snapshot {
	out := snapshot{at: at}
	bySession := map[int64][]string{}
	held := map[string]bool{}
	var granted []*userLock
	for i := range all {
		l := &all[i]
		if key := l.key(); l.granted && !slices.Contains(bySession[l.id], key) {
			bySession[l.id] = append(bySession[l.id], key)
			held[l.name] = true
			granted = append(granted, l)
		}
	}
	waiting, unknown := map[string][]*userLock{}, blind
	for i := range all {
		if l := &all[i]; !l.granted {
			if l.name == "" {
				l.name = waitsFor(l.info, held)
			}
			unknown = unknown || l.name == ""
			waiting[l.name] = append(waiting[l.name], l)
		}
	}
	for _, locks := range bySession {
		slices.Sort(locks)
	}
	for _, l := range granted {
		h := l.hold(at, database, bySession[l.id], waiting[l.name], digest)
		if unknown && len(h.waiters) == 0 {
			h.obs.Waiters = -1 // somebody may wait, and nobody knows for which lock
		}
		out.holds = append(out.holds, h)
	}
	slices.SortFunc(out.holds, func(a, b hold) int { return strings.Compare(a.obs.Key, b.obs.Key) })
	return out
}

// getLock is a call of GET_LOCK with its name in quotes, or a number.
var getLock = regexp.MustCompile(`(?is)\bGET_LOCK\s*\(\s*(?:'((?:[^'\\]|\\.|'')*)'|"((?:[^"\\]|\\.|"")*)"|(-?\d+))`)

// waitsFor returns which of the locks that are held a statement waits for; "" if that cannot be said, as
// for a parameter. Whether a backslash is one depends on the session.
func waitsFor(statement string, held map[string]bool) string {
	for _, m := range getLock.FindAllStringSubmatch(statement, -1) {
		raw := m[1] + m[2] + m[3]
		for _, name := range []string{
			unescaped.Replace(raw), strings.NewReplacer("''", "'", `""`, `"`).Replace(raw), raw,
		} {
			if held[name] {
				return name
			}
		}
	}
	return ""
}

// unescaped undoes the escapes of MySQL's string literals.
var unescaped = strings.NewReplacer("''", "'", `""`, `"`, `\'`, "'", `\"`, `"`, `\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\0`, "\x00", `\b`, "\b", `\Z`, "\x1a")

// hold makes a lock of what a session has. Locks are all those of the session.
func (l *userLock) hold(at time.Time, database string, locks []string, waiting []*userLock, digest locksteward.DigestKey) hold {
	key := l.key()
	o := locksteward.Observation{
		Key: key, Type: TypeUserLock, At: at, Lifetime: locksteward.LifetimeSession, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt,
		Idle: -1, Kind: locksteward.KindLock, Count: 1, Identity: locksteward.IdentityLineage,
		Holder: locksteward.Holder{App: strings.ToValidUTF8(l.program, "\uFFFD"), Host: l.addr, Session: strconv.FormatInt(l.id, 10)},
	}
	o.Library, o.Confidence = userLockLibrary(l.name, database)
	if l.acquired {
		o.Acquired = at.Add(-l.held)
	}
	// The session is known beyond doubt, but it may have given the lock up and taken it again.
	o.TokenDigest = digest.Value(fmt.Appendf(nil, "session %d %d", l.id, l.started))
	if !l.exact {
		o.Identity = locksteward.IdentityNone
	}
	o.Session = &locksteward.Session{
		ID: o.Holder.Session, User: l.user, Addr: l.addr, State: l.state(),
		Locks: slices.DeleteFunc(slices.Clone(locks), func(other string) bool { return other == key }),
	}
	if l.visible {
		o.Session.StateSince = at.Add(-l.idle)
	}
	h := hold{obs: o, session: l}
	for _, w := range waiting {
		h.waiters = append(h.waiters, locksteward.Waiter{
			Key: key, ID: fmt.Sprintf("%d-%d %s", w.id, w.started, key), Session: strconv.FormatInt(w.id, 10),
			App: strings.ToValidUTF8(w.program, "\uFFFD"), Host: w.addr, Since: at.Add(-w.idle),
		})
	}
	h.obs.Waiters = len(h.waiters)
	return h
}

func (l *userLock) state() locksteward.SessionState {
	switch {
	case !l.visible:
		return ""
	case l.command != "Sleep":
		return locksteward.SessionActive
	case l.inTransaction:
		return locksteward.SessionInTransaction
	}
	return locksteward.SessionIdle
}

// addrs implements dialect. If a server resolves the names of clients, an address may be behind each
// of them: then nobody knows who is there.
func (mysqlDialect) addrs(ctx context.Context, db querier) (map[string]int, error) {
	rows, err := db.QueryContext(ctx, `SELECT HOST, COUNT(*) FROM information_schema.PROCESSLIST WHERE HOST <> '' GROUP BY HOST LIMIT 100000`)
	if err != nil {
		return nil, fmt.Errorf("read the process list: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out, named := map[string]int{}, false
	for rows.Next() {
		var host string
		var n int
		if err := rows.Scan(&host, &n); err != nil {
			return nil, fmt.Errorf("read the process list: %w", err)
		}
		host = hostOf(host, true)
		addr, err := netip.ParseAddr(host)
		if err == nil {
			host = addr.Unmap().String()
		}
		named = named || host != "" && err != nil
		out[host] += n
	}
	if err := rows.Err(); err != nil || named {
		return nil, err
	}
	return out, nil
}

// limits implements dialect.
func (mysqlDialect) limits(hold locksteward.Evidence) source.Limits {
	if hold.Identity == locksteward.IdentityNone {
		return source.Limits{Release: refused("the server shows only a part of the name of %q, so that it cannot be compared; take locks with names of less than 64 letters", locksteward.DisplayKey(hold.Key))}
	}
	return sessionLimits()
}
