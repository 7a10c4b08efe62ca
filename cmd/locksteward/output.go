package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
)

// outputFlag is --output table|json.
type outputFlag struct{ value string }

func (o *outputFlag) register(c *cobra.Command) {
	c.Flags().VarP(o, "output", "o", "table or json")
	// The names are fixed: an error here is a slip of the pen and shows in every
	// test of the command.
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *outputFlag) json() bool { return o.value == "json" }

// String returns the value, with the default spelt out.
func (o *outputFlag) String() string {
	if o.value == "" {
		return "table"
	}
	return o.value
}

// Type names the flag's type in help.
func (o *outputFlag) Type() string { return "format" }

// Set accepts table and json.
func (o *outputFlag) Set(value string) error {
	if value != "table" && value != "json" {
		return fmt.Errorf("got %q, write table or json", value)
	}
	o.value = value
	return nil
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(locksteward.EscapeJSON(b.Bytes()))
	return err
}

// writeTable writes rows under a header, columns aligned. Cells must be free of
// control characters (locksteward.DisplayKey).
func writeTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// span shows a duration to the precision a person reads: 340ms, 4.2s, 3m10s,
// 5h02m, 3d04h.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// dash stands for what is not known or does not apply.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine shows text from elsewhere on one line and keeps it from moving the
// cursor: what does not print is escaped. Unlike locksteward.DisplayKey it
// leaves backslashes alone, since names inside the text are escaped already.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
