package sqlsource

import (
	"context"
	"fmt"
	"strings"
)

// unseen implements dialect.
func (mysqlDialect) unseen(st state) []string {
	var out []string
	if !st.sessions && st.mysql.lists != listPerformance {
		out = append(out, "sessions of other users are hidden: who holds user locks, since when it is idle and who waits is not seen, so that nothing is found stranded or dead; grant PROCESS")
	} else if !st.sessions {
		out = append(out, "the process list is hidden: no holder of a row is found dead; grant PROCESS")
	}
	if st.mysql.lists == listNames {
		how := "set performance_schema = ON and grant SELECT on it"
		if st.mysql.maria {
			how = "run INSTALL SONAME 'metadata_lock_info'"
		}
		out = append(out, "user locks (GET_LOCK) are not listed: those of migration tools are asked for by name, and those that a class names in full (match: [\"getlock:NAME\"]), others are not seen; "+how)
	}
	return out
}

// rights implements dialect.
func (d mysqlDialect) rights(st state, tables []*lockTable, note string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if note != "" {
		line("-- %s", strings.ReplaceAll(note, "\n", " "))
		line("-- For each lock table of yours: GRANT SELECT ON it to both users, and what frees its rows to %s.", releaseRole)
	}
	maria, unknown := st.mysql.maria, st.version == 0
	create := func(user string) {
		line("CREATE USER '%s'@'%%' ACCOUNT LOCK; -- set a password: ALTER USER '%s'@'%%' IDENTIFIED BY '…' ACCOUNT UNLOCK", user, user)
	}
	grants := func(user string, releases bool) {
		if !maria {
			line("GRANT SELECT ON performance_schema.* TO '%s'@'%%';", user)
		}
		for _, t := range tables {
			line("GRANT SELECT ON %s TO '%s'@'%%';", t.from(), user)
			if right := t.freesWith(); releases && right != "" {
				line("GRANT %s ON %s TO '%s'@'%%';", right, t.from(), user)
			}
		}
	}
	line("-- Who reads: sees locks, who holds them, who waits. In place of '%%' write the hosts of the agents.")
	create(readRole)
	line("-- Without it the sessions of others are hidden.")
	line("GRANT PROCESS ON *.* TO '%s'@'%%';", readRole)
	if maria && st.mysql.lists != listPlugin || unknown {
		line("-- MariaDB lists user locks (GET_LOCK) with a plugin that comes with it, once for all users:")
		line("-- INSTALL SONAME 'metadata_lock_info';")
	}
	grants(readRole, false)
	line("")
	line("-- Who releases: frees rows, and ends sessions that hold user locks.")
	create(releaseRole)
	ends := "CONNECTION_ADMIN"
	if maria {
		ends = "CONNECTION ADMIN"
	}
	line("GRANT PROCESS, %s ON *.* TO '%s'@'%%';", ends, releaseRole)
	if unknown {
		line("-- In MariaDB: GRANT PROCESS, CONNECTION ADMIN ON *.* TO '%s'@'%%'; and nothing on performance_schema.", releaseRole)
	}
	grants(releaseRole, true)
	return b.String()
}

// mayEnd implements dialect.
func (mysqlDialect) mayEnd(_ context.Context, _ querier, st state) (missing string, err error) {
	switch {
	case st.mysql.kills:
		return "", nil
	case st.mysql.maria:
		return "sessions of other users cannot be ended; grant CONNECTION ADMIN", nil
	}
	return "sessions of other users cannot be ended; grant CONNECTION_ADMIN", nil
}

// mayFree implements dialect: to explain a statement takes the rights to run it.
func (d mysqlDialect) mayFree(ctx context.Context, db querier, t *lockTable) (bool, error) {
	statement, params, err := t.releaseStatement()
	if err != nil || statement == "" {
		return false, err
	}
	rows, err := db.QueryContext(ctx, "EXPLAIN "+statement, make([]any, params)...)
	if d.denied(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, rows.Close()
}
