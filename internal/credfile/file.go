package credfile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// LookEvery is how often files are looked at, at most, by those who use them.
const LookEvery = 500 * time.Millisecond

// maxFile bounds what is read: far above a bundle of all public authorities.
const maxFile = 4 << 20

// State says how a set of files stands.
type State struct {
	// Expires is when the certificate in use ends, or the last of the authorities;
	// zero for a password.
	Expires time.Time
	// Refused is why the files as they are now are not in use; nil: they are.
	Refused error
	// Generation counts what was taken into use; 1 is the first.
	Generation uint64
}

// file is a value that was read from files.
type file[T any] struct {
	paths []string
	// read makes the value of what the files hold.
	read func(raw [][]byte) (T, error)
	// worse says why fresh may not replace old, nil if it may.
	worse func(old, fresh T, now time.Time) error
	// expires is when the value ends.
	expires func(T) time.Time
	now     func() time.Time

	mu      sync.Mutex
	lookAt  time.Time // when it was looked last
	seen    []os.FileInfo
	found   []os.FileInfo // by the last look; nil: a file was not there
	foundAt time.Time     // when found was another than before
	value   T
	gen     uint64
	refused error
}

// open reads the files for the first time: then all that can be read is used.
func (f *file[T]) open() error {
	if f.now == nil {
		f.now = time.Now
	}
	seen, value, err := f.load()
	if err != nil {
		return err
	}
	f.seen, f.found, f.value, f.gen, f.lookAt = seen, seen, value, 1, f.now()
	return nil
}

// get returns the value in use, after a look if the last one is older.
func (f *file[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look(false)
	return f.value
}

// state looks, at once if force is set, and says how the files stand.
func (f *file[T]) state(force bool) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look(force)
	s := State{Refused: f.refused, Generation: f.gen}
	if f.expires != nil {
		s.Expires = f.expires(f.value)
	}
	return s
}

// look reads the files again if they changed. The caller holds f.mu.
func (f *file[T]) look(force bool) {
	now := f.now()
	if since := now.Sub(f.lookAt); !force && since >= 0 && since < LookEvery {
		return
	}
	f.lookAt = now
	if found := f.stat(); f.refused == nil && allSame(found, f.seen) || f.settling(found, now) {
		return
	}
	seen, fresh, err := f.load()
	if err == nil && f.worse != nil {
		err = f.worse(f.value, fresh, now)
	}
	if f.refused = err; err != nil {
		return // seen stays: the next look tries again
	}
	f.seen, f.value = seen, fresh
	f.gen++
}

// stat is what the files are now, nil if one of them is not there.
func (f *file[T]) stat() []os.FileInfo {
	out := make([]os.FileInfo, 0, len(f.paths))
	for _, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil
		}
		out = append(out, info)
	}
	return out
}

// settling says that a file may be half-written: it is the one of the last look, with
// another time or size. It is left until it stayed the same for LookEvery. One that
// was put in its place, as it should be, is another file, and whole.
func (f *file[T]) settling(found []os.FileInfo, now time.Time) bool {
	was := f.found
	f.found = found
	inPlace := false
	for i, info := range found {
		inPlace = inPlace || len(was) > 0 && os.SameFile(info, was[i]) && info.Mode() == was[i].Mode() && !same(info, was[i])
	}
	switch since := now.Sub(f.foundAt); {
	case inPlace:
		f.foundAt = now
		return true
	case allSame(found, was):
		return since >= 0 && since < LookEvery
	default:
		f.foundAt = time.Time{}
		return false
	}
}

// allSame says whether both are the same files, unchanged, and all there.
func allSame(a, b []os.FileInfo) bool { return a != nil && slices.EqualFunc(a, b, same) }

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// load reads all files. They are looked at before, so that a change while they are
// read is found by the next look.
func (f *file[T]) load() ([]os.FileInfo, T, error) {
	var none T
	seen := make([]os.FileInfo, 0, len(f.paths))
	raw := make([][]byte, 0, len(f.paths))
	for _, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, none, fmt.Errorf("read %q: %w", path, cause(err))
		}
		// A pipe or a device could block for ever.
		if !info.Mode().IsRegular() {
			return nil, none, fmt.Errorf("read %q: it is no regular file", path)
		}
		if info.Size() > maxFile {
			return nil, none, fmt.Errorf("read %q: it is larger than %d bytes", path, maxFile)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, none, fmt.Errorf("read %q: %w", path, cause(err))
		}
		seen, raw = append(seen, info), append(raw, text)
	}
	value, err := f.read(slices.Clip(raw))
	return seen, value, err
}

// cause drops the operation and path that os errors repeat.
func cause(err error) error {
	if inner, ok := errors.AsType[*os.PathError](err); ok {
		return inner.Err
	}
	return err
}
