package sqlsource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/source"
)

// Check is one thing that an operator may want to know of a login.
type Check struct {
	// Name says what was checked, Detail what was found: where it is not OK, what is missing, what is
	// not seen or done without it, and the remedy.
	Name, Detail string
	OK           bool
}

// Check reports what of the database can be read.
func (s *Source) Check(ctx context.Context) []Check {
	st, err := s.now(ctx, s.db)
	if err != nil {
		return []Check{{Name: "database", Detail: s.Explain(err)}}
	}
	out := []Check{{Name: "database", OK: true, Detail: fmt.Sprintf("reached %s, server version %s", s.addr, s.dialect.versionText(st))}}
	plan, err := s.look(ctx, s.db, st)
	if err != nil {
		return append(out, Check{Name: "tables", Detail: s.Explain(err)})
	}
	for _, p := range plan.parts {
		c := Check{Name: "session locks", OK: true, Detail: "can be read"}
		if p != plan.parts[0] {
			c.Name = strings.TrimPrefix(p.node, s.addr+" ")
		}
		if _, err := s.read(ctx, s.db, p, st, nil); err != nil {
			c.OK, c.Detail = false, s.Explain(err)
		}
		out = append(out, c)
	}
	for _, note := range plan.degraded {
		out = append(out, Check{Name: "rights", Detail: note})
	}
	return out
}

// Check reports what in the database can be released.
func (r *Releaser) Check(ctx context.Context) []Check {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return []Check{{Name: "database", Detail: r.Explain(err)}}
	}
	defer func() { _ = conn.Close() }()
	st, err := r.now(ctx, conn)
	if err != nil {
		return []Check{{Name: "database", Detail: r.Explain(err)}}
	}
	out := []Check{{Name: "database", OK: true, Detail: "reached " + r.addr}}
	if st.readOnly != "" {
		out[0] = Check{Name: "database", Detail: st.readOnly}
	}
	c := Check{Name: "session locks", OK: true, Detail: "sessions can be ended, but for those of superusers"}
	ends, err := r.dialect.mayEnd(ctx, conn, st)
	switch {
	case err != nil:
		c.OK, c.Detail = false, r.Explain(err)
	case ends != "":
		c.OK, c.Detail = false, ends
	}
	out = append(out, c)
	plan, err := r.look(ctx, conn, st)
	if err != nil {
		return append(out, Check{Name: "tables", Detail: r.Explain(err)})
	}
	for _, p := range plan.parts[1:] {
		c := Check{Name: strings.TrimPrefix(p.node, r.addr+" "), OK: true, Detail: "rows can be released"}
		switch {
		case p.err != nil:
			c.OK, c.Detail = false, r.Explain(p.err)
		case p.table.Release == "":
			c.Detail = "rows are read and never released"
		default:
			may, err := r.dialect.mayFree(ctx, conn, p.table)
			if err != nil {
				c.OK, c.Detail = false, r.Explain(err)
			} else if !may || !p.table.rel.readable {
				c.OK, c.Detail = false, "rows cannot be released: a right is missing; grant what `locksteward acl` prints"
			}
		}
		out = append(out, c)
	}
	for _, note := range plan.degraded {
		out = append(out, Check{Name: "rights", Detail: note})
	}
	return out
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
func (d *database) tables(ctx context.Context) ([]*lockTable, error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	all := append(slices.Clone(d.opts.Tables), Shipped()...)
	relations, err := d.dialect.relations(ctx, d.db, names(all))
	if err != nil {
		return nil, err
	}
	var out []*lockTable
	for _, rel := range relations {
		if p, _, _ := d.partOf(all, rel); p != nil && p.table != nil {
			out = append(out, p.table)
		}
	}
	return out, nil
}
