package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/users"
)

// pageList is how many findings, or cards of several, the page of findings shows.
const pageList = 20

// findingsData is a list of findings with its filter, or one of them.
type findingsData struct {
	Severities, Statuses, Rules, Classes, InTarget pick
	Filtered                                       bool
	Cards                                          []findingCard
	Pager                                          pager
	targetHealth
}

// findings answers GET /findings, the worst first.
func (s *Server) findings(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "target", "class", "rule", "severity", "status", "cursor")
	severity := q.oneOf("severity", "critical", "warning", "info")
	status := q.oneOf("status", "firing", "pending")
	var after findingCursor
	behind := q.cursor(&after)
	if err := q.err(); err != nil {
		return err
	}
	all := s.deps.Findings.Findings()
	sortFindings(all)
	var data findingsData
	data.choices(s, q, all)
	data.Filtered = q.text("target")+q.text("class")+q.text("rule")+severity+status != ""
	list := slices.DeleteFunc(all, func(f locksteward.Finding) bool {
		return differs(q.text("target"), f.Target) || differs(q.text("class"), f.Class) || differs(q.text("rule"), f.Rule) ||
			differs(severity, f.Severity.String()) || differs(status, string(f.Status))
	})
	total := len(list)
	v := s.view(r, who, pageSpec{})
	rows := s.markSilenced(s.explained(list))
	cards := cardsOf(rows)
	if len(cards) == 1 { // of one cause: each finding has a card
		cards = cards[:0]
		for _, row := range rows {
			cards = append(cards, findingCard{findingRow: row, Count: 1})
		}
	}
	several := len(cards) < total
	whole := len(cards)
	if behind {
		last := after.finding()
		cards = slices.DeleteFunc(cards, func(c findingCard) bool { return compareSeverity(c.Finding, last) <= 0 })
		data.Pager.Before, data.Pager.BeforeName = v.With("cursor", ""), "Worst first"
	}
	if len(cards) > pageList {
		data.Pager.After, data.Pager.AfterName = v.With("cursor", encodeCursor(findingCursorOf(cards[pageList-1].Finding))), "Next"
		cards = cards[:pageList]
	}
	if total > 0 {
		data.Pager.Shows = plural.Count(total, "finding")
		switch {
		case several && len(cards) < whole:
			data.Pager.Shows = strconv.Itoa(len(cards)) + " of " + plural.Count(whole, "cause") + ", " + data.Pager.Shows
		case several:
			data.Pager.Shows += " of " + plural.Count(whole, "cause")
		case len(cards) < total:
			data.Pager.Shows = plural.Count(len(cards), "finding") + " of " + strconv.Itoa(total)
		}
	}
	data.Cards = s.actionsFor(r, v).complete(cards, s.titles(v.Lang))
	data.targetHealth = healthOf(s.deps.Targets.Targets())
	data.limitTo(q.text("target"))
	return s.show(w, r, who, pageSpec{name: "findings", section: "/findings", title: "Findings", data: data})
}

// explained adds to findings which other finding is notified instead.
func (s *Server) explained(list []locksteward.Finding) []findingRow {
	first := map[string]locksteward.Finding{}
	for _, f := range s.deps.Findings.Findings() {
		if isNotified(f) {
			first[f.Fingerprint()] = f
		}
	}
	out := make([]findingRow, 0, len(list))
	for _, f := range list {
		row := findingRow{Finding: f}
		if f.InhibitedBy != "" {
			row.By = toldBy(first, f.InhibitedBy)
		}
		out = append(out, row)
	}
	return out
}

func (d *findingsData) choices(s *Server, q *query, all []locksteward.Finding) {
	d.Severities = pick{Label: "Severity", Name: "severity", All: "any severity"}
	for _, name := range []string{"critical", "warning", "info"} {
		d.Severities.add(name, name, q.text("severity"))
	}
	d.Statuses = pick{Label: "Status", Name: "status", All: "firing and pending"}
	for _, name := range []string{"firing", "pending"} {
		d.Statuses.add(name, name, q.text("status"))
	}
	d.Rules = pick{Label: "Rule", Name: "rule", All: "all rules"}
	var rules []string
	for _, f := range all {
		rules = append(rules, f.Rule)
	}
	slices.Sort(rules)
	for _, rule := range slices.Compact(rules) {
		d.Rules.add(rule, rule, q.text("rule"))
	}
	d.Rules.keep(q.text("rule"))
	d.Classes = pick{Label: "Class", Name: "class", All: "all classes"}
	for _, c := range s.deps.Targets.Classes() {
		d.Classes.add(c.Class, c.Class, q.text("class"))
	}
	d.Classes.keep(q.text("class"))
	d.InTarget = pick{Label: "Target", Name: "target", All: "all targets"}
	for _, t := range s.deps.Targets.Targets() {
		d.InTarget.add(t.Name, t.Name, q.text("target"))
	}
	d.InTarget.keep(q.text("target"))
}

// findingData is one finding, or what is known of one that is over.
type findingData struct {
	Fingerprint string
	Row         *findingRow
	Resolved    *locksteward.Finding
	Host        string // that its locks can be asked for together
	Mark        string // of the silences there are
}

// finding answers GET /findings/{fingerprint}: where alerts lead to.
func (s *Server) finding(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.findingPage(w, r, who, requestAgain{})
}

func (s *Server) findingPage(w http.ResponseWriter, r *http.Request, who users.User, again requestAgain) error {
	silences, err := s.deps.Silences.Silences(r.Context(), true)
	if err != nil {
		return fmt.Errorf("list silences: %w", err)
	}
	data := findingData{Fingerprint: r.PathValue("fingerprint"), Mark: silencesMark(silences)}
	page := pageSpec{
		name: "finding", section: "/findings", title: "Finding", data: &data,
		problem: again.problem, typed: again.typed, once: again.problem != nil,
	}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	for _, f := range s.deps.Findings.Findings() {
		if f.Fingerprint() == data.Fingerprint {
			data.Row = &s.markSilenced(s.explained([]locksteward.Finding{f}))[0]
			page.title = f.Rule + " on " + showKey(f.Key)
			if f.Key == "" {
				page.title = f.Rule + " on " + f.Target
			}
			if f.Rule == ruleHostLost {
				data.Host = f.Subject
			}
		}
	}
	if data.Row == nil {
		page.status = http.StatusNotFound
		if f, ok := s.deps.Advisor.Resolved(data.Fingerprint); ok {
			data.Resolved, page.status, page.title = &f, 0, f.Rule+" resolved"
		}
	}
	return s.show(w, r, who, page)
}

// ruleHostLost is the rule whose findings are about all locks of one host.
const ruleHostLost = "host/lost"
