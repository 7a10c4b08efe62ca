package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// After a failed fsync the content of a file is not known: the kernel may have dropped what
// it could not write, and count it as written. A marker file beside the database says so to
// later starts, because nothing in the database itself can be trusted.

// markerSuffix is appended to the path of the database.
const markerSuffix = ".needs-repair"

// stopWriting refuses all further writes of this process and leaves a marker, so that no
// agent opens the file again before it was replaced.
func (s *Store) stopWriting(cause *Error) {
	stopped := &Error{Path: s.name, Kind: ErrNeedsRepair, Reason: "the disk did not confirm an earlier write", Hint: repairHint(s.file), Err: cause.Err}
	if !s.memory.needsRepair.CompareAndSwap(nil, stopped) {
		return
	}
	if err := writeMarker(s.file, cause.Err); err != nil {
		unmarked := *stopped
		unmarked.Hint += fmt.Sprintf("; the marker file may be missing after a restart (%v), so do not start the agent before the repair", err)
		s.memory.needsRepair.Store(&unmarked)
	}
}

// writable returns why nothing may be written, as the error of op.
func (s *Store) writable(op string) error {
	stopped := s.memory.needsRepair.Load()
	if stopped == nil {
		return nil
	}
	e := *stopped
	e.Op = op
	return &e
}

// writeMarker writes the marker of the database at path. Its error says that the marker may
// not exist, or not survive a loss of power.
func writeMarker(path string, cause error) error {
	text := fmt.Sprintf("%s: the disk did not confirm a write to %s: %v\nTo do: %s.\n",
		time.Now().UTC().Format(time.RFC3339Nano), path, cause, repairHint(path))
	f, err := os.OpenFile(path+markerSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(text); err == nil {
		err = f.Sync()
	}
	// One error at most: it becomes part of a sentence.
	return cmp.Or(err, f.Close(), syncFolder(path))
}

// readMarker returns the marker of the database at path, "" if there is none.
func readMarker(path string) (string, error) {
	text, err := os.ReadFile(path + markerSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fileError(fmt.Errorf("read marker of store: %w; make the file readable for this user", err))
	}
	if len(text) == 0 {
		return "empty marker", nil // lost with the power; that it exists is enough
	}
	return string(text), nil
}

// checkMarker fails with [ErrNeedsRepair] if there is a marker.
func checkMarker(path string) error {
	text, err := readMarker(path)
	if err != nil || text == "" {
		return err
	}
	line, _, _ := strings.Cut(text, "\n")
	return &Error{
		Op: "open store", Path: path, Kind: ErrNeedsRepair, Hint: repairHint(path),
		Reason: fmt.Sprintf("the disk did not confirm a write to this file, as %q says", path+markerSuffix), Err: errors.New(line),
	}
}

// removeMarker removes the marker, if there is one.
func removeMarker(path string) error {
	if err := os.Remove(path + markerSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(path)
}

// repairHint says what to do about a file that needs repair.
func repairHint(path string) string {
	return fmt.Sprintf("stop the agent, check the disk, and run 'locksteward store backup --in-place --store sqlite:%s', or restore the last backup and remove %q (docs/store.md)",
		path, path+markerSuffix)
}

// syncFolder flushes the folder of path, so that a file which was created, renamed or
// removed there survives a loss of power.
func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
