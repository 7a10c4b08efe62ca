package alert

import (
	"cmp"
	"slices"
	"strings"
)

// message is a notification as people read it, before a service's markup. All its texts
// are tidy and none is escaped.
type message struct {
	lang  string
	level level
	title string
	// lead is above the parts: sentences and facts about all of them.
	lead  []line
	parts []part
	// more are the findings that are not among the parts.
	more  rest
	links []link
	// text replaces lead and parts: the output of a template, of several lines.
	text string
	// urgent says that somebody should be mentioned by name.
	urgent bool
}

// part is one finding.
type part struct {
	level level
	kind  string // as in [rest]
	head  string
	lines []line
	links []link
}

// line is a fact; without a label it is a sentence. A label ends as it does in its
// language: "since: ".
type line struct{ label, text string }

// link leads to a page; its URL passed [safeLink].
type link struct{ text, url string }

// level is what the colour of a message means.
type level int

const (
	levelNeutral level = iota
	levelResolved
	levelWarning
	levelCritical
)

// sign is the level for services without colours, and for titles.
func (t level) sign() string {
	return [...]string{levelNeutral: "🔵", levelResolved: "🟢", levelWarning: "🟠", levelCritical: "🔴"}[t]
}

// renderer renders payloads as messages to people for one receiver.
type renderer struct {
	lang string
	own  *compiled // nil: the built-in texts
	// templateFailed is called when the template failed; nil: nothing is.
	templateFailed func(error)
}

// newRenderer compiles the receiver's template. Its error begins with the key.
func newRenderer(r Receiver) (renderer, error) {
	own, err := r.Template.compile(r.Lang)
	return renderer{lang: r.Lang, own: own, templateFailed: r.templateFailed}, err
}

// render makes the message of a payload. It never fails: a template that does is
// replaced by the built-in text.
func (r renderer) render(p Payload) message {
	s := r.builtIn(p)
	if r.own == nil {
		return s
	}
	title, text, err := r.own.apply(p)
	if err != nil {
		if r.templateFailed != nil {
			r.templateFailed(err)
		}
		return s
	}
	s.title = cmp.Or(title, s.title)
	if text != "" {
		s.text = text
	}
	return s
}

func (r renderer) builtIn(p Payload) message {
	r.lang = cmp.Or(p.Lang, r.lang) // that of the findings in it
	s := message{lang: r.lang}
	switch {
	case p.Release != nil:
		r.release(&s, p)
	case len(p.Findings) > 0 || strings.HasPrefix(p.Type, typeFindings):
		r.findings(&s, p)
	default:
		s.title = translate(r.lang, p.Type)
		s.addSentence(p.Text)
		s.fact(r.label("team"), p.Team)
		s.link(r.word("runbook"), p.RunbookURL)
	}
	if p.Loud {
		s.addSentence(translate(r.lang, "loud"))
		s.urgent = true
	}
	s.link(r.word("console"), p.URL)
	for i := range s.parts { // a link to the same page is below
		s.parts[i].links = slices.DeleteFunc(s.parts[i].links, func(l link) bool { return slices.Contains(s.links, l) })
	}
	return s
}

func (r renderer) word(w string) string { return translate(r.lang, w) }

// addSentence adds a sentence to the lead; an empty one is left out.
func (s *message) addSentence(sentence string) { s.lead = fact(s.lead, "", sentence) }

func (s *message) fact(label, text string) { s.lead = fact(s.lead, label, text) }

// maxRead bounds how much of a text is processed, in bytes: more is never shown.
const maxRead = 3000

func fact(to []line, label, text string) []line {
	if text = strings.TrimSpace(tidy(cutBytes(text, maxRead))); text != "" {
		to = append(to, line{label, text})
	}
	return to
}

// link adds a link, once.
func (s *message) link(text, url string) { s.links = addLink(s.links, text, url) }

func addLink(to []link, text, url string) []link {
	if url = safeLink(url); url == "" || slices.ContainsFunc(to, func(l link) bool { return l.url == url }) {
		return to
	}
	return append(to, link{text, url})
}

// plain is the message as text without markup and title.
func (s message) plain() string {
	var b strings.Builder
	write := func(lines []line) {
		for _, l := range lines {
			b.WriteString(l.label + l.text + "\n")
		}
	}
	links := func(list []link) {
		for _, l := range list {
			b.WriteString(l.text + ": " + l.url + "\n")
		}
	}
	if s.text != "" {
		b.WriteString(s.text + "\n")
	} else {
		write(s.lead)
		for _, p := range s.parts {
			b.WriteString("\n" + p.level.sign() + " " + p.head + "\n")
			write(p.lines)
			links(p.links)
		}
	}
	if s.more.n > 0 {
		b.WriteString("\n" + s.more.words(s.lang) + "\n")
	}
	if len(s.links) > 0 {
		b.WriteString("\n")
		links(s.links)
	}
	return b.String()
}
