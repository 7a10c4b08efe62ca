package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// callTimeout bounds one call to a server.
const callTimeout = 8 * time.Second

// Store is the agent's durable memory. Make one with [Open].
type Store struct {
	name           string // for error messages: the file, or host and database
	file           string // "" for a server
	on             *backend
	write          *pool
	read           *pool
	conns          *connTracker  // connections to a server; nil for a file
	creds          *credentials  // for them; nil for a file
	timeout        time.Duration // of a call; 0 for a file, whose locks have a timeout of their own
	availability   *availability
	semaphores     *writeSemaphores
	lock           *fileLock // keeps a second agent out of a file; nil for a server
	memory         *memory
	compose        *atomic.Pointer[Composer]
	onOutboxChange *atomic.Pointer[func()]
	// fences, if set, returns the lease under which a target is written.
	fences func(target string) (Lease, bool)
}

// Open opens the store at dsn ("sqlite:PATH" or "postgres://…") and creates file and
// tables if they do not exist. An empty dsn is [DefaultDSN]. The caller closes the store.
func Open(ctx context.Context, dsn string) (*Store, error) {
	return OpenConfig(ctx, Config{DSN: dsn})
}

// OpenConfig is [Open] with a configuration.
func OpenConfig(ctx context.Context, cfg Config) (*Store, error) {
	return open(ctx, cfg, timeouts{busy: busyTimeout, call: callTimeout})
}

// timeouts are shorter in tests.
type timeouts struct{ busy, call time.Duration }

func open(ctx context.Context, cfg Config, t timeouts) (_ *Store, err error) {
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
		err = s.openSQLite(where.path, t.busy)
	} else {
		s.timeout = t.call
		err = s.openPostgres(where.url, cfg.PasswordFile)
	}
	if err == nil {
		err = s.explain("open store", s.prepareSchema(ctx))
	}
	if err == nil {
		err = s.compareWithLockFile(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// memory is what this process remembers of the store. All views of a store share it.
type memory struct {
	trail       atomic.Int64           // length of the audit trail after our last write to it
	origin      atomic.Pointer[string] // see [Store.Older]
	missing     atomic.Int64           // entries that a file lacks and [Store.Older] has not reported yet
	needsRepair atomic.Pointer[Error]  // set after a failed fsync: nothing is written any more
	health      health
}

// recordTrail notes the length of the audit trail after a write.
func (s *Store) recordTrail(length int64) {
	for known := s.memory.trail.Load(); known < length && !s.memory.trail.CompareAndSwap(known, length); {
		known = s.memory.trail.Load()
	}
	if s.lock != nil {
		// The greater length is kept until the store is closed, so that a process that opens an
		// older file learns of it.
		s.lock.record(max(length, s.lock.trail))
	}
}

func newStore() *Store {
	return &Store{
		availability: &availability{}, semaphores: fileSemaphores(), memory: &memory{},
		compose: &atomic.Pointer[Composer]{}, onOutboxChange: &atomic.Pointer[func()]{},
	}
}

// Close ends all transactions and closes the store. It may be called once, and only on a
// store that [Open] returned.
func (s *Store) Close() error {
	s.recordTrailAtEnd()
	s.availability.close()
	if s.conns != nil && s.availability.check("") != nil {
		s.conns.closeAll() // an orderly end would wait for the server
	}
	var errs []error
	if s.read != nil && s.read != s.write {
		errs = append(errs, s.read.db.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.db.Close())
	}
	if s.conns != nil {
		s.conns.closeAll()
		errs = nil // the server ends sessions whose connections are gone
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %q: %w", s.name, err)
	}
	return nil
}

// withTimeout returns ctx with the timeout of a call.
func (s *Store) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.timeout)
}

// rowTimeout is added to the timeout for each of many rows that a call writes: a server
// that works through them is not unreachable.
const rowTimeout = 500 * time.Microsecond

// patient returns a view of the store whose timeout suffices for so many rows.
func (s *Store) patient(rows int) *Store {
	if s.timeout == 0 {
		return s
	}
	view := *s
	view.timeout += time.Duration(rows) * rowTimeout
	return &view
}

// inRead runs fn on the pool of readers.
func (s *Store) inRead(ctx context.Context, op string, fn func(ctx context.Context, q querier) error) error {
	if err := s.availability.check(op); err != nil {
		return err
	}
	bound, cancel := s.withTimeout(ctx)
	defer cancel()
	return s.classify(ctx, bound, op, fn(bound, s.read))
}

// inSnapshot runs fn in a transaction all of whose reads see the same state.
func (s *Store) inSnapshot(ctx context.Context, op string, fn func(ctx context.Context, q querier) error) error {
	if err := s.availability.check(op); err != nil {
		return err
	}
	bound, cancel := s.withTimeout(ctx)
	defer cancel()
	t, err := s.snapshot(bound)
	if err != nil {
		return s.classify(ctx, bound, op, err)
	}
	defer t.tx.Rollback() //nolint:errcheck // a read has nothing to undo
	return s.classify(ctx, bound, op, fn(bound, t))
}

// snapshot begins a transaction all of whose reads see the same state; the caller rolls it back.
func (s *Store) snapshot(ctx context.Context) (*tx, error) {
	opts := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	if s.file != "" {
		opts = nil // any transaction of SQLite reads a snapshot
	}
	t, err := s.read.db.BeginTx(ctx, opts)
	return &tx{tx: t, on: s.on}, err
}

// inWrite runs fn in a write transaction that excludes all others of inWrite, over all
// processes: what fn reads does not change before the commit.
func (s *Store) inWrite(ctx context.Context, op string, fn func(ctx context.Context, t *tx) error) error {
	return s.writing(ctx, op, s.semaphores.chain, s.on.begin, fn)
}

// inOwn runs fn in a write transaction beside which others may run. It is for rows that
// belong to one target, and for rows that fn locks itself.
func (s *Store) inOwn(ctx context.Context, op string, fn func(ctx context.Context, t *tx) error) error {
	return s.writing(ctx, op, s.semaphores.target, s.on.join, fn)
}

// inLease is inOwn for heartbeats and leases, which wait for no other write of this process.
func (s *Store) inLease(ctx context.Context, op string, fn func(ctx context.Context, t *tx) error) error {
	return s.writing(ctx, op, s.semaphores.lease, s.on.join, fn)
}

// writing runs fn in a write transaction. Errors of fn are returned unchanged; those of
// the database become an [Error].
func (s *Store) writing(ctx context.Context, op string, semaphore chan struct{}, begin string, fn func(ctx context.Context, t *tx) error) error {
	outboxChanged, err := s.writeOnce(ctx, op, semaphore, begin, fn)
	// Called after the semaphore was released: the callback may wait for a writer.
	if fn := s.onOutboxChange.Load(); err == nil && outboxChanged && fn != nil {
		(*fn)()
	}
	return err
}

// writeOnce runs fn in a write transaction and reports whether notifications or groups became due.
func (s *Store) writeOnce(ctx context.Context, op string, semaphore chan struct{}, begin string, fn func(ctx context.Context, t *tx) error) (outboxChanged bool, err error) {
	release, err := s.acquire(ctx, op, semaphore)
	if err != nil {
		return false, err
	}
	defer release()
	if err := cmp.Or(s.availability.check(op), s.writable(op)); err != nil {
		return false, err
	}
	bound, cancel := s.withTimeout(ctx)
	defer cancel()
	t, err := s.write.db.BeginTx(bound, nil)
	if err != nil {
		return false, s.classify(ctx, bound, op, err)
	}
	done := false
	defer func() {
		if !done {
			// After a panic of fn, which an HTTP server survives, the connection must
			// become free again.
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
		return false, s.classify(ctx, bound, op, err)
	}
	if err = t.Commit(); err != nil && id != "" {
		err = s.resolveCommit(ctx, bound, op, id, err)
	} else {
		err = s.classify(ctx, bound, op, err)
	}
	if err == nil && work.trail > 0 {
		s.recordTrail(work.trail)
	}
	return work.outboxChanged, err
}

// resolveCommit finds out the outcome of a commit whose answer did not arrive.
func (s *Store) resolveCommit(ctx, bound context.Context, op, id string, lost error) error {
	if e := s.on.explain(s, lost); errors.Is(lost, sql.ErrTxDone) || e != nil && !errors.Is(e.Kind, ErrAway) {
		return s.classify(ctx, bound, op, lost) // the commit was not sent, or the server refused it
	}
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		var status sql.NullString
		err := s.write.row(ask, `SELECT pg_xact_status(?::text::xid8)`, id).Scan(&status)
		switch {
		case err == nil && status.String == "committed":
			return nil
		case err == nil && status.String == "aborted":
			return s.classify(ctx, bound, op, lost)
		}
		select {
		case <-ask.Done():
			e := &Error{
				Op: op, Path: s.name, Kind: ErrAway, Unsure: true, Reason: "the server became unreachable during the commit",
				Hint: s.awayHint(), Err: lost,
			}
			s.availability.lost(e, s.probe)
			return e
		case <-tick.C:
		}
	}
}
