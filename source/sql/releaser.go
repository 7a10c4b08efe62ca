package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Releaser frees holds in one database: it changes a row if it is the one that was approved, or ends
// a session. It keeps in memory what became of the last requests; the database has no record of them.
type Releaser struct {
	*database
	// connect opens a connection; end closes it.
	connect func(ctx context.Context) (conn *sql.Conn, end func(), err error)
	slots   chan struct{} // has a token for each connection that is open

	mu      sync.Mutex // guards what follows; never held over I/O
	records map[string]*record
	order   []string // of the records
}

// maxConnections bounds the connections of a releaser.
const maxConnections = 4

var _ source.Releaser = (*Releaser)(nil)

// OpenReleaser returns the releaser of the database of a login. It connects while a method runs.
func OpenReleaser(login source.Login, opts Options) (*Releaser, error) {
	d, db, err := openDatabase(login, opts, true)
	if err != nil {
		return nil, err
	}
	if err := closeDB(db); err != nil { // the settings are good
		return nil, err
	}
	return &Releaser{
		database: d,
		connect:  func(ctx context.Context) (*sql.Conn, func(), error) { return d.openConnection(ctx, login) },
		slots:    make(chan struct{}, maxConnections),
		records:  map[string]*record{},
	}, nil
}

// openConnection opens a connection that may change something; end closes it.
func (d *database) openConnection(ctx context.Context, login source.Login) (conn *sql.Conn, end func(), err error) {
	db, _, err := d.dialect.open(login, d.opts.Timeout, true)
	if err != nil {
		return nil, nil, err
	}
	if conn, err = db.Conn(ctx); err != nil {
		_ = closeDB(db)
		return nil, nil, err
	}
	return conn, func() { // the work was done before, or was not
		_ = conn.Close()
		_ = closeDB(db)
	}, nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrRefused, fmt.Sprintf(format, args...))
}

// Limits implements [source.Releaser].
func (r *Releaser) Limits(hold locksteward.Evidence) source.Limits {
	if hold.Type != typeRow && hold.Type != locksteward.TypeDirtyMigration {
		return r.dialect.limits(hold)
	}
	name := locksteward.DisplayKey(hold.Key)
	limits := source.Limits{
		Placeholder: "a row cannot be held by nobody",
		Undo:        "what the row was is not kept",
	}
	if hold.TokenDigest == "" {
		limits.Release = refused("%q was not read in full, so it cannot be compared", name)
	}
	var decision []string
	if hold.ExpireAt == locksteward.NoExpireAt {
		decision = append(decision, "its holder does not learn of it: if it still works, two work at once; look whether it does")
	}
	if r.dialect.version() == "" && hold.Identity != locksteward.IdentityStrong {
		decision = append(decision, "rows of this database have no version: a later hold with the same values would be taken for this one")
	}
	limits.Decision = strings.Join(decision, "; ")
	why := ""
	for _, t := range append(slices.Clone(r.opts.Tables), Shipped()...) {
		if t.Library != hold.Library || t.dirty != (hold.Type == locksteward.TypeDirtyMigration) {
			continue
		}
		if t.Release != "" {
			return limits
		}
		why = t.noRelease
	}
	if why == "" {
		why = "no description of a table of " + hold.Library + " has a release statement"
	}
	limits.Release = refused("%q cannot be released: %s", name, why)
	return limits
}

// Preview implements [source.Releaser].
func (r *Releaser) Preview(ctx context.Context, req locksteward.Request) (source.Preview, error) {
	var out source.Preview
	err := r.with(ctx, func(ctx context.Context, conn *sql.Conn) error {
		now, err := r.lookAt(ctx, conn, req.Evidence.Key)
		if err != nil || now.hold == nil {
			return err
		}
		out.Found, out.Now = true, now.evidence(req.Evidence)
		out.Differences = source.Differences(req.Evidence, out.Now)
		if out.Refusal = now.refusal(); out.Refusal == nil {
			out.Refusal = r.Limits(out.Now).Release
		}
		if now.hold.obs.Session != nil {
			out.AlsoEnds = slices.Clone(now.hold.obs.Session.Locks)
		}
		out.Keys = []string{req.Evidence.Key}
		if now.part.table == nil {
			out.Script, out.Args = r.dialect.endsWith(now.state, now.hold)
			return nil
		}
		out.Script, out.Args = now.part.table.shows(now.hold)
		return nil
	})
	if err != nil {
		return source.Preview{}, fmt.Errorf("preview release: %s", r.Explain(err))
	}
	return out, nil
}

// with runs fn on a connection of its own, within the timeout, and ends the connection.
func (r *Releaser) with(ctx context.Context, fn func(ctx context.Context, conn *sql.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*r.opts.Timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.slots }()
	conn, end, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer end()
	return fn(ctx, conn)
}

// standing is a lock as it stands now; hold is nil if nobody holds it.
type standing struct {
	state state
	part  *part
	hold  *hold
}

func (r *Releaser) lookAt(ctx context.Context, conn *sql.Conn, name string) (standing, error) {
	var out standing
	var err error
	if out.state, err = r.now(ctx, conn); err != nil {
		return out, err
	}
	plan, err := r.look(ctx, conn, out.state)
	if err != nil {
		return out, err
	}
	i := slices.IndexFunc(plan.parts, func(p *part) bool { return plan.owner(p)(name) })
	if i < 0 {
		return out, errNoPart
	}
	out.part = plan.parts[i]
	snap, err := r.read(ctx, conn, out.part, out.state, []string{name})
	if err != nil {
		return out, err
	}
	if i := slices.IndexFunc(snap.holds, func(h hold) bool { return h.obs.Key == name }); i >= 0 {
		out.hold = &snap.holds[i]
	}
	return out, nil
}

// refusal is why the lock cannot be released now.
func (s standing) refusal() error {
	if s.state.readOnly != "" {
		return refused("%s", s.state.readOnly)
	}
	if t := s.part.table; t != nil && t.Release == "" {
		return refused("the rows of %s cannot be released: no release statement is described", t.name())
	} else if t != nil && t.rel.fixed != "" {
		return refused("the rows of %s cannot be released: %s", t.name(), t.rel.fixed)
	}
	return nil
}

// evidence is what a request freezes of the hold; was is its own.
func (s standing) evidence(was locksteward.Evidence) locksteward.Evidence {
	o := &s.hold.obs
	return locksteward.Evidence{
		Target: was.Target, DB: was.DB, Class: was.Class, Key: o.Key, Library: o.Library, Type: o.Type, Identity: o.Identity, TokenDigest: o.TokenDigest,
		ExpireAt: o.ExpireAt, Count: o.Count, Holder: o.Holder, At: o.At.UTC(), SharedToken: o.SharedToken, HolderAlive: was.HolderAlive,
	}
}

// Release implements [source.Releaser].
func (r *Releaser) Release(ctx context.Context, req locksteward.Request) (source.Outcome, error) {
	rec, first := r.record(req.ID)
	if !first {
		return r.again(ctx, req, rec)
	}
	out, err := r.release(ctx, req, rec)
	if err == nil {
		r.finish(rec, out)
	}
	return out, err
}

func (r *Releaser) release(ctx context.Context, req locksteward.Request, rec *record) (source.Outcome, error) {
	ev := req.Evidence
	switch {
	case ev.Act == locksteward.ActUndo || ev.Act == locksteward.ActLift:
		return source.Failed("releases in a database cannot be undone, and leave nothing that could be lifted"), nil
	case ev.Act == locksteward.ActTakeOver || ev.Placeholder > 0:
		return source.Failed("nothing can be put in the place of a lock in a database"), nil
	}
	var out source.Outcome
	err := r.with(ctx, func(ctx context.Context, conn *sql.Conn) error {
		if err := r.dialect.name(ctx, conn, req.ID); err != nil {
			return err
		}
		now, err := r.lookAt(ctx, conn, ev.Key)
		if err != nil {
			return err
		}
		if now.hold == nil {
			out = source.Outcome{State: locksteward.RequestAlreadyGone, ConfirmedBy: source.ConfirmedByAnswer}
			return nil
		}
		is := now.evidence(ev)
		if diff := source.Differences(ev, is); len(diff) > 0 {
			out = source.Outcome{State: locksteward.RequestChanged, Differences: diff}
			return nil
		}
		for _, why := range []error{now.refusal(), r.Limits(is).Release} {
			if why != nil {
				out = source.Failed(why.Error())
				return nil
			}
		}
		if now.part.table != nil {
			out, err = r.free(ctx, conn, now, rec)
		} else {
			out, err = r.end(ctx, conn, now, rec)
		}
		return err
	})
	r.mu.Lock()
	transaction, sent := rec.transaction, rec.sent
	r.mu.Unlock()
	switch {
	case err == nil:
		return out, nil
	case transaction != "":
		return r.Resolve(ctx, req)
	case sent:
		return source.Outcome{}, fmt.Errorf("release: %s", r.Explain(err))
	case errors.Is(err, errRuns):
		return source.Outcome{}, fmt.Errorf("release: %w", err)
	}
	// No commit was sent and no session was asked to end: what the connection did before ended with it.
	return source.Failed(r.Explain(err)), nil
}

// changed is the outcome of a release whose statement met another hold than the one that was read.
func changed() source.Outcome {
	return source.Outcome{
		State: locksteward.RequestChanged, ConfirmedBy: source.ConfirmedByAnswer,
		Differences: []string{"it changed in the moment of the release"},
	}
}

// free changes the row of a hold.
func (r *Releaser) free(ctx context.Context, conn *sql.Conn, now standing, rec *record) (source.Outcome, error) {
	statement, args, err := now.part.table.frees(now.hold)
	if err != nil {
		return source.Outcome{}, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return source.Outcome{}, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return source.Outcome{}, err
	}
	n, err := result.RowsAffected()
	switch {
	case err != nil:
		return source.Outcome{}, err
	case n == 0:
		return changed(), nil
	case n > 1:
		return source.Failed(fmt.Sprintf("%d rows of %s are the same: nobody can say which is meant", n, now.part.table.name())), nil
	}
	id, err := r.dialect.transaction(ctx, tx)
	if err != nil {
		return source.Outcome{}, err
	}
	r.mu.Lock()
	rec.transaction, rec.sent = id, true
	r.mu.Unlock()
	if err := tx.Commit(); err != nil {
		return source.Outcome{}, err
	}
	return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByAnswer}, nil
}

// end ends the session of a hold.
func (r *Releaser) end(ctx context.Context, conn *sql.Conn, now standing, rec *record) (source.Outcome, error) {
	r.mu.Lock()
	rec.sent = true
	r.mu.Unlock()
	sent, err := r.dialect.endSession(ctx, conn, now.state, now.hold)
	switch {
	case err != nil && r.dialect.denied(err):
		return source.Failed(r.Explain(err)), nil
	case errors.Is(err, errStillThere):
		return source.Unknown(err.Error()), nil
	case err != nil:
		return source.Outcome{}, err
	case !sent:
		return changed(), nil
	}
	return source.Outcome{State: locksteward.RequestReleased, ConfirmedBy: source.ConfirmedByAnswer, WaitersWoken: int64(len(now.hold.waiters))}, nil
}
