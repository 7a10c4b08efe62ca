package console

import (
	"html"
	"html/template"
	"path"
	"regexp"
	"strings"
)

// manual turns one of our own pages of docs/rules into HTML: headings, paragraphs,
// lists, tables and code, which is all that they have. Everything is escaped, so
// that a page can do no more than look wrong.
//
// group is the page's folder, from which its links lead on.
func manual(text, group string) template.HTML {
	m := manualWriter{group: group}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "```"):
			m.close()
			var code []string
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				code = append(code, lines[i])
			}
			m.out.WriteString(`<pre tabindex="0">` + html.EscapeString(strings.Join(code, "\n")) + "</pre>\n")
		case strings.HasPrefix(line, "# "):
			m.close() // the page has its own title
		case strings.HasPrefix(line, "## "):
			m.heading("h2", line[3:])
		case strings.HasPrefix(line, "### "):
			m.heading("h3", line[4:])
		case strings.HasPrefix(line, "|"):
			// The table before the first heading says what the page says by itself.
			if m.begun {
				m.row(line)
			}
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "):
			m.item(line[2:])
		case strings.TrimSpace(line) == "":
			m.close()
		default:
			m.words(strings.TrimSpace(line))
		}
	}
	m.close()
	return template.HTML(m.out.String())
}

// manualWriter writes one block after the other; open is the one that goes on.
type manualWriter struct {
	group string
	out   strings.Builder
	open  string
	text  []string // lines of the open paragraph or item
	rows  int
	begun bool // past the first heading
}

func (m *manualWriter) flush() {
	if len(m.text) > 0 {
		m.out.WriteString(m.inline(strings.Join(m.text, " ")))
		m.text = nil
	}
}

func (m *manualWriter) close() {
	m.flush()
	switch m.open {
	case "p":
		m.out.WriteString("</p>\n")
	case "ul":
		m.out.WriteString("</li></ul>\n")
	case "table":
		m.out.WriteString("</tbody></table>\n")
	}
	m.open, m.rows = "", 0
}

func (m *manualWriter) heading(tag, text string) {
	m.close()
	m.begun = true
	m.out.WriteString("<" + tag + ">" + m.inline(text) + "</" + tag + ">\n")
}

func (m *manualWriter) words(text string) {
	if m.open == "" || m.open == "table" {
		m.close()
		m.out.WriteString("<p>")
		m.open = "p"
	}
	m.text = append(m.text, text)
}

func (m *manualWriter) item(text string) {
	if m.open != "ul" {
		m.close()
		m.out.WriteString("<ul><li>")
		m.open = "ul"
	} else {
		m.flush()
		m.out.WriteString("</li><li>")
	}
	m.text = append(m.text, text)
}

var rowLine = regexp.MustCompile(`^\|[-: |]+\|$`)

func (m *manualWriter) row(line string) {
	if m.open != "table" {
		m.close()
		m.out.WriteString("<table><tbody>")
		m.open = "table"
	}
	if rowLine.MatchString(line) {
		return
	}
	tag := "td"
	if m.rows == 0 {
		tag = "th"
	}
	m.rows++
	m.out.WriteString("<tr>")
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		m.out.WriteString("<" + tag + ">" + m.inline(strings.TrimSpace(cell)) + "</" + tag + ">")
	}
	m.out.WriteString("</tr>")
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	bold     = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	link     = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
)

// inline marks code, bold and links in a text. Links lead to other rules and to
// the web; what else is in the repository is not served, and stays text.
func (m *manualWriter) inline(text string) string {
	text = html.EscapeString(text)
	text = link.ReplaceAllStringFunc(text, func(found string) string {
		parts := link.FindStringSubmatch(found)
		if rule, ok := ruleLink(m.group, parts[2]); ok {
			return `<a href="/rules/` + rule + `">` + parts[1] + `</a>`
		}
		if strings.HasPrefix(parts[2], "https://") {
			return `<a href="` + parts[2] + `" rel="noreferrer">` + parts[1] + `</a>`
		}
		return parts[1]
	})
	text = codeSpan.ReplaceAllString(text, "<code>$1</code>")
	return bold.ReplaceAllString(text, "<b>$1</b>")
}

var ruleFile = regexp.MustCompile(`^[a-z]+/[a-z-]+$`)

// ruleLink returns the rule that a link within docs/rules leads to: pages there
// are one folder deep.
func ruleLink(group, to string) (string, bool) {
	to, _, _ = strings.Cut(to, "#")
	name, ok := strings.CutSuffix(to, ".md")
	if !ok {
		return "", false
	}
	name = path.Join("rules", group, name)
	name, ok = strings.CutPrefix(name, "rules/")
	return name, ok && ruleFile.MatchString(name)
}
