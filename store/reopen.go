package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"time"
)

// After a failed fsync nobody knows what the disk has: the kernel has dropped what it
// could not write, or has it in its cache and calls it written. So nothing that this
// process or the kernel remembers of the file is believed: until it was opened anew and
// checked, nothing is written. It is read meanwhile, by the connections that there are:
// they see what was confirmed, and not what is in doubt. What is found then goes to
// another file: see renewal.

const (
	// turnWithin is how long a file that is to be opened anew waits for the calls that
	// are under way on it; turnEvery is how often it looks.
	turnWithin = 5 * time.Second
	turnEvery  = 2 * time.Millisecond
)

// distrust has nothing written until the file was opened anew.
func (s *Store) distrust(why *Error) { s.doubt.shut(why, (&renewal{s: s}).try) }

// reopen opens the file anew, and checks it. It fails, and is to be tried again, as long
// as the disk does not keep what it is given; a file that is damaged is never written again in this
// life.
func (s *Store) reopen(ctx context.Context) error {
	const op = "open store anew"
	if why := s.doubt.enter(op); errors.Is(why, ErrDamaged) {
		return why
	}
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.anew(ctx); err != nil {
		return err
	}
	err := s.quickCheck(ctx, op)
	if err == nil {
		err = s.explain(op, s.checkTail(ctx, op))
	}
	if err == nil {
		err = s.compareWithMemory(ctx)
	}
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(e, ErrDamaged) {
		s.memory.health.count(e)
		s.doubt.because(e)
	}
	return err
}

// sync has the kernel forget what it has of the file and its log and is on the disk, or
// is said to be, and bring all else there. The file itself is open for as long as the
// store is: a process that closes it loses the locks that SQLite has on it.
func (s *Store) sync() error {
	errs := []error{toDisk(s.held.f)}
	log, err := os.OpenFile(s.held.path+"-wal", os.O_RDWR, 0)
	if err == nil {
		errs = append(errs, toDisk(log), log.Close())
	} else if !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	if s.held.unnamed {
		err := syncFolder(s.held.path)
		s.held.unnamed = err != nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func toDisk(f *os.File) error {
	forget(f)
	return f.Sync()
}

// anew ends all connections to the file, with the pages that they have, and makes one.
func (s *Store) anew(ctx context.Context) error {
	if err := s.alone(ctx, func() error { return nil }); err != nil {
		return err
	}
	var tables int
	return s.write.row(ctx, `SELECT COUNT(*) FROM sqlite_master`).Scan(&tables)
}

// alone ends all connections to the file and runs fn while there are none. The calls
// under way end first, and those that come wait.
func (s *Store) alone(ctx context.Context, fn func() error) error {
	tick := time.NewTicker(turnEvery)
	defer tick.Stop()
	end := time.Now().Add(turnWithin)
	until := func(ready func() bool) error {
		for !ready() {
			if time.Now().After(end) {
				return errors.New("open store anew: calls that are under way do not end")
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
		return nil
	}
	if err := until(s.turn.TryLock); err != nil {
		return err
	}
	defer s.turn.Unlock()
	for db, idle := range map[*sql.DB]int{s.write.db: 1, s.read.db: readers} {
		db.SetMaxIdleConns(0) // closes those that there are
		defer db.SetMaxIdleConns(idle)
	}
	// A call that was given up ends its transaction after it returned.
	err := until(func() bool { return s.write.db.Stats().OpenConnections+s.read.db.Stats().OpenConnections == 0 })
	if err != nil {
		return err
	}
	return fn()
}

// compareWithMemory notes whether what was confirmed is there.
func (s *Store) compareWithMemory(ctx context.Context) error {
	var head Checkpoint
	t, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	defer t.tx.Rollback() //nolint:errcheck // a read has nothing to undo
	if head, _, err = ends(ctx, t); err != nil {
		return err
	}
	wrote := s.memory.trail.Load()
	if missing := wrote - head.Seq; missing > 0 {
		s.memory.behind.Add(missing)
		s.memory.trail.CompareAndSwap(wrote, head.Seq)
	}
	return nil
}
