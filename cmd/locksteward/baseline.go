package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/scan"
)

// baselineFlags are the findings that a scan knows already.
type baselineFlags struct {
	file   string
	update bool
}

func (f *baselineFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "baseline", "", "file of accepted findings, which --fail-on does not count")
	c.Flags().BoolVar(&f.update, "update-baseline", false, "accept all that fires now: write it to the --baseline file")
}

// read returns the baseline; an empty one where there is no file yet and it is to
// be written. It is read before the scan, so that a slip costs no time.
func (f *baselineFlags) read() (api.Baseline, error) {
	if f.file == "" {
		if f.update {
			return api.Baseline{}, usagef("--update-baseline: which file? write --baseline FILE too")
		}
		return api.Baseline{}, nil
	}
	raw, err := os.ReadFile(f.file)
	if errors.Is(err, fs.ErrNotExist) && f.update {
		return api.Baseline{}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return api.Baseline{}, usagef("--baseline: there is no file %q; add --update-baseline to write it", f.file)
	}
	if err != nil {
		return api.Baseline{}, usagef("--baseline: %w", err)
	}
	b, err := scan.ParseBaseline(raw)
	if err != nil {
		return api.Baseline{}, usagef("--baseline: %s: %w", f.file, err)
	}
	return b, nil
}

// apply marks the findings of a scan, and writes the file if it is to.
func (f *baselineFlags) apply(p *program, out *api.Scan, known api.Baseline) error {
	if f.file == "" {
		return nil
	}
	if f.update {
		next := scan.Update(*out, known, time.Now())
		var b bytes.Buffer
		if err := writeJSON(&b, next); err != nil {
			return err
		}
		if err := writeFileAtomic(f.file, b.Bytes(), true); err != nil {
			return fmt.Errorf("--update-baseline: %w", err)
		}
		fmt.Fprintf(p.stderr, "locksteward: %s: %s accepted\n", f.file, plural.Count(len(next.Findings), "finding"))
		if !out.Complete {
			fmt.Fprintln(p.stderr, "locksteward: the scan is incomplete, so what it did not find stays in the file")
		}
		known = next
	}
	scan.Compare(out, known)
	return nil
}
