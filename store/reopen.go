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
// they see what was confirmed, and not what is in doubt.

const (
	// turnWithin is how long a file that is to be opened anew waits for the calls that
	// are under way on it; turnEvery is how often it looks.
	turnWithin = 5 * time.Second
	turnEvery  = 2 * time.Millisecond
)

// distrust has nothing written until the file was opened anew.
func (s *Store) distrust(why *Error) { s.doubt.shut(why, s.reopen) }

// reopen opens the file anew. It fails, and is to be tried again, as long as the disk
// does not keep what it is given; a file that is damaged is never written again in this
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
	if err == nil {
		s.memory.health.reopened()
	}
	return err
}

// sync has the kernel forget what it has of the file and its log and is on the disk, or
// is said to be, and bring all else there. The file itself is open for as long as the
// store is: a process that closes it loses the locks that SQLite has on it.
func (s *Store) sync() error {
	errs := []error{toDisk(s.held)}
	log, err := os.OpenFile(s.file+"-wal", os.O_RDWR, 0)
	if err == nil {
		errs = append(errs, toDisk(log), log.Close())
	} else if !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func toDisk(f *os.File) error {
	forget(f)
	return f.Sync()
}

// anew ends all connections to the file, with the pages that they have, and makes one.
// The calls under way end first.
func (s *Store) anew(ctx context.Context) error {
	tick := time.NewTicker(turnEvery)
	defer tick.Stop()
	for end := time.Now().Add(turnWithin); !s.turn.TryLock(); {
		if time.Now().After(end) {
			return errors.New("open store anew: calls that are under way do not end")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	defer s.turn.Unlock()
	for db, idle := range map[*sql.DB]int{s.write.db: 1, s.read.db: readers} {
		db.SetMaxIdleConns(0) // closes those that there are
		db.SetMaxIdleConns(idle)
	}
	var tables int
	return s.write.row(ctx, `SELECT COUNT(*) FROM sqlite_master`).Scan(&tables)
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
