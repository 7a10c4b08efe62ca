package alert

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// links makes links to the console from its URL; "" for no links.
type links string

// manual is where anybody can read the pages of docs/.
const manual = "https://github.com/locksteward/locksteward/blob/main/docs/"

// withRunbooks gives a page of the manual to what has no runbook: neither has its class
// one, nor is there a console to lead to. It holds no name of a lock.
func (p *Payload) withRunbooks() {
	for i := range p.Findings {
		e := &p.Findings[i]
		e.RunbookURL = cmp.Or(e.RunbookURL, manual+rulePage(e.Rule))
	}
	switch {
	case p.Release != nil:
		p.Release.RunbookURL = cmp.Or(p.Release.RunbookURL, manual+"release.md")
	case p.Type == typeTest:
		p.RunbookURL = manual + "receivers.md"
	}
}

// rulePage is the page of a rule in the manual; those of one's own share one.
func rulePage(rule string) string {
	group, name, ok := strings.Cut(rule, "/")
	switch {
	case !ok:
		return "rules/README.md"
	case group == "custom":
		return "rules/custom.md"
	default:
		return "rules/" + url.PathEscape(group) + "/" + url.PathEscape(name) + ".md"
	}
}

// fill links everything in a notification to its page, and findings and requests of classes
// without a runbook to the rule's page of the manual in the console.
func (l links) fill(p *Payload) {
	if l == "" {
		return
	}
	for i := range p.Findings {
		e := &p.Findings[i]
		e.URL = l.finding(e.Fingerprint)
		if e.RunbookURL == "" {
			e.RunbookURL = l.rule(e.Rule)
		}
	}
	switch {
	case p.Release != nil && p.Release.Request != nil:
		p.Release.Request.URL = l.request(p.Release.Request.ID)
		p.URL = p.Release.Request.URL
		if rules := p.Release.Request.Findings; p.Release.RunbookURL == "" && len(rules) > 0 {
			p.Release.RunbookURL = l.rule(rules[0])
		}
	case p.Release != nil:
		p.URL = l.to("/release-pause")
	case len(p.Findings) == 0 && len(p.Counts) == 0:
		p.URL = l.to("/")
	case len(p.Findings) == 1 && p.Omitted == 0:
		p.URL = p.Findings[0].URL
	default:
		p.URL = l.findings(p)
	}
}

func (l links) to(path string) string { return strings.TrimRight(string(l), "/") + path }

func (l links) finding(fingerprint string) string {
	if fingerprint == "" {
		return ""
	}
	return l.to("/findings/" + url.PathEscape(fingerprint))
}

func (l links) request(id string) string { return l.to("/requests/" + url.PathEscape(id)) }

// rule is the rule's page; custom rules have none.
func (l links) rule(rule string) string {
	group, name, ok := strings.Cut(rule, "/")
	if !ok || group == "custom" {
		return ""
	}
	return l.to("/rules/" + url.PathEscape(group) + "/" + url.PathEscape(name))
}

// findings is the list of findings, of those that have in common what all of the
// notification have.
func (l links) findings(p *Payload) string {
	counts := p.Counts
	if len(counts) == 0 {
		for _, e := range p.Findings {
			counts = append(counts, Count{Rule: e.Rule, Target: e.Target, Class: e.Class})
		}
	}
	// More than is summed up is known by what the group shares alone.
	summed := 0
	for _, c := range p.Counts {
		summed += c.Findings
	}
	partial := len(p.Counts) > 0 && summed < len(p.Findings)+p.Omitted
	query := url.Values{}
	for name, of := range map[string]func(Count) string{
		"target": func(c Count) string { return c.Target },
		"class":  func(c Count) string { return c.Class },
		"rule":   func(c Count) string { return c.Rule },
	} {
		if partial {
			if p.Group != nil && p.Group.Labels[name] != "" {
				query.Set(name, p.Group.Labels[name])
			}
			continue
		}
		all := map[string]bool{}
		for _, c := range counts {
			all[of(c)] = true
		}
		if values := slices.Collect(maps.Keys(all)); len(values) == 1 && values[0] != "" {
			query.Set(name, values[0])
		}
	}
	if len(query) == 0 {
		return l.to("/findings")
	}
	return l.to("/findings?" + query.Encode())
}
