package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// asCopy is behind the name of a file that is to take the place of the store's.
	asCopy = ".anew"
	// copyTries is how many copies are tried before the file itself is written again.
	copyTries = 3
)

// renewal is what follows a commit that the disk did not confirm. The file is opened anew
// and checked, and what it has is copied into another one, which takes its name: blocks of
// which the disk failed to keep one are not written again. Nothing is kept of the old
// file: all that it had is in the copy, and a second one of it may not find room.
//
// A kill, or a loss of power, at any point of it leaves a whole store under the name, the
// old file or the copy, and both have all that was ever confirmed: nothing is written
// from the commit in doubt until the disk has confirmed the copy and its name.
type renewal struct {
	s      *Store
	failed int   // copies
	kept   error // why the last of them failed
	done   bool  // the copy has the name
}

// try goes on with it; it is to be tried again until it does not fail. After a copy that
// failed the file is opened anew too before anything else is done with it.
func (r *renewal) try(ctx context.Context) error {
	if err := r.s.reopen(ctx); err != nil {
		return err
	}
	if !r.done && r.failed < copyTries {
		if err := r.replace(ctx); err != nil {
			r.kept = err
			if r.failed++; errors.Is(err, ErrFull) {
				r.failed = copyTries // others need that room too
			}
			return err
		}
	}
	if r.done {
		r.kept = nil
	}
	r.s.memory.health.reopened(r.kept)
	return nil
}

// replace has a copy of the file take its place.
func (r *renewal) replace(ctx context.Context) error {
	s := r.s
	f, err := s.copyFile(ctx)
	if err != nil {
		return err
	}
	if err := s.alone(ctx, func() error { return s.giveName(f) }); err != nil {
		return errors.Join(err, f.Close(), removeCopy(s.held.path))
	}
	r.done = true
	if err := s.sync(); err != nil {
		return err
	}
	return s.anew(ctx)
}

// copyFile makes the copy, which the disk has confirmed and which was read from there.
func (s *Store) copyFile(ctx context.Context) (f *os.File, err error) {
	const op = "copy store"
	to := s.held.path + asCopy
	if err := removeCopy(s.held.path); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	// It is open from before the first byte: an error of the disk is told to who had the
	// file open when it happened.
	f, err = os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, s.unopened(fmt.Errorf("%s: %w", op, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), removeCopy(s.held.path))
		}
	}()
	info, err := s.held.f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := f.Chmod(info.Mode().Perm()); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if _, err := s.write.db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return nil, s.explain(op, err)
	}
	if err := s.confirm(f); err != nil {
		return nil, err
	}
	if err := s.checkCopy(ctx, to); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	// Who opens it notes in it that it has a log.
	return f, s.confirm(f)
}

// confirm has the disk confirm the copy and that it is in its folder. What is read of it
// next comes from there.
func (s *Store) confirm(f *os.File) error {
	if err := errors.Join(f.Sync(), syncFolder(f.Name())); err != nil {
		return s.unopened(fmt.Errorf("copy store: %w", err))
	}
	forget(f)
	return nil
}

// checkCopy checks a copy as the file itself was checked, and that its trail is as long.
func (s *Store) checkCopy(ctx context.Context, path string) (err error) {
	const op = "check copy"
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	c := newStore()
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.readSQLite(path, ""); err != nil {
		return err
	}
	if err := c.quickCheck(ctx, op); err != nil {
		return err
	}
	if err := c.checkTail(ctx, op); err != nil {
		return c.explain(op, err)
	}
	if got, err := c.Head(ctx); err != nil || got != head {
		return errors.Join(fmt.Errorf("its trail ends at entry %d, and that of the store at %d", got.Seq, head.Seq), err)
	}
	return nil
}

// giveName has f, the copy, take the name of the file. Nobody else may have that open: a
// log of it beside the copy would be taken for one of the copy's, and SQLite tells who
// uses a file by locks on the file, not on its name.
func (s *Store) giveName(f *os.File) error {
	path := s.held.path
	if err := s.noLog(path); err != nil {
		return err
	}
	// A program that begins to use it has a lock on it before it looks for a log.
	release, err := lockAll(s.held.f)
	if err != nil {
		return err
	}
	old := s.held.f
	defer func() {
		release()
		if s.held.f != old {
			_ = old.Close() // all is in the copy
		}
	}()
	mine, err := old.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return errors.Join(fmt.Errorf("%q is not the file that was opened: it was put in its place meanwhile", path), err)
	}
	if err := errors.Join(s.noLog(path), s.noLog(path+asCopy)); err != nil {
		return err
	}
	if err := os.Rename(path+asCopy, path); err != nil {
		return err
	}
	s.held.f, s.held.unnamed = f, true
	return nil
}

// beside are the names of what SQLite has beside a file that it is using.
var beside = []string{"-wal", "-shm", "-journal"}

// noLog fails if something of SQLite's lies beside a file: the last one who used it
// removes it, if all of it is in the file.
func (s *Store) noLog(path string) error {
	for _, part := range beside {
		if _, err := os.Lstat(path + part); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%q is there: another program has the file open, or what is in it did not get into the file", path+part), err)
		}
	}
	return nil
}

// removeCopy removes what is left of a copy that was not finished.
func removeCopy(path string) error {
	var errs []error
	for _, part := range append([]string{""}, beside...) {
		if err := os.Remove(path + asCopy + part); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// syncFolder has the disk confirm which names are in the folder of path.
func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
