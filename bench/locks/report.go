package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/locksteward/locksteward/bench/results"
)

// report is all that a run has found.
type report struct {
	Machine  results.Machine `json:"machine"`
	Settings settings        `json:"settings"`
	Pairs    []*pairsRow     `json:"pairs,omitempty"`
	Costs    []*costsRow     `json:"costs,omitempty"`
	Handoff  []*handoffRow   `json:"handoff,omitempty"`
	Dead     []*deadRow      `json:"dead,omitempty"`
	Renewal  []*renewalRow   `json:"renewal,omitempty"`
	Promises []promise       `json:"promises"`
}

// pairsOf returns a library's row, nil if it was not measured.
func (r *report) pairsOf(name string, goroutines int) *pairsRow {
	for _, row := range r.Pairs {
		if row.Library == name && row.Goroutines == goroutines {
			return row
		}
	}
	return nil
}

func (r *report) costsOf(name string) *costsRow {
	for _, row := range r.Costs {
		if row.Library == name {
			return row
		}
	}
	return nil
}

// bestPeer returns the row of the other library that makes most pairs at a number
// of goroutines; nil if none was measured.
func (r *report) bestPeer(goroutines int) (best *pairsRow) {
	for _, name := range []string{redsyncName, redislockName, rueidisName} {
		row := r.pairsOf(name, goroutines)
		if row != nil && (best == nil || row.PerSecond.median() > best.PerSecond.median()) {
			best = row
		}
	}
	return best
}

func writeJSON(w io.Writer, r *report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// writeFile writes the file at path, if there is to be one.
func writeFile(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
