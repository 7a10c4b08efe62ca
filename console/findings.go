package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// listFindings answers GET /api/v1/findings, the worst first.
func (s *Server) listFindings(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target", "class", "rule", "severity", "status", "q", "lang", "limit", "cursor")
	severity := q.oneOf("severity", "critical", "warning", "info")
	status := q.oneOf("status", "firing", "pending")
	lang, limit, text := q.lang(), q.limit(), strings.ToLower(q.text("q"))
	var after findingCursor
	more := q.cursor(&after)
	if err := q.err(); err != nil {
		return err
	}
	findings := slices.DeleteFunc(s.deps.Findings.Findings(), func(f locksteward.Finding) bool {
		return differs(q.text("target"), f.Target) || differs(q.text("class"), f.Class) || differs(q.text("rule"), f.Rule) ||
			differs(severity, f.Severity.String()) || differs(status, string(f.Status)) ||
			!strings.Contains(strings.ToLower(f.Key), text)
	})
	sortFindings(findings)
	out := api.FindingList{Total: len(findings)}
	if more {
		last := after.finding()
		findings = slices.DeleteFunc(findings, func(f locksteward.Finding) bool { return compareSeverity(f, last) <= 0 })
	}
	if len(findings) > limit {
		findings = findings[:limit]
		out.Next = encodeCursor(findingCursorOf(findings[limit-1]))
	}
	out.Findings = s.listed(findings, lang)
	out.Unseen = api.UnseenOf(s.deps.Targets.Targets(), q.text("target"), time.Now())
	linkNext(w, r, out.Next)
	return writeJSON(w, http.StatusOK, out)
}

// sortFindings puts first what a person must see first.
func sortFindings(findings []locksteward.Finding) { slices.SortFunc(findings, compareSeverity) }

func compareSeverity(a, b locksteward.Finding) int {
	return cmp.Or(
		cmp.Compare(b.Severity, a.Severity),
		// firing sorts before pending
		cmp.Compare(a.Status, b.Status),
		a.Since.Compare(b.Since),
		cmp.Compare(a.Target, b.Target), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key),
		cmp.Compare(a.Class, b.Class), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject),
	)
}

// listTargets answers GET /api/v1/targets.
func (s *Server) listTargets(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.TargetList{Targets: append([]api.Target{}, s.deps.Targets.Targets()...)})
}

// listClasses answers GET /api/v1/classes.
func (s *Server) listClasses(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.ClassList{Classes: append([]api.Class{}, s.deps.Targets.Classes()...)})
}
