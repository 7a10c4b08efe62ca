package console

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// targetRow is a target with the form that pauses it.
type targetRow struct {
	api.Target
	Mark string
}

// targets answers GET /targets.
func (s *Server) targets(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.targetsPage(w, r, who, requestAgain{})
}

func (s *Server) targetsPage(w http.ResponseWriter, r *http.Request, who users.User, again requestAgain) error {
	var rows []targetRow
	for _, t := range s.deps.Targets.Targets() {
		rows = append(rows, targetRow{t, pauseMark(t)})
	}
	page := pageSpec{name: "targets", section: "/targets", title: "Targets", data: rows, problem: again.problem, typed: again.typed, once: again.problem != nil}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	return s.show(w, r, who, page)
}

// pauseMark names whether and since when a target is paused.
func pauseMark(t api.Target) string {
	if t.Paused == nil {
		return mark("runs", t.Name)
	}
	return mark("paused", t.Name, t.Paused.By, t.Paused.Since.String())
}

// pauseForm answers POST /targets/pause and /targets/resume.
func (s *Server) pauseForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "target", "for", "mark", "do")
	if err != nil {
		return err
	}
	do := q.oneOf("do", "pause", "resume")
	name := q.text("target")
	p := locksteward.Pause{By: who.Name, Since: time.Now().Truncate(time.Millisecond)}
	if d := q.span("for", "for"); d != nil && do == "pause" {
		if *d < time.Second || *d > MaxPause {
			q.bad("for: must be between 1s and %s, got %s", MaxPause, *d)
		}
		p.Until = p.Since.Add(*d)
	}
	if name == "" {
		q.bad("target: is missing")
	}
	if err = q.err(); err == nil {
		err = s.pauseNow(r, who, name, do, q.text("mark"), p)
	}
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), "/targets")
		return nil
	}
	problem, known := formProblem(err)
	if !known || problem.Code == api.CodeNotFound {
		return err
	}
	return s.targetsPage(w, r, who, requestAgain{problem: problem, typed: q.values})
}

func (s *Server) pauseNow(r *http.Request, who users.User, name, do, seen string, p locksteward.Pause) error {
	for _, t := range s.deps.Targets.Targets() {
		if t.Name == name && pauseMark(t) != seen {
			return stale("the target was paused or resumed")
		}
	}
	ctx, cancel := changing(r)
	defer cancel()
	var names []string
	var err error
	if do == "pause" {
		names, err = s.deps.Pauser.Pause(ctx, name, p)
	} else {
		names, err = s.deps.Pauser.Resume(ctx, name, who.Name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	s.log.Warn("console change", zap.String("action", do+"d"), zap.Strings("targets", names), zap.String("user", who.Name))
	return nil
}

// classes answers GET /classes.
func (s *Server) classes(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.show(w, r, who, pageSpec{name: "classes", section: "/classes", title: "Classes", data: s.deps.Targets.Classes()})
}
