package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

// pageEntries is how many lines of the trail a page shows.
const pageEntries = 50

// auditData is part of the audit trail.
type auditData struct {
	Search, Actor, Action, Subject string
	Targets                        pick
	Since                          string
	Key                            string // exact bytes, from a link
	Filtered                       bool
	Rows                           []locksteward.Entry
	Pager                          pager
	Status                         *api.AuditStatus
	Trouble                        []api.AuditSink // receivers that get nothing
}

// audit answers GET /audit, the newest first.
func (s *Server) audit(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "q", "actor", "action", "target", "key", "key_b64", "subject", "since", "before")
	wanted := auditQuery(q)
	if err := q.err(); err != nil {
		return err
	}
	wanted.Limit = pageEntries + 1
	entries, err := s.deps.Audit.Entries(r.Context(), wanted)
	if err != nil {
		return fmt.Errorf("list audit entries: %w", err)
	}
	data := auditData{
		Search: inertTyped(wanted.Search), Actor: inertTyped(wanted.Actor), Action: inertTyped(wanted.Action), Subject: inertTyped(wanted.Subject),
		Since: inertTyped(q.text("since")), Key: wanted.Key, Rows: entries[:min(len(entries), pageEntries)],
		Filtered: wanted.Search+wanted.Actor+wanted.Action+wanted.Target+wanted.Subject+wanted.Key+q.text("since") != "",
	}
	data.Targets = pick{Label: "Target", Name: "target", All: "all targets"}
	for _, t := range s.deps.Targets.Targets() {
		data.Targets.add(t.Name, t.Name, wanted.Target)
	}
	data.Targets.keep(wanted.Target)
	v := s.view(r, who, pageSpec{})
	if wanted.Before > 0 {
		data.Pager.Before, data.Pager.BeforeName = v.With("before", ""), "Newest"
	}
	if len(entries) > pageEntries {
		data.Pager.After, data.Pager.AfterName = v.With("before", strconv.FormatInt(data.Rows[pageEntries-1].Seq, 10)), "Older"
	}
	if len(data.Rows) > 0 {
		data.Pager.Shows = fmt.Sprintf("entries %d to %d", data.Rows[len(data.Rows)-1].Seq, data.Rows[0].Seq)
	}
	// The trail is shown even where its state is not known.
	if status, err := s.deps.Audit.AuditStatus(r.Context()); err == nil {
		data.Status = &status
		for _, sink := range status.Sinks {
			if sink.Problem != "" || sink.Missed > 0 {
				data.Trouble = append(data.Trouble, sink)
			}
		}
	}
	return s.show(w, r, who, pageSpec{name: "audit", section: "/audit", title: "Audit trail", data: data})
}

// subjectPath is where the subject of an entry has a page; "" if it has none.
func subjectPath(subject string) string {
	switch {
	case strings.HasPrefix(subject, "r-"), strings.Contains(subject, ".") && strings.HasPrefix(subject, "b-"):
		return "/requests/" + subject
	case strings.HasPrefix(subject, "b-"):
		return "/bundles/" + subject
	default:
		return ""
	}
}

// actionWords are an action of the trail in words.
func actionWords(action string) string {
	switch action {
	case signin.ActionOK:
		return "signed in"
	case signin.ActionFailed:
		return "sign-in failed"
	case signin.ActionLocked:
		return "sign-in locked"
	case signin.ActionSignOut:
		return "signed out"
	}
	group, what, ok := strings.Cut(action, ".")
	if !ok {
		return action
	}
	return group + ": " + strings.ReplaceAll(what, "_", " ")
}
