package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
)

const (
	// activityMost bounds the findings and the releases that a strip counts.
	activityMost = 5000
	releasesMost = 500
	// longestRequest is longer than a request is open: one that was executed in the last day was made within this time.
	longestRequest = 7 * 24 * time.Hour
	stripHeight    = 40.0
)

// strip is what happened in the last hour or day, drawn on a scale of 1000 units.
type strip struct {
	Name, ID string
	From, To time.Time
	Bars     []stripBar // findings that fired, by severity
	Servers  []laneBar  // restarts, flushes, failovers
	Releases []laneBar
	Words    string
}

// stripBar is the findings of one severity in one step of time; Y is from the top of 40 units.
type stripBar struct {
	X, W, Y, H float64
	Tone       string
	Title      string
}

// serverRules are the rules that find what happened to a server, and what that is called.
var serverRules = map[string]string{"server/restarted": "restart", "server/flushed": "flush", "server/failover": "failover"}

// activity draws the last hour and the last day. Without the store it returns why there is none.
func (s *Server) activity(r *http.Request, now time.Time) ([]strip, string) {
	day := now.Add(-24 * time.Hour)
	fired, err := s.deps.History.Fired(r.Context(), day, activityMost)
	if err != nil {
		return nil, api.ProblemFor(err).Detail
	}
	released, err := s.deps.Requests.List(r.Context(), RequestFilter{
		States: []locksteward.RequestState{locksteward.RequestReleased}, Since: now.Add(-longestRequest), Limit: releasesMost,
	})
	if err != nil {
		return nil, api.ProblemFor(err).Detail
	}
	return []strip{
		newStrip("Last hour", "hour", now, time.Hour, time.Minute, fired, released),
		newStrip("Last day", "day", now, 24*time.Hour, 15*time.Minute, fired, released),
	}, ""
}

// severities are from the worst, as they are drawn from the ground up.
var severities = []string{"critical", "warning", "info"}

// newStrip draws the time before now in steps.
func newStrip(name, id string, now time.Time, length, step time.Duration, fired []api.LockEvent, released []locksteward.Request) strip {
	out := strip{Name: name, ID: id, From: now.Add(-length), To: now}
	steps := int(length / step)
	width := 1000 / float64(steps)
	counts := make([]map[string]int, steps)
	totals, servers := map[string]int{}, map[string]int{}
	most := 0
	at := func(t time.Time) (int, bool) {
		if i := int(t.Sub(out.From) / step); !t.Before(out.From) && i < steps {
			return i, true
		}
		return steps - 1, t.After(now) && t.Sub(now) < step // a clock that is a little ahead
	}
	tick := func(t time.Time, what, tone string) laneBar {
		x := min(1000, max(0, round(1000*float64(t.Sub(out.From))/float64(length))))
		return laneBar{X: min(x, 994), W: 6, Tone: tone, Title: what + ", " + t.UTC().Format(time.DateTime) + " UTC"}
	}
	for _, e := range slices.Backward(fired) {
		i, ok := at(e.At)
		if !ok || !slices.Contains(severities, e.Severity) {
			continue
		}
		if what := serverRules[e.Rule]; what != "" {
			servers[what]++
			out.Servers = append(out.Servers, tick(e.At, what, "critical"))
			continue
		}
		if counts[i] == nil {
			counts[i] = map[string]int{}
		}
		counts[i][e.Severity]++
		counts[i][""]++
		totals[e.Severity]++
		most = max(most, counts[i][""])
	}
	for i, n := range counts {
		y := stripHeight
		for _, severity := range severities {
			if n[severity] == 0 {
				continue
			}
			h := max(3, round(stripHeight*float64(n[severity])/float64(most)))
			y = max(0, y-h)
			from := out.From.Add(time.Duration(i) * step)
			out.Bars = append(out.Bars, stripBar{
				X: round(float64(i) * width), W: round(width * .8), Y: y, H: h, Tone: severity,
				Title: fmt.Sprintf("%d %s, %s to %s UTC", n[severity], severity, from.UTC().Format("15:04"), from.Add(step).UTC().Format("15:04")),
			})
		}
	}
	for _, r := range slices.Backward(released) {
		if r.FinishedAt.Before(out.From) || r.Evidence.Act == locksteward.ActUndo || r.Evidence.Act == locksteward.ActLift {
			continue
		}
		out.Releases = append(out.Releases, tick(r.FinishedAt, "release of "+showKey(r.Evidence.Key), "forced"))
	}
	out.Words = stripWords(totals, servers, len(out.Releases), len(fired) >= activityMost)
	return out
}

// stripWords says what a strip shows.
func stripWords(totals, servers map[string]int, releases int, cut bool) string {
	var parts []string
	findings, kind := 0, "finding"
	for _, severity := range severities {
		if n := totals[severity]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, severity))
			findings, kind = findings+n, severity+" finding"
		}
	}
	words := "no finding fired"
	switch len(parts) {
	case 0:
	case 1:
		words = plural.Count(findings, kind) + " fired"
	default:
		words = plural.Count(findings, "finding") + " fired: " + strings.Join(parts, ", ")
	}
	if findings > 0 && cut {
		words = "at least " + words
	}
	for _, what := range []string{"restart", "flush", "failover"} {
		if n := servers[what]; n > 0 {
			words += "; " + plural.Count(n, what)
		}
	}
	if releases > 0 {
		words += "; " + plural.Count(releases, "release")
	}
	return words
}
