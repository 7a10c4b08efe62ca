package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// What is done at the start with a file that is damaged: [Config.OnDamage].
const (
	// OnDamageRefuse does not begin.
	OnDamageRefuse = "refuse"
	// OnDamageSetAside renames it and begins an empty store.
	OnDamageSetAside = "set_aside"
)

// besides are what SQLite has beside a file.
var besides = []string{"-shm", "-wal", ""}

// SetAside is the damaged file that was set aside when the store was opened, "" if none
// was.
func (s *Store) SetAside() string { return s.aside }

// Damaged returns the damaged files that were set aside, now or before, and still lie
// beside the store: somebody has yet to look at them.
func (c Config) Damaged() []string {
	file := c.File()
	if file == "" {
		return nil
	}
	all, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil // whoever opens the store says so
	}
	var out []string
	for _, e := range all {
		when, ok := cutName(e.Name(), filepath.Base(file))
		if _, err := time.Parse(asideTime, when); ok && err == nil {
			out = append(out, filepath.Join(filepath.Dir(file), e.Name()))
		}
	}
	return out
}

// asideTime is the time behind the name of a file that was set aside.
const asideTime = "20060102T150405.000000Z"

// cutName returns when a file of this name was set aside.
func cutName(name, of string) (when string, ok bool) {
	prefix := of + ".damaged-"
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return "", false
	}
	return name[len(prefix):], true
}

// setAside renames the file and what SQLite has beside it, under the lock that keeps
// other agents out, and makes an empty one. Nothing is deleted: the file itself goes
// last, so that one which is cut short is met again with all that is left of it.
func (s *Store) setAside() error {
	to := s.file + ".damaged-" + time.Now().UTC().Format(asideTime)
	if err := errors.Join(s.read.db.Close(), s.write.db.Close()); err != nil {
		return fmt.Errorf("close the damaged file: %w", err)
	}
	for _, part := range besides {
		// A file of that name is of another process, which has the same time: none has.
		if _, err := os.Lstat(to + part); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set damaged file aside: %q is there already; move it away", to+part)
		}
		if err := os.Rename(s.file+part, to+part); err != nil && (part == "" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("set damaged file aside: %w; make its folder writable for this user, or move it away yourself", err)
		}
	}
	s.aside = to
	if err := errors.Join(s.held.Close(), s.hold()); err != nil {
		return err
	}
	// What is missing is told by its name.
	s.lock.mark = 0
	s.lock.note(0)
	return nil
}
