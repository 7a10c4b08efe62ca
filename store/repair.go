package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// sidecars are the suffixes of the files that SQLite keeps beside a database.
var sidecars = []string{"-wal", "-shm", "-journal"}

// Repaired is the result of [Repair].
type Repaired struct {
	Path    string // of the database
	Bytes   int64
	Entries int64 // of the audit trail, all of them verified
}

// Repair replaces the SQLite file of dsn by a copy of it that the disk confirmed, and lets
// an agent open it again ([ErrNeedsRepair]). No agent or other program may have the file
// open. A repair that fails or is killed leaves the file or its copy complete under the
// name, and the marker: it can be run again.
func Repair(ctx context.Context, dsn string) (Repaired, error) {
	where, err := parseDSN(Config{DSN: dsn}.dsn())
	if err != nil {
		return Repaired{}, fmt.Errorf("store.dsn: %w", err)
	}
	if where.path == "" || where.path == memoryPath {
		return Repaired{}, errors.New("repair store: it is not an SQLite file; PostgreSQL checks its own files, see docs/store.md")
	}
	if _, err := os.Stat(where.path); err != nil {
		return Repaired{}, fmt.Errorf("repair store: %w; run the command in the working directory of the agent, or restore the last backup", err)
	}
	lock, err := lockFile(where.path + ".lock")
	if err != nil {
		return Repaired{}, fileError(err)
	}
	defer lock.Close()
	r, err := newRepair(where.path)
	if err != nil {
		return Repaired{}, err
	}
	entries, err := r.run(ctx)
	if err != nil {
		return Repaired{}, err
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return Repaired{}, r.failed(err)
	}
	return Repaired{Path: where.path, Bytes: info.Size(), Entries: entries}, nil
}

// repair is one repair. Its steps are ordered so that a crash between any two of them loses
// nothing: the copy is complete before the log of the old file is removed, and the log is
// removed before the copy takes the name, since SQLite would apply it to the copy.
type repair struct {
	name string // of the database as configured, which its marker has too
	path string // of the database itself: no symbolic link
	done string // of the finished copy. A repair that is run again goes on with it
}

func newRepair(name string) (*repair, error) {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, fmt.Errorf("repair store: %w", err)
	}
	r := &repair{name: name, path: path}
	marker, err := readMarker(name)
	if err == nil && marker == "" {
		// It could not be written when the fsync failed. It also keeps agents away from a
		// repair that is killed.
		if err = writeMarker(name, errors.New("no marker was there")); err == nil {
			marker, err = readMarker(name)
		}
	}
	if err != nil {
		return nil, r.failed(err)
	}
	// The name is of this marker alone: the copy of an abandoned repair is not used for a
	// later failure.
	r.done = fmt.Sprintf("%s.repaired-%x", path, sha256.Sum256([]byte(marker)))[:len(path)+len(".repaired-")+12]
	return r, nil
}

func (r *repair) run(ctx context.Context) (entries int64, err error) {
	if _, err := os.Stat(r.done); errors.Is(err, fs.ErrNotExist) {
		if err := r.copy(ctx); err != nil {
			return 0, err
		}
	}
	if entries, err = check(ctx, "check copy of store", r.done); err != nil {
		return 0, err
	}
	if err := r.replace(); err != nil {
		return 0, r.failed(err)
	}
	return entries, nil
}

// copy makes the finished copy.
func (r *repair) copy(ctx context.Context) (err error) {
	draft := r.path + ".repairing"
	if err := removeDatabase(draft); err != nil { // of a repair that was killed
		return r.failed(err)
	}
	// Open before the first write, so that Sync reports a write that failed earlier.
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return r.failed(err)
	}
	defer func() {
		_ = f.Close()
		if err != nil {
			err = errors.Join(err, removeDatabase(draft))
		}
	}()
	if err := r.vacuumInto(ctx, draft); err != nil {
		return err
	}
	if _, err := check(ctx, "check copy of store", draft); err != nil {
		return err
	}
	info, err := os.Stat(r.path)
	if err == nil {
		err = errors.Join(f.Chmod(info.Mode().Perm()), copyOwner(draft, info))
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(draft, r.done)
	}
	if err == nil {
		err = syncFolder(r.path)
	}
	if err != nil {
		return r.failed(err)
	}
	return nil
}

// vacuumInto copies the database with its log, under an exclusive lock: it fails if another
// program has the file open.
func (r *repair) vacuumInto(ctx context.Context, to string) error {
	const op = "copy store"
	s := &Store{name: r.path, file: r.path, on: onSQLite}
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?mode=rw&_pragma=busy_timeout(%d)&_pragma=locking_mode(EXCLUSIVE)",
		(&url.URL{Path: r.path}).EscapedPath(), busyTimeout.Milliseconds()))
	if err != nil {
		return s.explain(op, err)
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	_ = db.Close() // the old file is not used any more if the copy is complete, and unchanged if not
	return s.explain(op, err)
}

// replace gives the finished copy the name of the database.
func (r *repair) replace() error {
	f, err := os.OpenFile(r.done, os.O_RDWR, 0) // for writing, as Sync needs on some systems
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil { // the check may have written to it
		return err
	}
	if err := errors.Join(removeSidecars(r.done), removeSidecars(r.path), syncFolder(r.path)); err != nil {
		return err
	}
	if err := os.Rename(r.done, r.path); err != nil {
		return err
	}
	if err := syncFolder(r.path); err != nil {
		return err
	}
	return removeMarker(r.name)
}

// failed adds file and remedy to an error of the file system.
func (r *repair) failed(err error) error {
	return fileError(fmt.Errorf("repair store %q: %w; check the disk, its free space and the rights on the folder, and run the command again: nothing is lost", r.name, err))
}

// removeDatabase removes a database and its sidecars, if they exist.
func removeDatabase(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, removeSidecars(path))
}

func removeSidecars(path string) error {
	var errs []error
	for _, suffix := range sidecars {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
