package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Section is what one benchmark has found.
type Section struct {
	// Name finds the section when it is written again.
	Name    string
	Title   string
	About   string
	Machine Machine
	Tables  []Table
}

// Table is one table. The first column is text, the others are numbers.
type Table struct {
	Title  string
	Note   string
	Header []string
	Rows   [][]string
}

// Markdown returns the section under a heading of the second level.
func (s Section) Markdown() string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "## %s\n\n%s\n\n", s.Title, s.About)
	for _, line := range s.Machine.Lines() {
		fmt.Fprintf(out, "- %s\n", line)
	}
	for _, t := range s.Tables {
		fmt.Fprintf(out, "\n### %s\n\n", t.Title)
		row(out, t.Header)
		rule := make([]string, len(t.Header))
		for i := range rule {
			if rule[i] = "---:"; i == 0 {
				rule[i] = "---"
			}
		}
		row(out, rule)
		for _, cells := range t.Rows {
			row(out, cells)
		}
		if t.Note != "" {
			fmt.Fprintf(out, "\n%s\n", t.Note)
		}
	}
	return out.String()
}

func row(out *strings.Builder, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

const title = "# Figures\n\nMeasured, never estimated; each section says by what, where and when.\n"

// Put writes the section into the file at path: in place of the one of that name,
// else at the end. The other sections stay as they are; a file that does not
// exist is made.
func Put(path string, s Section) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read figures: %w", err)
	}
	text := string(data)
	if text == "" {
		text = title
	}
	begin, end := "<!-- "+s.Name+" -->\n", "<!-- end of "+s.Name+" -->\n"
	body := begin + "\n" + s.Markdown() + "\n" + end
	before, rest, found := strings.Cut(text, begin)
	if !found {
		text += "\n" + body
	} else {
		_, after, whole := strings.Cut(rest, end)
		if !whole {
			return fmt.Errorf("figures in %s: section %q has no line %q", path, s.Name, strings.TrimSpace(end))
		}
		text = before + body + after
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
