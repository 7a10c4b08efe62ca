package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table is one table of the report. The first column is text, the others are
// numbers.
type table struct {
	title  string
	note   string
	header []string
	rows   [][]string
}

// writeText writes the report for a terminal.
func writeText(w io.Writer, r *report) error {
	out := &strings.Builder{}
	for _, line := range r.Machine.lines() {
		fmt.Fprintln(out, line)
	}
	for _, t := range tables(r) {
		fmt.Fprintf(out, "\n%s\n\n", t.title)
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.header}, t.rows...) {
			fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if t.note != "" {
			fmt.Fprintf(out, "\n%s\n", t.note)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeMarkdown writes the report as bench/RESULTS.md has it.
func writeMarkdown(w io.Writer, r *report) error {
	out := &strings.Builder{}
	fmt.Fprint(out, "# Locks side by side\n\nWritten by `bench/locks`; its package comment says what is measured and how.\n\n")
	for _, line := range r.Machine.lines() {
		fmt.Fprintf(out, "- %s\n", line)
	}
	for _, t := range tables(r) {
		fmt.Fprintf(out, "\n## %s\n\n", t.title)
		line(out, t.header)
		rule := make([]string, len(t.header))
		for i := range rule {
			if rule[i] = "---:"; i == 0 {
				rule[i] = "---"
			}
		}
		line(out, rule)
		for _, row := range t.rows {
			line(out, row)
		}
		if t.note != "" {
			fmt.Fprintf(out, "\n%s\n", t.note)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func line(out *strings.Builder, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

// number writes a figure with about three digits, and thousands apart.
func number(x float64) string {
	switch {
	case x < 0:
		return "-" + number(-x)
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	text := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// whole writes a count.
func whole(x float64) string {
	if x == float64(int(x)) && x < 100 {
		return strconv.Itoa(int(x))
	}
	return number(x)
}
