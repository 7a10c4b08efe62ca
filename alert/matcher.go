package alert

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/suggest"
)

// matchLabels are the labels of findings for matchers, in the order of the documentation. key is the name as people see it.
var matchLabels = []string{
	"target", "db", "class", "rule", "severity", "key", "team", "status", "risk", "library", "subject", "proof", "fingerprint",
}

// maxMatcher bounds the text of a matcher, in bytes: names of locks can be long.
const maxMatcher = 16 << 10

// Matcher is one condition on a label of a finding. [ParseMatcher] makes it.
type Matcher struct {
	label, op, value string
	pattern          *regexp.Regexp
}

// The operators. Regular expressions (RE2) are anchored at both ends.
const (
	opIs, opIsNot       = "=", "!="
	opMatches, opDiffer = "=~", "!~"
)

// ParseMatcher reads label=value, label!=value, label=~regexp or label!~regexp.
// The value is all that comes behind the operator, without quotes.
func ParseMatcher(text string) (Matcher, error) {
	if len(text) > maxMatcher {
		return Matcher{}, fmt.Errorf("matcher %q…: is longer than %d bytes", text[:40], maxMatcher)
	}
	at := strings.IndexAny(text, "=!")
	if at < 0 {
		return Matcher{}, fmt.Errorf("matcher %q: has no operator: write label=value, label!=value, label=~regexp or label!~regexp, such as team=checkout", text)
	}
	m := Matcher{label: strings.TrimSpace(text[:at])}
	for _, op := range []string{opIsNot, opMatches, opDiffer, opIs} {
		if value, ok := strings.CutPrefix(text[at:], op); ok {
			m.op, m.value = op, value
			break
		}
	}
	if m.op == "" {
		return Matcher{}, fmt.Errorf("matcher %q: ! is no operator: write label!=value or label!~regexp", text)
	}
	if !slices.Contains(matchLabels, m.label) {
		meant := ""
		if near := suggest.Nearest(m.label, matchLabels, nil); near != "" && m.label != "" {
			meant = fmt.Sprintf(", did you mean %s?", near)
		}
		return Matcher{}, fmt.Errorf("matcher %q: %q is no label%s; write one of %s", text, m.label, meant, strings.Join(matchLabels, ", "))
	}
	if v := m.value; m.label != "key" && len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
		return Matcher{}, fmt.Errorf("matcher %q: the value has quotes, which would be part of it: write %s%s%s", text, m.label, m.op, v[1:len(v)-1])
	}
	if m.op == opMatches || m.op == opDiffer {
		re, err := regexp.Compile("^(?:" + m.value + ")$")
		if err != nil {
			return Matcher{}, fmt.Errorf("matcher %q: %w; it is a regular expression (RE2) because of %s: write %s for the text itself", text, cause(err), m.op, map[string]string{opMatches: opIs, opDiffer: opIsNot}[m.op])
		}
		m.pattern = re
	}
	return m, nil
}

// cause is what is wrong with a regular expression, without the anchors that are
// ours.
func cause(err error) error {
	text := err.Error()
	text = strings.NewReplacer("`^(?:", "`", ")$`", "`", "error parsing regexp: ", "").Replace(text)
	return errors.New(text)
}

// String is the text of the matcher.
func (m Matcher) String() string { return m.label + m.op + m.value }

// Match reports whether the condition holds for a finding. A label that a finding does not
// have is empty.
func (m Matcher) Match(f locksteward.Finding) bool { return m.match(&labelled{Finding: f}) }

func (m Matcher) match(f *labelled) bool { return m.holds(f.value(m.label)) }

func (m Matcher) holds(value string) bool {
	switch m.op {
	case opIs:
		return value == m.value
	case opIsNot:
		return value != m.value
	case opMatches:
		return m.pattern.MatchString(value)
	default:
		return !m.pattern.MatchString(value)
	}
}

// labelled is a finding for many matchers.
type labelled struct {
	locksteward.Finding
	print string // its fingerprint, once somebody asked for it
}

// value is that of a label; labels by which findings are grouped have the same
// there.
func (f *labelled) value(label string) string {
	switch label {
	case "fingerprint":
		if f.print == "" {
			f.print = f.Fingerprint()
		}
		return f.print
	case "severity":
		return f.Severity.String()
	case "team":
		return f.Team
	case "status":
		return string(f.Status)
	case "risk":
		return f.Risk
	case "library":
		return f.Library
	case "subject":
		return f.Subject
	case "proof":
		return string(f.Proof)
	default:
		return labelOf(f.Finding, label)
	}
}

// Matchers are conditions that must all hold.
type Matchers []Matcher

// ParseMatchers reads matchers, and reports all that is wrong with them.
func ParseMatchers(texts []string) (Matchers, error) {
	var out Matchers
	var errs []error
	for _, text := range texts {
		m, err := ParseMatcher(text)
		errs = append(errs, err)
		out = append(out, m)
	}
	return out, errors.Join(errs...)
}

// Match reports whether all hold for a finding; no matchers match every finding.
func (m Matchers) Match(f locksteward.Finding) bool { return m.match(&labelled{Finding: f}) }

func (m Matchers) match(f *labelled) bool {
	for _, one := range m {
		if !one.match(f) {
			return false
		}
	}
	return true
}

// everything reports whether no condition requires anything: all of them hold for a finding
// without labels.
func (m Matchers) everything() bool {
	return !slices.ContainsFunc(m, func(one Matcher) bool { return !one.holds("") })
}

// Silence holds back notifications of findings that match all its matchers, from StartsAt
// until EndsAt.
type Silence struct {
	ID       string
	Matchers Matchers
	StartsAt time.Time
	EndsAt   time.Time
}

// ParseSilence reads the matchers of a silence. One that would hold for every
// finding is refused: silencing all is stopping to watch.
func ParseSilence(texts []string) (Matchers, error) {
	m, err := ParseMatchers(texts)
	if err != nil {
		return nil, err
	}
	if m.everything() {
		return nil, errors.New("the matchers would silence everything: add one that asks for something, such as team=checkout")
	}
	return m, nil
}

// active reports whether the silence applies at a time.
func (s Silence) active(now time.Time) bool { return !now.Before(s.StartsAt) && now.Before(s.EndsAt) }

// SilencedBy returns the silence that holds back notifications of a finding now, and until
// when: of several the one that ends last.
func SilencedBy(list []Silence, f locksteward.Finding, now time.Time) (id string, until time.Time, ok bool) {
	seen := &labelled{Finding: f}
	for _, s := range list {
		if s.active(now) && cmp.Or(s.EndsAt.Compare(until), strings.Compare(id, s.ID)) > 0 && s.Matchers.match(seen) {
			id, until, ok = s.ID, s.EndsAt, true
		}
	}
	return id, until, ok
}
