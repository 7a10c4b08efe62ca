package sqlsource

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/source"
)

// Check reports what of the database can be read. A check that fails says what is missing, what is
// not seen without it, and what to do.
func (s *Source) Check(ctx context.Context) []source.Check {
	st, err := s.now(ctx, s.db)
	if err != nil {
		return []source.Check{source.CheckFailed("database", s.Explain(err), "")}
	}
	out := []source.Check{source.CheckOK("database", fmt.Sprintf("reached %s, server version %s", s.addr, s.dialect.versionText(st)))}
	plan, err := s.look(ctx, s.db, st)
	if err != nil {
		return append(out, source.CheckFailed("tables", s.Explain(err), ""))
	}
	for i, p := range plan.parts {
		name := "session locks"
		if i > 0 {
			name = strings.TrimPrefix(p.node, s.addr+" ")
		}
		if _, err := s.read(ctx, s.db, p, st, nil); err != nil {
			out = append(out, source.CheckFailed(name, s.Explain(err), ""))
		} else {
			out = append(out, source.CheckOK(name, "can be read"))
		}
	}
	return append(out, rightsChecks(plan)...)
}

// rightsChecks are about what the plan does without.
func rightsChecks(p plan) []source.Check {
	var out []source.Check
	for _, note := range p.degraded {
		out = append(out, source.CheckFailed("rights", note, ""))
	}
	return out
}

// Check reports what in the database can be released.
func (r *Releaser) Check(ctx context.Context) []source.Check {
	var out []source.Check
	err := r.with(ctx, func(ctx context.Context, conn *sql.Conn) error {
		st, err := r.now(ctx, conn)
		if err != nil {
			return err
		}
		if st.readOnly != "" {
			out = append(out, source.CheckFailed("database", st.readOnly, ""))
		} else {
			out = append(out, source.CheckOK("database", "reached "+r.addr))
		}
		switch ends, err := r.dialect.mayEnd(ctx, conn, st); {
		case err != nil:
			out = append(out, source.CheckFailed("session locks", r.Explain(err), ""))
		case ends != "":
			out = append(out, source.CheckFailed("session locks", ends, ""))
		default:
			out = append(out, source.CheckOK("session locks", "sessions can be ended, but for those of superusers"))
		}
		plan, err := r.look(ctx, conn, st)
		if err != nil {
			out = append(out, source.CheckFailed("tables", r.Explain(err), ""))
			return nil
		}
		for _, p := range plan.parts[1:] {
			out = append(out, r.checkTable(ctx, conn, p))
		}
		out = append(out, rightsChecks(plan)...)
		return nil
	})
	if err != nil {
		return []source.Check{source.CheckFailed("database", r.Explain(err), "")}
	}
	return out
}

// checkTable reports whether the rows of a table can be released.
func (r *Releaser) checkTable(ctx context.Context, conn *sql.Conn, p *part) source.Check {
	name := strings.TrimPrefix(p.node, r.addr+" ")
	switch {
	case p.err != nil:
		return source.CheckFailed(name, r.Explain(p.err), "")
	case p.table.Release == "":
		return source.CheckOK(name, "rows are read and never released")
	}
	may, err := r.dialect.mayFree(ctx, conn, p.table)
	switch {
	case err != nil:
		return source.CheckFailed(name, r.Explain(err), "")
	case !may || !p.table.rel.readable:
		return source.CheckFailed(name, "rows cannot be released: a right is missing", "grant what `locksteward acl` prints")
	}
	return source.CheckOK(name, "rows can be released")
}

// Rights returns the statements that grant the least rights to a role that reads and to one that
// releases, for the lock tables that the database has. It asks the database for these, as any role
// may; if it cannot, all that are known stand there as comments.
func Rights(ctx context.Context, login source.Login, opts Options) (string, error) {
	s, err := Open(login, opts)
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	var tables []*lockTable
	note := ""
	st, err := s.now(ctx, s.db)
	if err == nil {
		tables, err = s.tables(ctx)
	}
	if err != nil {
		note = "the database was not asked which lock tables it has: " + s.Explain(err)
	}
	return s.dialect.rights(st, tables, note), nil
}

// tables returns all lock tables of the database, whether they may be read or not.
func (s *Source) tables(ctx context.Context) ([]*lockTable, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	all := append(slices.Clone(s.opts.Tables), Shipped()...)
	relations, err := s.dialect.relations(ctx, s.db, names(all))
	if err != nil {
		return nil, err
	}
	var out []*lockTable
	for _, rel := range relations {
		if p, _, _ := s.partOf(all, rel); p != nil && p.table != nil {
			out = append(out, p.table)
		}
	}
	return out, nil
}
