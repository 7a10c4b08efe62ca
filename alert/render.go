package alert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// sheet is a message as people read it, before a service's markup. All its texts are
// tidy and none is escaped.
type sheet struct {
	lang  string
	tone  tone
	title string
	// lead is what stands above the parts: sentences and facts about all of them.
	lead  []line
	parts []part
	// more are the findings that are not among the parts.
	more  rest
	links []link
	// text replaces lead and parts: a template's words, of several lines.
	text string
	// urgent says that somebody should be called by name.
	urgent bool
}

// part is one finding.
type part struct {
	tone  tone
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

// tone is what colour stands for.
type tone int

const (
	calm tone = iota
	fine
	warning
	alarm
)

// sign is the tone for services without colours, and for titles.
func (t tone) sign() string {
	return [...]string{calm: "🔵", fine: "🟢", warning: "🟠", alarm: "🔴"}[t]
}

// renderer makes sheets of payloads for one receiver.
type renderer struct {
	lang string
	own  *compiled // nil: the built-in texts
	// stumbled is told when the template failed; nil: nobody.
	stumbled func(error)
}

// newRenderer compiles the receiver's template. Its error begins with the key.
func newRenderer(r Receiver) (renderer, error) {
	own, err := r.Template.compile(r.Lang)
	return renderer{lang: r.Lang, own: own, stumbled: r.stumbled}, err
}

// read makes the sheet of a message's body.
func (r renderer) read(body []byte) (sheet, error) {
	var p Payload
	if err := json.Unmarshal(body, &p); err != nil {
		return sheet{}, fmt.Errorf("read message: %w", err)
	}
	return r.sheet(p), nil
}

// sheet never fails: a template that does is passed over.
func (r renderer) sheet(p Payload) sheet {
	s := r.builtIn(p)
	if r.own == nil {
		return s
	}
	title, text, err := r.own.apply(p)
	if err != nil {
		if r.stumbled != nil {
			r.stumbled(err)
		}
		return s
	}
	s.title = cmp.Or(title, s.title)
	if text != "" {
		s.text = text
	}
	return s
}

func (r renderer) builtIn(p Payload) sheet {
	r.lang = cmp.Or(p.Lang, r.lang) // that of the findings in it
	s := sheet{lang: r.lang}
	switch {
	case p.Release != nil:
		r.release(&s, p)
	case len(p.Findings) > 0 || strings.HasPrefix(p.Type, typeFindings):
		r.findings(&s, p)
	default:
		s.title = say(r.lang, p.Type)
		s.say(p.Text)
		s.fact(r.label("team"), p.Team)
		s.link(r.word("runbook"), p.RunbookURL)
	}
	if p.Loud {
		s.say(say(r.lang, "loud"))
		s.urgent = true
	}
	s.link(r.word("console"), p.URL)
	for i := range s.parts { // a link to the same page stands below
		s.parts[i].links = slices.DeleteFunc(s.parts[i].links, func(l link) bool { return slices.Contains(s.links, l) })
	}
	return s
}

func (r renderer) word(w string) string { return say(r.lang, w) }

// say adds a sentence to the lead; an empty one is left out.
func (s *sheet) say(sentence string) { s.lead = fact(s.lead, "", sentence) }

func (s *sheet) fact(label, text string) { s.lead = fact(s.lead, label, text) }

// maxRead is how many bytes of a text are looked at: more are never shown.
const maxRead = 3000

func fact(to []line, label, text string) []line {
	if text = strings.TrimSpace(tidy(cutBytes(text, maxRead))); text != "" {
		to = append(to, line{label, text})
	}
	return to
}

// link adds a link, once.
func (s *sheet) link(text, url string) { s.links = addLink(s.links, text, url) }

func addLink(to []link, text, url string) []link {
	if url = safeLink(url); url == "" || slices.ContainsFunc(to, func(l link) bool { return l.url == url }) {
		return to
	}
	return append(to, link{text, url})
}

// plain is the sheet as text without markup, the title left out.
func (s sheet) plain() string {
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
			b.WriteString("\n" + p.tone.sign() + " " + p.head + "\n")
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
