package sqlsource

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

// Source reads one database. See [Open].
type Source struct {
	*database
	db *sql.DB

	host    source.Host
	classes atomic.Pointer[class.Set]
	watch   *watch

	mu     sync.Mutex // guards what follows; never held over I/O
	plan   plan
	state  state
	absent map[string]absence // by address
	// rest is when the next sweep may begin, so that reading takes a small share of the server's time.
	rest time.Time
}

var _ source.Source = (*Source)(nil)

// share is for how many times its own duration a read is followed by none: 2 % of the time.
const share = 50

// part is what is read at once: the session locks, or a table.
type part struct {
	node   string
	prefix string
	table  *lockTable // nil: the session locks
	err    error      // why it cannot be read at all
	// names are those that a class names or that are known; nil for none.
	names func() []string
}

// plan is what there is to read in a database.
type plan struct {
	parts []*part // the session locks first; empty: not known yet
	// closed are tables that may not be read.
	closed []*part
	// degraded says in sentences what cannot be seen.
	degraded []string
}

// absence is an address of which holders are connected no more.
type absence struct {
	since time.Time
	looks int
}

// Bind implements [source.Source].
func (s *Source) Bind(host source.Host) { s.host = host }

// Traits implements [source.Source].
func (*Source) Traits() source.Traits {
	return source.Traits{
		Lifetimes: []locksteward.Lifetime{locksteward.LifetimeLease, locksteward.LifetimePersistent, locksteward.LifetimeSession},
		Watch:     true, Waiters: true,
	}
}

// Topology implements [source.Source].
func (*Source) Topology() locksteward.Mode { return "" }

// DB implements [source.Source].
func (*Source) DB() int { return 0 }

// SetClasses implements [source.Source].
func (s *Source) SetClasses(classes *class.Set) { s.classes.Store(classes) }

// Renewed implements [source.Source]: the password is read before each connection.
func (*Source) Renewed() <-chan struct{} { return nil }

// Ready implements [source.Source].
func (s *Source) Ready(at time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.rest.Sub(at))
}

// Stats implements [source.Source].
func (s *Source) Stats() source.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return source.Stats{Pace: map[string]pace.State{}, Degraded: slices.Clone(s.plan.degraded)}
}

// Explain implements [source.Source].
func (d *database) Explain(err error) string {
	if err == nil {
		return ""
	}
	if own, ok := errors.AsType[*tooManyError](err); ok {
		return own.Error()
	}
	if own, ok := errors.AsType[*oldError](err); ok {
		return own.Error()
	}
	if errors.Is(err, ErrTable) || errors.Is(err, errRuns) || errors.Is(err, errNoPart) {
		return err.Error()
	}
	if reason := d.dialect.explain(err); reason != "" {
		return reason
	}
	dns, _ := errors.AsType[*net.DNSError](err)
	timeout, _ := errors.AsType[net.Error](err)
	untrusted, _ := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case untrusted != nil:
		return "the server's certificate is not trusted: " + locksteward.DisplayKey(untrusted.Err.Error()) + "; correct ca_file, tls_server_name or the certificate"
	case errors.Is(err, context.Canceled):
		return "it was interrupted; nothing to do"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: no server listens there; start it or correct the address"
	case errors.Is(err, os.ErrNotExist):
		return "the socket does not exist; start the server or correct the path"
	case dns != nil:
		return "the name " + locksteward.DisplayKey(dns.Name) + " cannot be resolved; correct it or the DNS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), timeout != nil && timeout.Timeout():
		return "no answer in time; look whether the server is overloaded, paused or behind a firewall"
	}
	const most = 200
	text := locksteward.DisplayKey(strings.Join(strings.Fields(err.Error()), " "))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text + "; look at the server's log"
}

// find looks for the lock tables of the database and returns what there is to read now.
func (s *Source) find(ctx context.Context, st state) (plan, error) {
	next, err := s.look(ctx, s.db, st)
	if err != nil {
		return plan{}, err
	}
	next.parts[0].names = func() []string { return s.sessionNames(next) }
	s.mu.Lock()
	before := s.plan
	s.mu.Unlock()
	if err := s.hidden(ctx, before, &next); err != nil {
		return plan{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan, s.state = next, st
	return next, nil
}

// sessionNames are the names of session locks that a class names in full or that are known.
func (s *Source) sessionNames(plan plan) []string {
	var out []string
	prefix := plan.parts[0].prefix
	if classes := s.classes.Load(); classes != nil {
		for _, c := range classes.All() {
			for _, pattern := range c.Match {
				if strings.HasPrefix(pattern, prefix) && class.LiteralPrefix(pattern) == pattern {
					out = append(out, pattern)
				}
			}
		}
	}
	s.host.Each(func(k source.Known) {
		if strings.HasPrefix(k.Name, prefix) {
			out = append(out, k.Name)
		}
	})
	return out
}

// hidden adds the tables that were read before and are not in the catalogue any more because the role
// lost its last right on them: MySQL does not show those.
func (s *Source) hidden(ctx context.Context, before plan, next *plan) error {
	for _, p := range append(slices.Clone(before.closed), before.parts...) {
		if p.table == nil || slices.ContainsFunc(append(slices.Clone(next.closed), next.parts...), func(o *part) bool { return o.prefix == p.prefix }) {
			continue
		}
		err := s.probe(ctx, p.table)
		switch {
		case err == nil || s.dialect.missing(err):
		case s.dialect.denied(err):
			next.close(p)
		default:
			return err
		}
	}
	return nil
}

// probe asks for nothing of a table.
func (s *Source) probe(ctx context.Context, t *lockTable) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, "SELECT 1 FROM "+t.from()+" LIMIT 0")
	if err != nil {
		return err
	}
	return errors.Join(rows.Err(), rows.Close())
}

// close notes that a table may not be read.
func (l *plan) close(p *part) {
	l.closed = append(l.closed, p)
	l.degraded = append(l.degraded, fmt.Sprintf("table %s of %s may not be read; grant what `locksteward acl` prints", p.table.name(), p.table.Library))
}

// look looks for the lock tables of the database.
func (d *database) look(ctx context.Context, db querier, st state) (plan, error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	tables := append(slices.Clone(d.opts.Tables), Shipped()...)
	relations, err := d.dialect.relations(ctx, db, names(tables))
	if err != nil {
		return plan{}, err
	}
	out := plan{parts: []*part{{node: d.addr, prefix: d.dialect.prefix()}}}
	found := map[int]bool{}
	for _, rel := range relations {
		p, i, closed := d.partOf(tables, rel)
		found[i] = true
		switch {
		case p == nil:
		case closed:
			out.close(p)
		case slices.ContainsFunc(out.parts, func(o *part) bool {
			return strings.HasPrefix(o.prefix, p.prefix) || strings.HasPrefix(p.prefix, o.prefix)
		}):
			out.degraded = append(out.degraded, fmt.Sprintf("table %s.%s is not read: its locks would have the names of another table's; give it a prefix of its own", rel.schema, rel.table))
		default:
			out.parts = append(out.parts, p)
		}
	}
	for i, t := range d.opts.Tables {
		if !found[i] {
			err := fmt.Errorf("%w %s: database %q has no such table; correct the name, or remove the description", ErrTable, t.Table, st.database)
			out.parts = append(out.parts, &part{node: d.addr + " " + t.Table, prefix: cmp.Or(t.Prefix, t.Table+":"), err: err})
		}
	}
	out.degraded = append(out.degraded, d.dialect.unseen(st)...)
	return out, nil
}

// names returns the names of tables, in lower case.
func names(tables []Table) []string {
	var out []string
	for _, t := range tables {
		_, name := t.split()
		out = append(out, strings.ToLower(name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// partOf returns the part that a relation is by the first description that fits, whose number is i;
// nil if none does. Closed says that it may not be read and nobody asked for it.
func (d *database) partOf(tables []Table, rel relation) (p *part, i int, closed bool) {
	for i, t := range tables {
		schema, name := t.split()
		if !strings.EqualFold(name, rel.table) || schema != "" && !strings.EqualFold(schema, rel.schema) {
			continue
		}
		own := i < len(d.opts.Tables)
		table, err := fit(d.dialect, t, rel)
		switch {
		case err != nil && !own && rel.partly:
			table = &lockTable{Table: t, rel: rel, prefix: rel.schema + "." + rel.table + ":", dialect: d.dialect}
			return &part{node: d.addr + " " + table.name(), prefix: table.prefix, table: table}, i, true
		case err != nil && !own:
			continue // a table of another library that has the name
		case err != nil:
			return &part{node: d.addr + " " + rel.schema + "." + rel.table, prefix: cmp.Or(t.Prefix, rel.schema+"."+rel.table+":"), err: err}, i, false
		}
		return &part{node: d.addr + " " + table.name(), prefix: table.prefix, table: table}, i, !rel.readable && !own
	}
	return nil, -1, false
}

// read reads one part; with names, at least the locks of those.
func (d *database) read(ctx context.Context, db querier, p *part, st state, names []string) (snapshot, error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	switch {
	case p.err != nil:
		return snapshot{}, p.err
	case p.table != nil:
		return p.table.read(ctx, db, names, d.opts.MaxLocks, d.opts.Digest)
	default:
		return d.dialect.sessionLocks(ctx, db, st, func() []string {
			if p.names == nil {
				return names
			}
			return append(slices.Clone(names), p.names()...)
		}, d.opts.MaxLocks, d.opts.Digest)
	}
}
