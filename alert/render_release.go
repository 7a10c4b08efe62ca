package alert

import (
	"slices"
	"strings"
)

func (r renderer) release(s *message, p Payload) {
	e := p.Release
	title := []string{r.word(p.Type)}
	s.addSentence(e.Text)
	q := e.Request
	s.urgent = slices.Contains([]string{"release.requested", "release.reminder", "release.unknown"}, p.Type)
	if q == nil {
		s.title = strings.Trim(strings.Join(append(title, tidy(e.Target)), " · "), " ·")
		s.fact(r.label("target"), e.Target)
		s.fact(r.label("actor"), e.Actor)
		s.fact(r.label("team"), e.Team)
		s.link(r.word("runbook"), e.RunbookURL)
		return
	}
	s.title = strings.Join(append(title, cut(lockName(q.Key), 80), tidy(q.Target)), " · ")
	s.fact(r.label("lock"), lockName(q.Key))
	s.fact(r.label("target"), where(q.Target, q.DB, q.Class, q.Library))
	s.fact(r.label("request"), q.ID+" · "+r.word(q.Act)+" · "+r.word(q.State))
	s.fact(r.label("requester"), q.Requester)
	s.fact(r.label("reason"), q.Reason)
	s.fact(r.label("findings"), strings.Join(q.Findings, ", "))
	for _, d := range q.Decisions {
		s.fact(r.label("decision"), d.By+" · "+r.word(d.Verdict)+" · "+d.Reason)
	}
	if q.FinishedAt.IsZero() {
		s.fact(r.label("expires"), clock(q.ExpiresAt))
	} else if r.lang != "zh" && q.Outcome != e.Text {
		s.fact(r.label("outcome"), q.Outcome)
	}
	if q.HolderAlive {
		s.addSentence(r.word("alive"))
	}
	if q.BreakGlass {
		s.addSentence(r.word("break_glass"))
	}
	s.fact(r.label("team"), e.Team)
	s.link(r.word("runbook"), e.RunbookURL)
	s.link(r.word("console"), q.URL)
}
