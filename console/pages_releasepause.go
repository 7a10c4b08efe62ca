package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

const releasePausePath = "/release-pause"

// releasePauseData is what the page shows.
type releasePauseData struct {
	Scopes []pauseCard
	Mark   string
}

// pauseCard is one scope on the page: its state and the words around it.
type pauseCard struct {
	api.PauseOfScope
	Scope, Title, Effect string
	Kind, Button         string // classes of the style sheet
}

// releasePause answers GET /release-pause.
func (s *Server) releasePause(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.releasePausePage(w, r, who, requestAgain{})
}

func (s *Server) releasePausePage(w http.ResponseWriter, r *http.Request, who users.User, again requestAgain) error {
	now := s.deps.ReleasePause.ReleasePause()
	page := pageSpec{
		name: "release-pause", section: releasePausePath, title: "Release pause", data: newReleasePauseData(now),
		problem: again.problem, typed: again.typed, once: again.problem != nil,
	}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	return s.show(w, r, who, page)
}

func newReleasePauseData(now api.ReleasePause) releasePauseData {
	return releasePauseData{Mark: releasePauseMark(now), Scopes: []pauseCard{
		{
			PauseOfScope: now.All, Scope: api.PauseAll, Title: "All releases", Kind: "critical", Button: "danger",
			Effect: "While paused, requests and approvals are refused and nothing is executed. Denying and undoing still work. A pause survives a restart.",
		},
		{
			PauseOfScope: now.Automatic, Scope: api.PauseAutomatic, Title: "Automatic releases", Kind: "warning", Button: "second",
			Effect: "While paused, the agent releases nothing without a person, and people are warned before they approve.",
		},
	}}
}

// releasePauseMark identifies the pauses that the page showed.
func releasePauseMark(now api.ReleasePause) string {
	var parts []string
	for _, p := range []api.PauseOfScope{now.All, now.Automatic} {
		parts = append(parts, p.By, p.Since.String(), p.Until.String())
	}
	return mark(parts...)
}

// releasePauseForm answers POST /release-pause.
func (s *Server) releasePauseForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "do", "scope", "reason", "for", "mark")
	if err != nil {
		return err
	}
	if err = q.err(); err == nil {
		err = s.changePause(r, who, q)
	}
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), releasePausePath)
		return nil
	}
	p, known := formProblem(err)
	if !known {
		return err
	}
	return s.releasePausePage(w, r, who, requestAgain{problem: p, typed: q.values})
}

// changePause pauses or resumes releases as the form says.
func (s *Server) changePause(r *http.Request, who users.User, q *query) error {
	do := q.oneOf("do", "pause", "resume")
	scope := q.oneOf("scope", api.PauseAll, api.PauseAutomatic)
	reason := strings.TrimSpace(q.text("reason"))
	var until time.Time
	if d := q.span("for", "for how long"); d != nil && do == "pause" {
		if *d <= 0 || *d > MaxReleasePause {
			q.bad("for how long: write a duration such as 4h, at most %d days", int(MaxReleasePause/(24*time.Hour)))
		}
		until = time.Now().Add(*d).Truncate(time.Second)
	}
	if do == "" {
		q.bad("do: is missing")
	}
	if scope == "" {
		q.bad("scope: is missing")
	}
	if err := q.err(); err != nil {
		return err
	}
	if q.text("mark") != releasePauseMark(s.deps.ReleasePause.ReleasePause()) {
		return stale("somebody else paused or resumed releases")
	}
	ctx, cancel := changing(r)
	defer cancel()
	var err error
	if do == "pause" {
		err = s.deps.ReleasePause.PauseReleases(ctx, actorOf(who), scope, until, reason)
	} else {
		err = s.deps.ReleasePause.ResumeReleases(ctx, actorOf(who), scope, reason)
	}
	if err == nil {
		s.log.Warn("console change", zap.String("action", fmt.Sprintf("%s releases", do)), zap.String("scope", scope), zap.String("user", who.Name))
	}
	return err
}
