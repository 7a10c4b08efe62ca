package sqlsource

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Roles of the rights that [Rights] prints.
const (
	readRole    = "locksteward"
	releaseRole = "locksteward_release"
)

// rights implements dialect.
func (d postgres) rights(st state, tables []*lockTable, note string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if note != "" {
		line("-- %s", strings.ReplaceAll(note, "\n", " "))
		line("-- For each lock table of yours: GRANT SELECT ON it to both roles, and what frees its rows to %s.", releaseRole)
	}
	line("-- Who reads: sees locks, who holds them, who waits. Set a password with \\password %s.", readRole)
	line("CREATE ROLE %s LOGIN;", readRole)
	line("-- Without it the start, state and address of sessions are hidden.")
	line("GRANT pg_read_all_stats TO %s;", readRole)
	grants := func(role string, releases bool) {
		if st.database != "" {
			line("GRANT CONNECT ON DATABASE %s TO %s;", d.quote(st.database), role)
		}
		for i, t := range tables {
			if !slices.ContainsFunc(tables[:i], func(o *lockTable) bool { return o.rel.schema == t.rel.schema }) {
				line("GRANT USAGE ON SCHEMA %s TO %s;", d.quote(t.rel.schema), role)
			}
		}
		for _, t := range tables {
			line("GRANT SELECT ON %s TO %s;", t.from(), role)
			if right := t.freesWith(); releases && right != "" {
				line("GRANT %s ON %s TO %s;", right, t.from(), role)
			}
		}
	}
	grants(readRole, false)
	line("")
	line("-- Who releases: frees rows, and ends sessions that hold advisory locks (not those of superusers).")
	line("CREATE ROLE %s LOGIN;", releaseRole)
	line("GRANT pg_read_all_stats, pg_signal_backend TO %s;", releaseRole)
	grants(releaseRole, true)
	return b.String()
}

// unseen implements dialect.
func (postgres) unseen(st state) []string {
	if st.sessions {
		return nil
	}
	return []string{"sessions of other users are seen in part: their start, state and address are hidden, so that nothing is found stranded and no session lock is released; grant pg_read_all_stats"}
}

// freesWith is the right that the release of a row needs beside SELECT; "" if it has none.
func (t *lockTable) freesWith() string {
	changes, remove, err := t.release()
	switch {
	case err != nil || len(changes) == 0 && !remove:
		return ""
	case remove:
		return "DELETE"
	}
	var columns []string
	for _, a := range changes {
		c, ok := t.rel.column(a.column)
		if !ok {
			c.name = a.column // which is hidden
		}
		columns = append(columns, t.dialect.quote(c.name))
	}
	return "UPDATE (" + strings.Join(columns, ", ") + ")"
}

// mayEnd implements dialect.
func (postgres) mayEnd(ctx context.Context, db querier, st state) (missing string, err error) {
	var signal bool
	err = db.QueryRowContext(ctx, `SELECT current_setting('is_superuser') = 'on' OR pg_has_role('pg_signal_backend', 'USAGE')`).Scan(&signal)
	switch {
	case err != nil:
		return "", err
	case !signal:
		return "sessions of other users cannot be ended; grant pg_signal_backend", nil
	case !st.sessions:
		return "the start of sessions cannot be compared, so that none is ended; grant pg_read_all_stats", nil
	}
	return "", nil
}

// mayFree implements dialect.
func (postgres) mayFree(ctx context.Context, db querier, t *lockTable) (bool, error) {
	changes, remove, err := t.release()
	if err != nil {
		return false, err
	}
	may := false
	if remove {
		err = db.QueryRowContext(ctx, `SELECT has_table_privilege($1::text, 'DELETE')`, t.from()).Scan(&may)
		return may, err
	}
	for _, a := range changes {
		c, _ := t.rel.column(a.column)
		if err := db.QueryRowContext(ctx, `SELECT has_column_privilege($1::text, $2::text, 'UPDATE')`, t.from(), c.name).Scan(&may); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// versionText implements dialect.
func (postgres) versionText(st state) string {
	return fmt.Sprintf("%d.%d", st.version/10000, st.version%10000)
}
