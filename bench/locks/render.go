package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/locksteward/locksteward/bench/results"
)

// writeText writes the report for a terminal.
func writeText(w io.Writer, r *report) error {
	out := &strings.Builder{}
	for _, line := range r.Machine.Lines() {
		fmt.Fprintln(out, line)
	}
	for _, t := range tables(r) {
		fmt.Fprintf(out, "\n%s\n\n", t.Title)
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.Header}, t.Rows...) {
			fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if t.Note != "" {
			fmt.Fprintf(out, "\n%s\n", t.Note)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// section is the report as bench/RESULTS.md has it.
func section(r *report) results.Section {
	return results.Section{
		Name:    "locks",
		Title:   "The lock library beside others",
		About:   "Written by `bench/locks`; its package comment says what is measured and how.",
		Machine: r.Machine,
		Tables:  tables(r),
	}
}
