package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long one call waits for a server that does not answer.
const patience = 8 * time.Second

// Store is the agent's durable memory. Make one with [Open].
type Store struct {
	name     string // for error messages: the file, or host and database
	file     string // "" for a server
	on       *backend
	write    *pool
	read     *pool
	lines    *lines        // connections to a server; nil for a file
	creds    *credentials  // for them; likewise
	patience time.Duration // 0 for a file: its locks have their own bound
	gate     *gate
	doubt    *gate // for those that write to a file: see reopen
	pens     *pens
	// turn is read-locked by calls on a file, and locked while it is opened anew.
	turn           *sync.RWMutex
	closers        []io.Closer // keep a second agent out
	lock           *fileLock   // of a file; nil for a server
	held           *heldFile   // nil for a server
	aside          string      // see SetAside
	memory         *memory
	compose        *atomic.Pointer[Composer]
	onOutboxChange *atomic.Pointer[func()]
	// schema is the version that this program knows.
	schema int
	// fences, if set, has the lease under which a target is written.
	fences func(target string) (Lease, bool)
}

// Open opens the store at dsn ("sqlite:PATH" or "postgres://…"), creates what is
// not there and brings its schema up to date. An empty dsn is [DefaultDSN]. The
// caller closes the store.
func Open(ctx context.Context, dsn string) (*Store, error) {
	return OpenConfig(ctx, Config{DSN: dsn})
}

// OpenConfig is [Open] for a store as it is configured.
func OpenConfig(ctx context.Context, cfg Config) (*Store, error) {
	return open(ctx, cfg, limits{busy: busyTimeout, patience: patience})
}

// limits are how long things may take; tests have less time.
type limits struct{ busy, patience time.Duration }

func open(ctx context.Context, cfg Config, l limits) (_ *Store, err error) {
	where, err := parseDSN(cfg.dsn())
	if err != nil {
		return nil, fmt.Errorf("store.dsn: %w", err)
	}
	s := newStore()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if where.path != "" {
		err = s.openFile(ctx, where.path, l.busy, cfg.OnDamage == OnDamageSetAside)
	} else {
		s.patience = l.patience
		if err = s.openPostgres(where.url, cfg.PasswordFile); err == nil {
			err = s.explain("open store", s.migrate(ctx))
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openFile opens a file. One that is damaged is set aside, if that is wanted and an
// agent has written there: a dsn may also name a file of somebody else by mistake.
func (s *Store) openFile(ctx context.Context, path string, busy time.Duration, aside bool) error {
	if err := s.openSQLite(path, busy); err != nil {
		return err
	}
	err := s.beginFile(ctx, aside)
	if !aside || !errors.Is(err, ErrDamaged) || s.lock == nil || s.lock.mark == 0 {
		return err
	}
	if aerr := s.setAside(); aerr != nil {
		return errors.Join(err, aerr)
	}
	if err := s.openPools(busy); err != nil {
		return err
	}
	return s.beginFile(ctx, false)
}

// beginFile brings a file up to date, after a check if that is wanted.
func (s *Store) beginFile(ctx context.Context, check bool) error {
	if check {
		if err := s.quickCheck(ctx, "open store"); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx); err != nil {
		return s.explain("open store", err)
	}
	return s.compareWithMark(ctx)
}

// memory is what this process knows of the store beside what is in it.
type memory struct {
	trail  atomic.Int64           // how long the trail was when we wrote to it last
	origin atomic.Pointer[string] // see [Store.Older]
	behind atomic.Int64           // by how many entries a file was found shorter, and nobody was told
	health health
}

// wrote notes how long the trail is now.
func (s *Store) wrote(trail int64) {
	for was := s.memory.trail.Load(); was < trail && !s.memory.trail.CompareAndSwap(was, trail); {
		was = s.memory.trail.Load()
	}
	if s.lock != nil {
		// As long as it was, until its end: whoever finds it older is to be told so.
		s.lock.note(max(trail, s.lock.mark))
	}
}

func newStore() *Store {
	return &Store{gate: &gate{}, doubt: &gate{}, pens: pensOfFile(), turn: &sync.RWMutex{}, memory: &memory{}, compose: &atomic.Pointer[Composer]{}, onOutboxChange: &atomic.Pointer[func()]{}}
}

// Close ends all transactions and closes the store. It may be called once, and
// on what [Open] returned alone.
func (s *Store) Close() error {
	s.doubt.close()
	s.leaveMark()
	s.gate.close()
	if s.lines != nil && s.gate.enter("") != nil {
		s.lines.cut() // nobody is there to say farewell to
	}
	var errs []error
	if s.read != nil && s.read != s.write {
		errs = append(errs, s.read.db.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.db.Close())
	}
	if s.lines != nil {
		s.lines.cut()
		errs = nil // a farewell that a server did not hear is no loss
	}
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %q: %w", s.name, err)
	}
	return nil
}

// bounded is ctx with the end of our patience.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.patience)
}

// rowPatience is how much longer a call waits for each of many rows that it writes:
// a server that is at work on a storm is not away.
const rowPatience = 500 * time.Microsecond

// patient is a view of the store that waits for as long as so many rows may take.
func (s *Store) patient(rows int) *Store {
	if s.patience == 0 {
		return s
	}
	view := *s
	view.patience += time.Duration(rows) * rowPatience
	return &view
}

// inRead runs fn on the pool of readers.
func (s *Store) inRead(ctx context.Context, op string, fn func(ctx context.Context, q querier) error) error {
	if err := s.gate.enter(op); err != nil {
		return err
	}
	s.turn.RLock()
	defer s.turn.RUnlock()
	bound, cancel := s.bounded(ctx)
	defer cancel()
	return s.judged(ctx, bound, op, fn(bound, s.read))
}

// inSnapshot runs fn in a transaction that reads one moment.
func (s *Store) inSnapshot(ctx context.Context, op string, fn func(ctx context.Context, q querier) error) error {
	if err := s.gate.enter(op); err != nil {
		return err
	}
	s.turn.RLock()
	defer s.turn.RUnlock()
	bound, cancel := s.bounded(ctx)
	defer cancel()
	t, err := s.snapshot(bound)
	if err != nil {
		return s.judged(ctx, bound, op, err)
	}
	defer t.tx.Rollback() //nolint:errcheck // a read has nothing to undo
	return s.judged(ctx, bound, op, fn(bound, t))
}

// snapshot begins a transaction that reads one moment; the caller rolls it back.
func (s *Store) snapshot(ctx context.Context) (*tx, error) {
	opts := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if s.file != "" {
		opts = nil // one in which nothing is written reads one moment
	}
	t, err := s.read.db.BeginTx(ctx, opts)
	return &tx{tx: t, on: s.on}, err
}

// inWrite runs fn in a write transaction beside which there is no other of its
// kind, in whatever process: what fn reads stays so until the end.
func (s *Store) inWrite(ctx context.Context, op string, fn func(ctx context.Context, t *tx) error) error {
	return s.writing(ctx, op, s.pens.chain, s.on.begin, fn)
}

// inOwn is inWrite for rows that belong to one target, or that fn locks itself:
// others may be written meanwhile.
func (s *Store) inOwn(ctx context.Context, op string, fn func(ctx context.Context, t *tx) error) error {
	return s.writing(ctx, op, s.pens.own, s.on.join, fn)
}

// inLease is inOwn for what says who is there and who works on what: it waits for no
// other write of this process.
func (s *Store) inLease(ctx context.Context, op string, fn func(ctx context.Context, t *tx) error) error {
	return s.writing(ctx, op, s.pens.lease, s.on.join, fn)
}

// writing runs fn in a write transaction. Errors of fn come back as they are, so
// that a caller's callback keeps its own; the database's are explained.
func (s *Store) writing(ctx context.Context, op string, pen chan struct{}, begin string, fn func(ctx context.Context, t *tx) error) error {
	outboxChanged, err := s.writeWith(ctx, op, pen, begin, fn)
	// Not before the pen is back: the function may wait for one who needs it.
	if fn := s.onOutboxChange.Load(); err == nil && outboxChanged && fn != nil {
		(*fn)()
	}
	return err
}

// writeWith is writing with a pen, and reports whether notifications or groups became due.
func (s *Store) writeWith(ctx context.Context, op string, pen chan struct{}, begin string, fn func(ctx context.Context, t *tx) error) (outboxChanged bool, err error) {
	put, err := s.takePen(ctx, op, pen)
	if err != nil {
		return false, err
	}
	defer put()
	if err := cmp.Or(s.gate.enter(op), s.doubt.enter(op)); err != nil {
		return false, err
	}
	s.turn.RLock()
	defer s.turn.RUnlock()
	bound, cancel := s.bounded(ctx)
	defer cancel()
	t, err := s.write.db.BeginTx(bound, nil)
	if err != nil {
		return false, s.judged(ctx, bound, op, err)
	}
	done := false
	defer func() {
		if !done {
			// A panic of fn passes through, and an HTTP server survives it: the
			// connection that writes must not be kept by it for ever.
			_ = t.Rollback()
		}
	}()
	var id string
	if begin != "" {
		err = t.QueryRowContext(bound, begin).Scan(&id)
	}
	work := &tx{tx: t, on: s.on}
	if err == nil {
		err = fn(bound, work)
	}
	done = true
	if err != nil {
		// A rollback after a failed statement can itself only fail when the
		// transaction, or its connection, is gone already.
		_ = t.Rollback()
		return false, s.judged(ctx, bound, op, err)
	}
	if err = t.Commit(); err != nil && id != "" {
		err = s.settle(ctx, bound, op, id, err)
	} else {
		err = s.judged(ctx, bound, op, err)
	}
	if err == nil && work.trail > 0 {
		s.wrote(work.trail)
	}
	return work.outboxChanged, err
}

// settle finds out what became of a commit whose answer did not come.
func (s *Store) settle(ctx, bound context.Context, op, id string, lost error) error {
	if e := s.on.explain(s, lost); errors.Is(lost, sql.ErrTxDone) || e != nil && !errors.Is(e.Kind, ErrAway) {
		return s.judged(ctx, bound, op, lost) // it was not sent, or the server said no
	}
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		var status sql.NullString
		err := s.write.row(ask, `SELECT pg_xact_status(?::text::xid8)`, id).Scan(&status)
		switch {
		case err == nil && status.String == "committed":
			return nil
		case err == nil && status.String == "aborted":
			return s.judged(ctx, bound, op, lost)
		}
		select {
		case <-ask.Done():
			e := &Error{
				Op: op, Path: s.name, Kind: ErrAway, Unsure: true, Reason: "the server went away while this was committed",
				Hint: s.awayHint(), Err: lost,
			}
			s.gate.shut(e, s.ask)
			return e
		case <-tick.C:
		}
	}
}
