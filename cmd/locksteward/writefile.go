package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFileAtomic puts data into a file as a whole: a reader, and the next start after
// an interruption, finds all of it or what was there before. Without replace an
// existing file is an error that wraps fs.ErrExist and stays as it is.
func writeFileAtomic(name string, data []byte, replace bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".locksteward-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temp := f.Name()
	defer func() {
		if rerr := os.Remove(temp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if !replace {
		// A link fails where a rename would replace what another program just made.
		if err := os.Link(temp, name); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		return nil
	}
	if err := os.Rename(temp, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
