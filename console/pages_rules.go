package console

import (
	"fmt"
	"html/template"
	"net/http"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// ruleRow is a rule with how many findings it has now.
type ruleRow struct {
	api.Rule
	Firing, Pending int
}

// rules answers GET /rules.
func (s *Server) rules(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.show(w, r, who, pageSpec{name: "rules", section: "/rules", title: "Rules", data: s.ruleRows(langOf(r))})
}

func (s *Server) ruleRows(lang string) []ruleRow {
	var rows []ruleRow
	at := map[string]int{}
	for _, rule := range s.deps.Advisor.Rules(lang) {
		at[rule.Rule] = len(rows)
		rows = append(rows, ruleRow{Rule: rule})
	}
	for _, f := range s.deps.Findings.Findings() {
		i, ok := at[f.Rule]
		switch {
		case ok && f.Status == locksteward.StatusFiring:
			rows[i].Firing++
		case ok && f.Status == locksteward.StatusPending:
			rows[i].Pending++
		}
	}
	return rows
}

// ruleData is one rule with its page of the manual.
type ruleData struct {
	ruleRow
	Page template.HTML
}

// rule answers GET /rules/{group}/{name}.
func (s *Server) rule(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	name := r.PathValue("group") + "/" + r.PathValue("name")
	for _, row := range s.ruleRows(langOf(r)) {
		if row.Rule.Rule != name {
			continue
		}
		data := ruleData{ruleRow: row}
		if text, ok := locksteward.RulePage(row.Page); ok {
			data.Page = manual(text, r.PathValue("group"))
		}
		return s.show(w, r, who, pageSpec{name: "rule", section: "/rules", title: name, data: data})
	}
	return fmt.Errorf("rule %q: %w: the page of rules has all of them", inert(name), locksteward.ErrNotFound)
}
