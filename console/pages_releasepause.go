package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// stopsData is what keeps releases from happening.
type stopsData struct {
	api.Stops
	Mark string
}

// stops answers GET /stops.
func (s *Server) stops(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.stopsPage(w, r, who, requestAgain{})
}

func (s *Server) stopsPage(w http.ResponseWriter, r *http.Request, who users.User, again requestAgain) error {
	now := s.deps.Stops.Stops()
	page := shown{
		name: "stops", section: "/stops", title: "Kill switch and freeze", data: stopsData{now, stopsMark(now)},
		problem: again.problem, typed: again.typed, once: again.problem != nil,
	}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	return s.show(w, r, who, page)
}

// stopsMark names what admins stopped.
func stopsMark(now api.Stops) string {
	return mark(now.KillSwitch.By, now.KillSwitch.Since.String(), now.Freeze.By, now.Freeze.Until.String())
}

// stopsForm answers POST /stops.
func (s *Server) stopsForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "do", "reason", "for", "mark")
	if err != nil {
		return err
	}
	if err = q.err(); err == nil {
		err = s.stopNow(r, who, q)
	}
	if err == nil {
		goOn(w, r, s.view(r, who, shown{}), "/stops")
		return nil
	}
	p, known := shownAgain(err)
	if !known {
		return err
	}
	return s.stopsPage(w, r, who, requestAgain{problem: p, typed: q.values})
}

func (s *Server) stopNow(r *http.Request, who users.User, q *query) error {
	do := q.oneOf("do", "kill", "go-on", "freeze", "thaw")
	reason := strings.TrimSpace(q.text("reason"))
	var until time.Time
	if do == "freeze" {
		if d := q.span("for", "for how long"); d != nil && *d > 0 {
			until = time.Now().Add(*d).Truncate(time.Second)
		} else {
			q.bad("for how long: write a duration such as 4h")
		}
	}
	if do == "" {
		q.bad("do: is missing")
	}
	if err := q.err(); err != nil {
		return err
	}
	if q.text("mark") != stopsMark(s.deps.Stops.Stops()) {
		return stale("somebody else stopped or started releases")
	}
	ctx, cancel := changing(r)
	defer cancel()
	var err error
	switch do {
	case "kill", "go-on":
		err = s.deps.Stops.SetKillSwitch(ctx, actorOf(who), do == "kill", reason)
	case "freeze", "thaw":
		err = s.deps.Stops.SetFreeze(ctx, actorOf(who), until, reason)
	default:
		err = errors.New("unreachable: oneOf")
	}
	if err == nil {
		s.log.Warn("console change", zap.String("action", do), zap.String("user", who.Name))
	}
	return err
}
