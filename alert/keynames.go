package alert

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// hideKeys takes the names of locks out of a message, by the receiver's key_names:
// "template" tells the pattern of the class instead, as patternOf knows it, "hash"
// a number that is the same for the same name and that nobody without the salt can
// make. In texts every way in which the agent writes a name is replaced; texts of
// rules that name other locks as well are left out. Fingerprints stay: they tie a
// resolve to its fire.
func (p *Payload) hideKeys(mode string, patternOf func(class, key string) string, salt []byte) {
	if mode == "" || mode == KeyNamesFull {
		return
	}
	h := hider{mode: mode, patternOf: patternOf, salt: salt, lang: p.Lang, shown: map[string]string{}}
	for i := range p.Findings {
		h.learn(p.Findings[i].Key, p.Findings[i].Class)
	}
	if p.Release != nil && p.Release.Request != nil {
		h.learn(p.Release.Request.Key, p.Release.Request.Class)
	}
	h.prepare()
	for i := range p.Findings {
		h.finding(&p.Findings[i])
	}
	h.group(p)
	if p.Release != nil {
		h.release(p.Release)
	}
	p.Text = h.text(p.Text)
}

// hider replaces names by what is shown for them.
type hider struct {
	mode      string
	patternOf func(class, key string) string
	salt      []byte
	lang      string

	shown map[string]string // by name, exact bytes
	// forms are the ways to write the names, by their first byte, the longest first.
	forms [256][]form
}

// form is one way to write a name.
type form struct {
	text, shown string
	// alone says that the text is too short to be replaced inside of words.
	alone bool
}

func (h *hider) learn(k api.Key, class string) {
	name := nameOf(k)
	if name == "" || h.shown[name] != "" {
		return
	}
	if h.mode == KeyNamesHash {
		h.shown[name] = "key:" + h.hash(name)
		return
	}
	pattern := ""
	if h.patternOf != nil {
		pattern = h.patternOf(class, name)
	}
	// A pattern without a wildcard is the name itself.
	if pattern == "" || strings.Contains(pattern, name) {
		pattern = cmp.Or(class, "lock")
	}
	h.shown[name] = pattern
}

func nameOf(k api.Key) string {
	name, err := k.Bytes()
	if err != nil {
		return k.Key
	}
	return name
}

func (h *hider) hash(name string) string {
	sum := sha256.New()
	sum.Write([]byte(strconv.Itoa(len(h.salt)) + ":"))
	sum.Write(h.salt)
	sum.Write([]byte(name))
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// shortForm is below what length a name is only replaced where it stands alone.
const shortForm = 5

// prepare lists every way to write each name.
func (h *hider) prepare() {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.shown)) {
		for _, text := range formsOf(name) {
			if text != "" && !seen[text] {
				seen[text] = true
				h.forms[text[0]] = append(h.forms[text[0]], form{text, h.shown[name], len(text) < shortForm})
			}
		}
	}
	for _, list := range h.forms {
		slices.SortStableFunc(list, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
}

func formsOf(name string) []string {
	shown := locksteward.DisplayKey(name)
	encoded, _ := json.Marshal(name)
	inner := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	out := []string{
		name, shown, strings.ToValidUTF8(name, "\ufffd"), inner(strconv.Quote(name)), inner(strconv.QuoteToASCII(name)), inner(strconv.Quote(shown)),
		inner(string(encoded)), url.QueryEscape(name), url.PathEscape(name), html.EscapeString(shown), tidy(name),
		base64.StdEncoding.EncodeToString([]byte(name)), base64.RawURLEncoding.EncodeToString([]byte(name)), base64.URLEncoding.EncodeToString([]byte(name)),
		strings.ReplaceAll(shown, `'`, `'\''`), strings.ReplaceAll(name, `'`, `'\''`),
	}
	return out
}

// text replaces the names in a text.
func (h *hider) text(text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if f, ok := h.at(text, i); ok {
			b.WriteString(f.shown)
			i += len(f.text)
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// at is the longest form of a name that begins at i.
func (h *hider) at(text string, i int) (form, bool) {
	for _, f := range h.forms[text[i]] {
		if !strings.HasPrefix(text[i:], f.text) {
			continue
		}
		if f.alone && (wordEnds(text[:i]) || wordBegins(text[i+len(f.text):])) {
			continue
		}
		return f, true
	}
	return form{}, false
}

func wordEnds(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func wordBegins(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func (h *hider) texts(list []string) []string {
	out := make([]string, 0, len(list))
	for _, text := range list {
		out = append(out, h.text(text))
	}
	return out
}

func (h *hider) key(k api.Key) api.Key { return api.Key{Key: h.shown[nameOf(k)]} }

// ownNameOnly are the rules whose texts name no lock but the finding's own. Rules
// of one's own quote what their expression saw, and so are not among them.
var ownNameOnly = []string{
	"contention/high", "hold/lost", "hold/too-long", "holder/dead", "redlock/minority", "renewal/failing", "renewal/zombie",
	"server/evicts-locks", "server/flushed", "server/not-durable", "server/refuses-writes",
	"ttl/none", "ttl/running-out", "ttl/too-long", "wait/starved",
}

// namesOthers are the rules whose texts name other locks.
var namesOthers = []string{
	"fence/regressed", "holder/shared-token", "host/lost", "server/failover", "server/restarted",
	"wait/cycle", "wait/order-inversion",
}

func (h *hider) finding(e *PayloadFinding) {
	shown := h.key(e.Key)
	e.Key, e.Unlock = shown, ""
	e.Cause, e.Remedy, e.Subject = h.text(e.Cause), h.text(e.Remedy), h.text(e.Subject)
	e.RunbookURL, e.URL, e.EventID = h.text(e.RunbookURL), h.text(e.URL), h.text(e.EventID)
	if slices.Contains(ownNameOnly, e.Rule) {
		e.Summary, e.Evidence, e.CounterEvidence = h.text(e.Summary), h.texts(e.Evidence), h.texts(e.CounterEvidence)
		return
	}
	e.Summary = strings.Trim(e.Rule+": "+shown.Key, ": ")
	e.Evidence, e.CounterEvidence = []string{translate(h.lang, "hidden")}, []string{}
}

// group hides names in what findings share. A group key that holds one becomes a
// hash, so that it stays the group's own.
func (h *hider) group(p *Payload) {
	p.URL = h.text(p.URL)
	if p.Group == nil {
		return
	}
	g := *p.Group // other messages may share it
	if named := g.Labels["key"]; named != "" || h.text(g.Key) != g.Key {
		g.Key = "group:" + h.hash(g.Key)
	}
	g.Labels = maps.Clone(g.Labels)
	for name, value := range g.Labels {
		if name == "key" && value != "" {
			// Findings that are over can have left only this of their name.
			g.Labels[name] = cmp.Or(h.whole(value), "key:"+h.hash(value))
			continue
		}
		g.Labels[name] = h.text(value)
	}
	p.Group = &g
}

// whole is what is shown for a text that is a name and nothing else.
func (h *hider) whole(text string) string {
	for _, f := range h.forms[text[0]] {
		if f.text == text {
			return f.shown
		}
	}
	return ""
}

func (h *hider) release(r *ReleaseEvent) {
	r.Text, r.EventID = h.text(r.Text), h.text(r.EventID)
	q := r.Request
	if q == nil {
		return
	}
	q.Key = h.key(q.Key)
	q.Reason, q.Outcome, q.URL = h.text(q.Reason), h.text(q.Outcome), h.text(q.URL)
	for i := range q.Decisions {
		q.Decisions[i].Reason = h.text(q.Decisions[i].Reason)
	}
}
