package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// silencesData is what people want to hear nothing of.
type silencesData struct {
	Silences []api.Silence
	All      bool // also those that are over
	Mark     string
}

// silences answers GET /silences.
func (s *Server) silences(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "all")
	all := q.oneOf("all", "true") == "true"
	if err := q.err(); err != nil {
		return err
	}
	return s.silencesPage(w, r, who, all, requestAgain{})
}

func (s *Server) silencesPage(w http.ResponseWriter, r *http.Request, who users.User, all bool, again requestAgain) error {
	list, err := s.deps.Silences.Silences(r.Context(), true)
	if err != nil {
		return fmt.Errorf("list silences: %w", err)
	}
	data := silencesData{All: all, Mark: silencesMark(list)}
	for _, one := range list {
		if all || one.State == api.SilenceActive {
			data.Silences = append(data.Silences, one)
		}
	}
	page := pageSpec{
		name: "silences", section: "/silences", title: "Silences", data: data,
		problem: again.problem, typed: again.typed, once: again.problem != nil,
	}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	return s.show(w, r, who, page)
}

// silencesMark names the newest silence, so that a form that was sent already is
// known.
func silencesMark(list []api.Silence) string {
	if len(list) == 0 {
		return mark("no silence")
	}
	return mark(list[0].ID)
}

// silenceForm answers POST /silences.
func (s *Server) silenceForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "matchers", "for", "reason", "mark")
	if err != nil {
		return err
	}
	var matchers []string
	for line := range strings.Lines(q.text("matchers")) {
		if line = strings.TrimSpace(line); line != "" {
			matchers = append(matchers, line)
		}
	}
	err = s.silenceFrom(r, who, q, api.AddSilence{Matchers: matchers})
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), "/silences")
		return nil
	}
	p, known := formProblem(err)
	if !known {
		return err
	}
	return s.silencesPage(w, r, who, false, requestAgain{problem: p, typed: q.values})
}

// acceptForm answers POST /findings/{fingerprint}/accept.
func (s *Server) acceptForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "for", "reason", "mark")
	if err != nil {
		return err
	}
	fingerprint := r.PathValue("fingerprint")
	err = s.silenceFrom(r, who, q, api.AddSilence{Fingerprint: fingerprint})
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), "/findings/"+fingerprint)
		return nil
	}
	p, known := formProblem(err)
	if !known {
		return err
	}
	return s.findingPage(w, r, who, requestAgain{problem: p, typed: q.values})
}

// silenceFrom adds what a form asks for: in has what of it is no field of both
// forms.
func (s *Server) silenceFrom(r *http.Request, who users.User, q *query, in api.AddSilence) error {
	if d := q.span("for", "for how long"); d != nil && *d > 0 {
		in.ForMs = d.Milliseconds()
	} else {
		q.bad("for how long: write a duration such as 2h: every silence has an end")
	}
	if err := q.err(); err != nil {
		return err
	}
	if in.Fingerprint == "" && len(in.Matchers) == 0 {
		return fmt.Errorf("%w: what: write at least one condition, such as team=checkout", locksteward.ErrInvalid)
	}
	in.Reason = q.text("reason")
	wanted, err := silenceOf(in, time.Now())
	if err != nil {
		return err
	}
	list, err := s.deps.Silences.Silences(r.Context(), true)
	if err != nil {
		return fmt.Errorf("list silences: %w", err)
	}
	if q.text("mark") != silencesMark(list) {
		return stale("somebody else added a silence")
	}
	_, err = s.silence(r, who, wanted)
	return err
}

// expireForm answers POST /silences/{id}/expire.
func (s *Server) expireForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r)
	if err != nil {
		return err
	}
	if err = q.err(); err == nil {
		_, err = s.unsilence(r, who)
	}
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), "/silences")
		return nil
	}
	p, known := formProblem(err)
	if !known || p.Code == api.CodeNotFound {
		return err
	}
	return s.silencesPage(w, r, who, false, requestAgain{problem: p})
}

// unsilenced leaves out findings that are silenced.
func (s *Server) unsilenced(findings []locksteward.Finding) (out []locksteward.Finding, silenced int) {
	out = make([]locksteward.Finding, 0, len(findings))
	for _, f := range findings {
		if _, ok := s.deps.Silences.SilencedBy(f); ok && isNotified(f) {
			silenced++
			continue
		}
		out = append(out, f)
	}
	return out, silenced
}

// markSilenced says of findings what silences them.
func (s *Server) markSilenced(rows []findingRow) []findingRow {
	for i := range rows {
		if one, ok := s.deps.Silences.SilencedBy(rows[i].Finding); ok {
			rows[i].Silence = &one
		}
	}
	return rows
}
