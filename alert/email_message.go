package alert

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"strings"

	mailer "github.com/wneessen/go-mail"
)

const maxSubject = 200 // characters

// message encodes a mail: text and HTML.
func (e *email) message(id string, p Payload) ([]byte, error) {
	page := e.render(p)
	m := mailer.NewMsg(mailer.WithNoDefaultUserAgent())
	m.FromMailAddress(e.from)
	m.ToMailAddress(e.to...)
	m.Subject(cut(page.level.sign()+" "+tidy(page.title), maxSubject))
	m.SetDate()
	m.SetMessageIDWithValue(id + "@" + e.domain())
	if thread := threadOf(p); thread != "" {
		// No mail has that id: mail programs group those that refer to the same one.
		root := "<" + thread + "@" + e.domain() + ">"
		m.SetGenHeader(mailer.HeaderReferences, root)
		m.SetGenHeader(mailer.HeaderInReplyTo, root)
	}
	// RFC 3834: no automatic answers.
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader("X-Auto-Response-Suppress", "All")
	m.SetGenHeader("X-Locksteward-Type", p.Type)
	if page.urgent {
		m.SetImportance(mailer.ImportanceHigh)
	}
	m.SetBodyString(mailer.TypeTextPlain, page.plain())
	html, err := page.html()
	if err != nil {
		return nil, fmt.Errorf("write message as HTML: %w", err)
	}
	m.AddAlternativeString(mailer.TypeTextHTML, html)
	var raw bytes.Buffer
	if _, err := m.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("write message: %w", err)
	}
	return raw.Bytes(), nil
}

// domain is that of the sender, for ids.
func (e *email) domain() string {
	_, domain, _ := strings.Cut(e.from.Address, "@")
	return cmp.Or(domain, "localhost")
}

// threadOf is the thread of mails about one group, or one request.
func threadOf(p Payload) string {
	key := ""
	switch {
	case p.Release != nil && p.Release.Request != nil:
		key = "request " + p.Release.Request.ID
	case p.Group != nil:
		key = "group " + p.Group.Key
	default:
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return "thread_" + hex.EncodeToString(sum[:16])
}

// colour is the level in HTML.
func (t level) colour() string {
	return [...]string{levelNeutral: "#1a73e8", levelResolved: "#188038", levelWarning: "#e37400", levelCritical: "#d93025"}[t]
}

// mailPart and mailLine are parts and lines for the template.
type mailPart struct {
	Colour, Head string
	Lines        []mailLine
	Links        []mailLine
}

type mailLine struct{ Label, Text string }

var mailPage = template.Must(template.New("mail").Parse(`<!doctype html>
<html><head><meta charset="utf-8"><title>{{.Title}}</title></head>
<body style="font-family:sans-serif;font-size:14px;color:#202124">
<h2 style="font-size:16px;border-left:6px solid {{.Colour}};padding-left:8px">{{.Title}}</h2>
{{- if .Text}}
<pre style="font-family:inherit;white-space:pre-wrap">{{.Text}}</pre>
{{- end}}
{{- define "lines"}}{{range .}}
<div>{{if .Label}}<b>{{.Label}}:</b> {{end}}{{.Text}}</div>{{end}}{{end}}
{{- define "links"}}{{range .}}
<a href="{{.Text}}">{{.Label}}</a>{{end}}{{end}}
{{- template "lines" .Lead}}
{{- range .Parts}}
<div style="border-left:3px solid {{.Colour}};padding-left:8px;margin:12px 0">
<b>{{.Head}}</b>{{template "lines" .Lines}}{{template "links" .Links}}
</div>
{{- end}}
{{- if .More}}
<p>{{.More}}</p>
{{- end}}
<p>{{template "links" .Links}}</p>
</body></html>
`))

// html is the message as a page; the template escapes all that it holds.
func (s message) html() (string, error) {
	page := struct {
		mailPart
		Title, Text, More string
		Lead              []mailLine
		Parts             []mailPart
	}{Title: s.title, Text: s.text}
	page.Colour, page.Links = s.level.colour(), mailLinks(s.links)
	if s.text == "" {
		page.Lead = mailLines(s.lead)
		for _, p := range s.parts {
			page.Parts = append(page.Parts, mailPart{p.level.colour(), p.head, mailLines(p.lines), mailLinks(p.links)})
		}
	}
	if s.more.n > 0 {
		page.More = s.more.words(s.lang)
	}
	var b strings.Builder
	err := mailPage.Execute(&b, page)
	return b.String(), err
}

func mailLines(list []line) (out []mailLine) {
	for _, l := range list {
		out = append(out, mailLine{l.label, l.text})
	}
	return out
}

func mailLinks(list []link) (out []mailLine) {
	for _, l := range list {
		out = append(out, mailLine{l.text, l.url})
	}
	return out
}
