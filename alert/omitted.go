package alert

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// A notification counts what it does not list, by kind: the worst are listed first, but in a
// storm the rest may be critical as well.

// The kinds of findings that have ended, and of those of which only is known that the
// receiver was notified of them. All others are of the kind of their severity.
const (
	kindResolved = "resolved"
	kindNotified = "notified_before"
)

// kindOf is the kind of a finding.
func kindOf(status, severity string) string {
	if status == string(locksteward.StatusResolved) {
		return kindResolved
	}
	return severity
}

// omit counts what is not listed: events by kind, and findings that the receiver was
// notified of before, whose events were not read.
func (p *Payload) omit(events []locksteward.FindingEvent, before int) {
	p.Omitted = len(events) + before
	if p.Omitted == 0 {
		return
	}
	p.OmittedBy = map[string]int{}
	for _, t := range events {
		p.OmittedBy[kindOf(string(t.Finding.Status), t.Finding.Severity.String())]++
	}
	if before > 0 {
		p.OmittedBy[kindNotified] = before
	}
}

// rest is how many findings are not listed, and how many of each kind, as far as that
// is known.
type rest struct {
	n  int
	of map[string]int
}

// and is the rest with these parts.
func (r rest) and(parts []part) rest {
	if len(parts) == 0 {
		return r
	}
	out := rest{r.n + len(parts), maps.Clone(r.of)}
	if out.of == nil {
		out.of = map[string]int{}
	}
	for _, p := range parts {
		out.of[p.kind]++
	}
	return out
}

// words are such as "and 248 more: 12 critical, 236 warning".
func (r rest) words(lang string) string {
	var of []string
	for _, kind := range slices.SortedFunc(maps.Keys(r.of), worstKind) {
		if n := r.of[kind]; n > 0 {
			of = append(of, severityWords(lang, n, cmp.Or(kindWords[kind], kind)))
		}
	}
	return sentence(lang, "notification.more-of", r.n, list(of))
}

// worstKind orders kinds: severities from the worst on, then those that are none.
func worstKind(a, b string) int {
	return cmp.Or(cmp.Compare(slices.Index(severities, b), slices.Index(severities, a)), strings.Compare(a, b))
}

// kindWords are the words of kinds that are no severity.
var kindWords = map[string]string{kindResolved: "over", kindNotified: "notified_before"}
