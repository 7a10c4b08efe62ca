package sqlsource

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// TypeAdvisory is the type of PostgreSQL's advisory locks. A prepared transaction has no
// session that could be ended.
const (
	TypeAdvisory         = "advisory"
	TypeAdvisoryPrepared = "advisory of a prepared transaction"
)

// advisoryPrefix begins the names of advisory locks: advisory:DATABASE:KEY. A shared lock has
// several holders, each with a name of its own: #PID follows.
const advisoryPrefix = "advisory:"

// postgresLocks reads the advisory locks of this database: one statement, whose first columns
// are there even without locks. waitstart is since PostgreSQL 14.
const postgresLocks = `SELECT n.now, l.* FROM (SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now) n LEFT JOIN (
	SELECT l.classid::bigint, l.objid::bigint, l.objsubid = 2, l.mode = 'ShareLock', l.granted, l.pid, l.virtualtransaction, %s,
		a.usename::text, a.application_name, host(a.client_addr), (extract(epoch FROM a.backend_start) * 1000000)::bigint, a.state,
		(extract(epoch FROM a.state_change) * 1000000)::bigint, left(a.query, 1000)
	FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.locktype = 'advisory' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT %d) l ON true`

// advisoryRow is one row of postgresLocks.
type advisoryRow struct {
	key                        advisoryKey
	shared, granted            bool
	pid                        int64 // 0: a prepared transaction
	vxid                       string
	waitstart, start, changed  int64
	user, app, addr, state, do string
	visible                    bool // the session's start can be seen
}

func (r *advisoryRow) name(database string) string {
	name := advisoryPrefix + strings.NewReplacer("%", "%25", ":", "%3A", "#", "%23").Replace(database) + ":" + r.key.String()
	if r.shared {
		name += "#" + strconv.FormatInt(r.pid, 10)
	}
	return name
}

func (postgres) prefix() string { return advisoryPrefix }

// sessionLocks implements dialect.
func (postgres) sessionLocks(ctx context.Context, db querier, st state, _ func() []string, limit int, digest locksteward.DigestKey) (snapshot, error) {
	waitstart := "NULL::bigint"
	if st.version >= 140000 {
		waitstart = "(extract(epoch FROM l.waitstart) * 1000000)::bigint"
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf(postgresLocks, waitstart, limit+1))
	if err != nil {
		return snapshot{}, fmt.Errorf("read pg_locks: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var now int64
	var all []advisoryRow
	for rows.Next() {
		var r advisoryRow
		var class, obj, pid, waitstart, start, changed sql.NullInt64
		var double, shared, granted sql.NullBool
		var vxid, user, app, addr, state, do sql.NullString
		err := rows.Scan(&now, &class, &obj, &double, &shared, &granted, &pid, &vxid, &waitstart, &user, &app, &addr, &start, &state, &changed, &do)
		if err != nil {
			return snapshot{}, fmt.Errorf("read pg_locks: %w", err)
		}
		if !class.Valid {
			continue // there are none
		}
		r.key = advisoryKey{bigint: int64(uint64(class.Int64)<<32 | uint64(obj.Int64)), a: int32(uint32(class.Int64)), b: int32(uint32(obj.Int64)), isDouble: double.Bool}
		r.shared, r.granted, r.pid, r.vxid = shared.Bool, granted.Bool, pid.Int64, vxid.String
		r.waitstart, r.start, r.changed, r.visible = waitstart.Int64, start.Int64, changed.Int64, start.Valid
		r.user, r.app, r.addr, r.state, r.do = user.String, app.String, addr.String, state.String, do.String
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return snapshot{}, fmt.Errorf("read pg_locks: %w", err)
	}
	if len(all) > limit {
		return snapshot{}, &tooManyError{what: "pg_locks", limit: limit}
	}
	return advisorySnapshot(time.UnixMicro(now), all, st.database, digest), nil
}

func advisorySnapshot(at time.Time, rows []advisoryRow, database string, digest locksteward.DigestKey) snapshot {
	out := snapshot{at: at}
	bySession := map[int64][]string{}
	waiting := map[advisoryKey][]*advisoryRow{}
	for i := range rows {
		switch r := &rows[i]; {
		case !r.granted:
			waiting[r.key] = append(waiting[r.key], r)
		case r.pid != 0:
			bySession[r.pid] = append(bySession[r.pid], r.name(database))
		}
	}
	for _, locks := range bySession {
		slices.Sort(locks)
	}
	for i := range rows {
		if r := &rows[i]; r.granted {
			out.holds = append(out.holds, r.hold(at, database, slices.Compact(bySession[r.pid]), waiting[r.key], digest))
		}
	}
	// One session may have a lock both shared and exclusive; those have two names.
	slices.SortFunc(out.holds, func(a, b hold) int { return strings.Compare(a.obs.Key, b.obs.Key) })
	return out
}

// hold makes a lock of a row. Locks are all those of its session.
func (r *advisoryRow) hold(at time.Time, database string, locks []string, waiting []*advisoryRow, digest locksteward.DigestKey) hold {
	name := r.name(database)
	o := locksteward.Observation{
		Key: name, Type: TypeAdvisory, At: at, Lifetime: locksteward.LifetimeSession, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt,
		Idle: -1, Kind: locksteward.KindLock, Count: 1,
		Holder: locksteward.Holder{App: strings.ToValidUTF8(r.app, "\uFFFD"), Host: r.addr, Session: strconv.FormatInt(r.pid, 10)},
	}
	o.Library, o.Confidence = advisoryLibrary(r.key, database, r.user, r.do)
	switch {
	case r.pid == 0:
		o.Type, o.Identity, o.Holder = TypeAdvisoryPrepared, locksteward.IdentityNone, locksteward.Holder{}
		o.TokenDigest = digest.Value([]byte("prepared " + r.vxid))
	default:
		// The session is known beyond doubt, but it may have given the lock up and taken it again.
		o.Identity = locksteward.IdentityLineage
		o.TokenDigest = digest.Value(fmt.Appendf(nil, "session %d %d", r.pid, r.start))
		o.Session = &locksteward.Session{
			ID: o.Holder.Session, User: r.user, Addr: r.addr, Since: moment(r.start), State: postgresSession(r.state), StateSince: moment(r.changed),
			Locks: slices.DeleteFunc(slices.Clone(locks), func(l string) bool { return l == name }),
		}
		if !r.visible {
			o.Identity = locksteward.IdentityNone
		}
	}
	if r.shared {
		o.Mode = "read"
	}
	h := hold{obs: o, session: r}
	for _, w := range waiting {
		if r.shared && w.shared {
			continue // it waits for another waiter
		}
		since := moment(w.waitstart)
		if since.IsZero() {
			since = moment(w.changed) // its statement began then
		}
		h.waiters = append(h.waiters, locksteward.Waiter{
			Key: name, ID: fmt.Sprintf("%d-%d %s", w.pid, w.start, name), Session: strconv.FormatInt(w.pid, 10),
			App: strings.ToValidUTF8(w.app, "\uFFFD"), Host: w.addr, Since: since,
		})
	}
	h.obs.Waiters = len(h.waiters)
	return h
}

func moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func postgresSession(state string) locksteward.SessionState {
	switch state {
	case "active", "fastpath function call":
		return locksteward.SessionActive
	case "idle":
		return locksteward.SessionIdle
	case "idle in transaction", "idle in transaction (aborted)":
		return locksteward.SessionInTransaction
	}
	return ""
}

// addrs implements dialect.
func (postgres) addrs(ctx context.Context, db querier) (map[string]int, error) {
	rows, err := db.QueryContext(ctx, `SELECT coalesce(host(client_addr), ''), count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1 LIMIT 100000`)
	if err != nil {
		return nil, fmt.Errorf("read pg_stat_activity: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]int{}
	for rows.Next() {
		var addr string
		var n int
		if err := rows.Scan(&addr, &n); err != nil {
			return nil, fmt.Errorf("read pg_stat_activity: %w", err)
		}
		out[addr] = n
	}
	return out, rows.Err()
}

// limits implements dialect.
func (postgres) limits(hold locksteward.Evidence) source.Limits {
	switch {
	case hold.Type == TypeAdvisoryPrepared:
		return source.Limits{Release: refused("%q belongs to a prepared transaction, which no session holds; end that with COMMIT PREPARED or ROLLBACK PREPARED (pg_prepared_xacts)", hold.Key)}
	case hold.Identity == locksteward.IdentityNone:
		return source.Limits{Release: refused("the start of the session that holds %q cannot be seen, so it cannot be compared; grant pg_read_all_stats", hold.Key)}
	}
	return sessionLimits()
}

// sessionLimits are those of locks that are released by the end of a database session.
func sessionLimits() source.Limits {
	return source.Limits{
		Decision: "it ends the whole database session of its holder with all its locks, and its open transaction is rolled back; " +
			"the session may have given the lock up and taken it again meanwhile",
		Placeholder: "nobody else can take it for its holder",
		Undo:        "a session that was ended cannot be brought back",
	}
}
