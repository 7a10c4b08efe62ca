package alert

import "strings"

// markdown writes messages for services with a Markdown of their own: DingTalk and
// WeCom.
type markdown struct {
	heading string // the title, written
	lineEnd string
	quote   string // begins each line of a finding
}

func (m markdown) write(page message) string {
	var b strings.Builder
	b.WriteString(m.heading + "\n\n")
	if page.text != "" {
		for text := range strings.SplitSeq(page.text, "\n") {
			b.WriteString(forMarkdown(text) + m.lineEnd)
		}
		b.WriteString("\n")
	} else {
		m.lines(&b, "", page.lead, nil)
		for _, p := range page.parts {
			b.WriteString("**" + p.level.sign() + " " + forMarkdown(p.head) + "**" + m.lineEnd)
			if m.quote != "" {
				b.WriteString("\n")
			}
			m.lines(&b, m.quote, p.lines, p.links)
		}
	}
	if page.more.n > 0 {
		b.WriteString(forMarkdown(page.more.words(page.lang)) + m.lineEnd + "\n")
	}
	b.WriteString(markdownLinks(page.links))
	return strings.TrimRight(b.String(), " \n")
}

func (m markdown) lines(b *strings.Builder, before string, lines []line, links []link) {
	for _, l := range lines {
		b.WriteString(before + forMarkdown(l.label) + forMarkdown(l.text) + m.lineEnd)
	}
	if len(links) > 0 {
		b.WriteString(before + markdownLinks(links) + m.lineEnd)
	}
	if len(lines) > 0 || len(links) > 0 {
		b.WriteString("\n")
	}
}

func markdownLinks(list []link) string {
	var out []string
	for _, l := range list {
		out = append(out, "["+forMarkdown(l.text)+"]("+l.url+")")
	}
	return strings.Join(out, " · ")
}
