package demo

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
)

// style is how a piece of text looks on a terminal that has colours.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// span is a piece of one line.
type span struct {
	text  string
	style style
}

// line is one row of the screen.
type line []span

func text(s string) line               { return line{{text: s}} }
func styled(s style, text string) line { return line{{text: text, style: s}} }

// severityStyle colours a severity's name.
func severityStyle(severity string) style {
	switch severity {
	case locksteward.SeverityCritical.String():
		return red
	case locksteward.SeverityWarning.String():
		return yellow
	default:
		return cyan
	}
}

// width is the number of cells; the demo's texts have no wide characters.
func (l line) width() int {
	n := 0
	for _, s := range l {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// render writes a line, cut to width cells (0: not cut), with or without colours.
func (l line) render(width int, colour bool) string {
	var b strings.Builder
	left := width
	if width <= 0 || l.width() <= width {
		left = -1
	}
	for _, s := range l {
		t := s.text
		if left >= 0 {
			t = clip(t, left)
			left -= utf8.RuneCountInString(t)
		}
		if t == "" {
			continue
		}
		if colour && s.style != plain {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m", s.style, t)
		} else {
			b.WriteString(t)
		}
		if left == 0 {
			break
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// clip cuts text to n cells; the last one shows that something was cut.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	if n <= 0 {
		return ""
	}
	return string([]rune(text)[:n-1]) + "…"
}

// columns lays rows out in columns, each as wide as its widest cell, two cells
// apart and indented by two.
func columns(rows []line) []line {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.text))
		}
	}
	out := make([]line, 0, len(rows))
	for _, row := range rows {
		l := line{{text: "  "}}
		for i, cell := range row {
			l = append(l, cell)
			if i < len(row)-1 {
				pad := widths[i] - utf8.RuneCountInString(cell.text) + 2
				l = append(l, span{text: strings.Repeat(" ", pad)})
			}
		}
		out = append(out, l)
	}
	return out
}

// wrap breaks text between words into lines of at most width cells.
func wrap(text string, width int) []string {
	var out []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= width:
			current += " " + word
		default:
			out, current = append(out, current), word
		}
	}
	if current != "" {
		out = append(out, current)
	}
	return out
}

// duration shows a time span as a person reads it: 3ms, 4.2s, 9m56s.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

func milliseconds(ms int64) string {
	if ms < 0 {
		return "none"
	}
	return duration(time.Duration(ms) * time.Millisecond)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// pad fills text up with spaces to n cells, on the left if n is negative.
func pad(text string, n int) string {
	if n < 0 {
		return strings.Repeat(" ", max(0, -n-utf8.RuneCountInString(text))) + text
	}
	return text + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
}
