package audit

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ExportFile is [Export] to a file with mode 0600, compressed where its name ends in
// .gz. The file is whole or, after any error, what it was before. With resume a file
// that is there is gone on with.
func ExportFile(ctx context.Context, from Source, name string, resume bool, o ExportOptions) (done Exported, err error) {
	if resume {
		old, err := os.Open(name)
		switch {
		case err == nil:
			defer old.Close()
			o.Before = old
		case !errors.Is(err, fs.ErrNotExist):
			return done, fmt.Errorf("export audit trail: %w", err)
		}
	}
	err = replaceFile(name, func(w io.Writer) error {
		var err error
		done, err = exportTo(ctx, from, w, strings.HasSuffix(name, ".gz"), o)
		return err
	})
	return done, err
}

func exportTo(ctx context.Context, from Source, w io.Writer, compress bool, o ExportOptions) (Exported, error) {
	if !compress {
		return Export(ctx, from, w, o)
	}
	gz := gzip.NewWriter(w)
	done, err := Export(ctx, from, gz, o)
	return done, errors.Join(err, gz.Close())
}

// replaceFile puts what write writes in the place of a file, as a whole and on the
// disk, or leaves everything as it was.
func replaceFile(name string, write func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".locksteward-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("write %q: %w; name a file in a folder that can be written", name, err)
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	out := bufio.NewWriterSize(f, 256<<10)
	err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return nil
}
