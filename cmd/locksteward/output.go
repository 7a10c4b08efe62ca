package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
)

// outputFlag is --output, and --no-headers of a list.
type outputFlag struct {
	value     string
	list      bool
	noHeaders bool
}

func (o *outputFlag) register(c *cobra.Command) {
	c.Flags().VarP(o, "output", "o", strings.Join(o.values(), ", "))
	// The names are fixed: an error here is a slip of the pen and shows in every
	// test of the command.
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.values(), cobra.ShellCompDirectiveNoFileComp))
	if o.list {
		c.Flags().BoolVar(&o.noHeaders, "no-headers", false, "tables without the line of headers")
	}
}

// values are those of --output, the default first.
func (o *outputFlag) values() []string {
	if o.list {
		return []string{"table", "json", "yaml", "name"}
	}
	return []string{"table", "json", "yaml"}
}

// data reports whether a program is to read the output.
func (o *outputFlag) data() bool { return o.value == "json" || o.value == "yaml" }

// encode writes data.
func (o *outputFlag) encode(w io.Writer, v any) error {
	if o.value == "yaml" {
		return writeYAML(w, v)
	}
	return writeJSON(w, v)
}

// table is where tables go.
func (o *outputFlag) table(w io.Writer) io.Writer {
	if o.noHeaders {
		return screen{w, widthOf(w), true}
	}
	return w
}

// String returns the value, with the default spelt out.
func (o *outputFlag) String() string { return cmp.Or(o.value, "table") }

// Type names the flag's type in help.
func (o *outputFlag) Type() string { return "format" }

// Set accepts one of its values.
func (o *outputFlag) Set(value string) error {
	if !slices.Contains(o.values(), value) {
		return fmt.Errorf("got %q, write one of: %s", value, strings.Join(o.values(), ", "))
	}
	o.value = value
	return nil
}

// writeYAML writes v with the names that it has in JSON.
func writeYAML(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(raw, &tree); err != nil { // JSON is YAML
		return err
	}
	plain(&tree)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&tree), enc.Close()); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// plain takes the style of JSON from a tree: blocks, and quotes where they are needed.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
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

// screen is where text for people goes.
type screen struct {
	io.Writer
	width     int // in characters, of a terminal; 0: any
	noHeaders bool
}

// widthOf is the width of the terminal that w is, 0 if it is none.
func widthOf(w io.Writer) int {
	switch w := w.(type) {
	case screen:
		return w.width
	case *os.File:
		if width, _, err := term.GetSize(int(w.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// gap is what stands between two columns.
const gap = 2

// leastColumn is the width below which no column is cut.
const leastColumn = 10

// writeTable writes rows under a header, columns aligned. Cells must be free of
// control characters (locksteward.DisplayKey). On a terminal the widest columns are cut
// until a row fits.
func writeTable(w io.Writer, header []string, rows [][]string) error {
	widths := make([]int, len(header))
	if s, ok := w.(screen); !ok || !s.noHeaders {
		rows = slices.Insert(slices.Clone(rows), 0, header)
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fit(widths, header, widthOf(w))
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			cell = cut(cell, widths[i], i == len(row)-1)
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// whole are columns that are never cut: what is copied from them, and what is short.
var whole = map[string]bool{
	"ID": true, "SEQ": true, "ENTRY": true, "SUBJECT": true, "AT": true, "CREATED": true, "SINCE": true, "WRITTEN": true, "LAST SWEEP": true,
	"STATE": true, "TTL": true, "AGE": true,
}

// nameColumns are cut last: names of locks, and patterns of them.
var nameColumns = map[string]bool{"KEY": true, "LOCK": true, "MATCH": true}

// fit makes the widest columns narrower until all fit into width; 0 is any. Names of locks
// are cut last.
func fit(widths []int, header []string, width int) {
	total := gap * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for _, names := range []bool{false, true} {
		for width > 0 && total > width {
			widest := -1
			for i, n := range widths {
				if !whole[header[i]] && (names || !nameColumns[header[i]]) && (widest < 0 || n > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 || widths[widest] <= leastColumn {
				break
			}
			widths[widest]--
			total--
		}
	}
}

// cut shortens text to so many characters: a sentence at its end, a name in its middle,
// since names differ at their ends.
func cut(text string, width int, sentence bool) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	tail := (width - 1) / 2
	if sentence {
		tail = 0
	}
	return string(runes[:width-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

// writeNames writes names, one a line.
func writeNames(w io.Writer, names []string) error {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeText writes text for people. On a terminal a long line is broken at blanks, and what
// follows is indented as the line is, and by two more.
func writeText(w io.Writer, text string) error {
	if width := widthOf(w); width > 0 {
		var b strings.Builder
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			wrap(&b, line, width, len(line)-len(strings.TrimLeft(line, " "))+2)
			b.WriteByte('\n')
		}
		text = b.String()
	}
	_, err := io.WriteString(w, text)
	return err
}

// wrap writes a line, broken before width, what follows after indent blanks; a word that is
// longer stays whole.
func wrap(b *strings.Builder, line string, width, indent int) {
	for {
		if utf8.RuneCountInString(line) <= width {
			b.WriteString(line)
			return
		}
		runes := []rune(line)
		at := width
		for at > 0 && runes[at] != ' ' {
			at--
		}
		if blank := strings.TrimLeft(string(runes[:at]), " "); blank == "" { // one long word
			for at = max(at+1, indent); at < len(runes) && runes[at] != ' '; at++ {
			}
			if at == len(runes) {
				b.WriteString(line)
				return
			}
		}
		b.WriteString(strings.TrimRight(string(runes[:at]), " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(string(runes[at:]), " ")
	}
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
