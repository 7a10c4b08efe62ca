package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/users"
)

// Bounds of the page: it stays within 100 KB, the others have the rest.
const (
	pageCards   = 8
	pageOldest  = 10
	pageWaiting = 10
)

// overviewData is what needs a person now.
type overviewData struct {
	Pause    api.ReleasePause
	Findings []findingCard // findings that are notified
	// Explained are what is inhibited by these.
	Explained []findingCard
	// Inhibited counts the findings of Explained.
	Inhibited int
	Notified  int // findings that are notified
	Critical  int
	MoreNow   int
	// Silenced counts findings that somebody wanted to hear nothing of.
	Silenced int
	// Elsewhere counts findings that are pending or for information.
	Elsewhere int
	Waiting   []requestRow
	// Strips are the last hour and the last day; NoStrips is why there are none.
	Strips   []strip
	NoStrips string
	targetHealth
	States     []targetState
	MoreStates int
	Paces      bool // the pace of some target is known
	Oldest     lockTable
	AllLocks   int
	NoTTL      int
}

// Quiet says that nothing needs a person and that this can be known.
func (d overviewData) Quiet() bool {
	return len(d.Findings)+len(d.Explained) == 0 && !d.Unseen() && len(d.Targets) > 0
}

// findingRow is a finding; By names the finding that is notified instead, "" if it is notified
// itself.
type findingRow struct {
	locksteward.Finding
	By string
	// Silence mutes it; nil for none.
	Silence *api.Silence
	// Action is what its card offers to do; empty for nothing.
	Action cardAction
}

// Why is why the rule says so, in one line.
func (f findingRow) Why() locksteward.Message {
	if len(f.Evidence) > 0 {
		return f.Evidence[0]
	}
	return f.Cause
}

// overview answers GET /.
func (s *Server) overview(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	var data overviewData
	findings := s.deps.Findings.Findings()
	sortFindings(findings)
	findings, data.Silenced = s.unsilenced(findings)
	v := s.view(r, who, pageSpec{})
	data.now(findings)
	act, titles := s.actionsFor(r, v), s.titles(v.Lang)
	data.Findings, data.Explained = act.complete(data.Findings, titles), act.complete(data.Explained, titles)
	data.targetHealth = healthOf(s.deps.Targets.Targets())
	oldest, err := s.deps.Locks.ListLocks(LockFilter{Sort: "age", Limit: pageOldest})
	if err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	data.Oldest, data.AllLocks = lockTableOf(lockRows(oldest.Rows, len(data.Targets) > 1)), oldest.Total
	endless, err := s.deps.Locks.ListLocks(LockFilter{State: "no-ttl", Limit: 1})
	if err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	data.NoTTL = endless.Total
	if data.Waiting, err = s.waiting(r); err != nil {
		return err
	}
	data.Strips, data.NoStrips = s.activity(r, time.Now())
	data.states()
	data.Pause = s.deps.ReleasePause.ReleasePause()
	return s.show(w, r, who, pageSpec{name: "overview", section: "/", title: "Overview", data: data})
}

// pageTargets is how many targets the page lists.
const pageTargets = 12

// targetState is how a target is read, in a line.
type targetState struct {
	api.Target
	Word, Tone string
	Pace       string
}

// states fills in how each target is read, those that need a person first.
func (d *overviewData) states() {
	rank := map[string]int{"down": 0, "not read yet": 1, "incomplete": 2, "paused": 3}
	for _, t := range d.Targets {
		row := targetState{Target: t, Word: "up", Tone: "good", Pace: paceWords(t.Budget)}
		switch {
		case t.Beginning():
			row.Word, row.Tone = "not read yet", "warning"
		case !t.Up:
			row.Word, row.Tone = "down", "critical"
		case t.Paused != nil:
			row.Word, row.Tone = "paused", "warning"
		case t.LastSweep == nil || !t.LastSweep.Complete:
			row.Word, row.Tone = "incomplete", "warning"
		}
		d.Paces = d.Paces || row.Pace != ""
		d.States = append(d.States, row)
	}
	order := func(t targetState) int {
		if n, ok := rank[t.Word]; ok {
			return n
		}
		return len(rank)
	}
	slices.SortStableFunc(d.States, func(a, b targetState) int { return cmp.Compare(order(a), order(b)) })
	if len(d.States) > pageTargets {
		d.MoreStates = len(d.States) - pageTargets
		d.States = d.States[:pageTargets]
	}
}

// paceWords says which share of its servers' time a sweep takes; "" if that is not known.
func paceWords(b *api.Budget) string {
	if b == nil || len(b.Servers) == 0 {
		return ""
	}
	least, most := b.Servers[0].Share, b.Servers[0].Share
	for _, p := range b.Servers {
		least, most = min(least, p.Share), max(most, p.Share)
	}
	words := percent(most) + " of its server"
	if len(b.Servers) > 1 {
		words = percent(most) + " of each of " + plural.Count(len(b.Servers), "server")
	}
	if percent(least) != percent(most) {
		words = percent(least) + " to " + words
	}
	return words
}

// waiting are the requests that wait for a decision, the first to expire first,
// one for each bundle.
func (s *Server) waiting(r *http.Request) ([]requestRow, error) {
	list, err := s.deps.Requests.List(r.Context(), RequestFilter{States: []locksteward.RequestState{locksteward.RequestPending}, Limit: countMost})
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	rows := requestRows(list)
	bundles := map[string]int{} // index in out
	var out []requestRow
	for i := len(rows) - 1; i >= 0; i-- { // the oldest first: they expire first
		row := rows[i]
		if at, ok := bundles[row.Bundle]; ok && row.Bundle != "" {
			out[at].More++
			continue
		}
		if row.Bundle != "" {
			bundles[row.Bundle] = len(out)
			row.Address = "/bundles/" + row.Bundle
		}
		out = append(out, row)
	}
	return out[:min(len(out), pageWaiting)], nil
}

// now picks what needs a person: first what is notified, then what that
// explains.
func (d *overviewData) now(findings []locksteward.Finding) {
	var rows, explained []findingRow
	for _, row := range findingRows(findings) {
		switch {
		case row.Status != locksteward.StatusFiring || row.Severity < locksteward.SeverityWarning:
			d.Elsewhere++
			continue
		case isNotified(row.Finding):
			d.Notified++
			if row.Severity == locksteward.SeverityCritical {
				d.Critical++
			}
		}
		if row.InhibitedBy != "" {
			explained = append(explained, row)
		} else {
			rows = append(rows, row)
		}
	}
	d.Inhibited = len(explained)
	d.Findings = cardsOf(rows)
	d.Explained = cardsOf(explained)
	for _, list := range []*[]findingCard{&d.Findings, &d.Explained} {
		for len(*list) > pageCards {
			last := len(*list) - 1
			d.MoreNow += (*list)[last].Count
			*list = (*list)[:last]
		}
	}
}

// findingRows puts notified findings first; the others name the finding that is notified
// instead.
func findingRows(findings []locksteward.Finding) []findingRow {
	first := map[string]locksteward.Finding{}
	var out, explained []findingRow
	for _, f := range findings {
		if f.InhibitedBy == "" {
			if isNotified(f) {
				first[f.Fingerprint()] = f
			}
			out = append(out, findingRow{Finding: f})
			continue
		}
		explained = append(explained, findingRow{Finding: f})
	}
	for _, row := range explained {
		row.By = toldBy(first, row.InhibitedBy)
		out = append(out, row)
	}
	return out
}

// toldBy names the finding that is notified instead of another one.
func toldBy(first map[string]locksteward.Finding, fingerprint string) string {
	f, ok := first[fingerprint]
	switch {
	case !ok:
		return "finding " + fingerprint
	case f.Key != "":
		return f.Rule + " on " + showKey(f.Key)
	case f.Subject != "":
		return f.Rule + " of " + f.Subject
	default:
		return f.Rule
	}
}

// requestRow is a request in a list.
type requestRow struct {
	locksteward.Request
	Address string // of its page
	Bundle  string // id of the bundle it belongs to; "" for none
	More    int    // others of its bundle that it stands for
	What    string // what it asks for
	Open    bool
	Said    string
}

func requestRows(list []locksteward.Request) []requestRow {
	out := make([]requestRow, 0, len(list))
	for _, req := range list {
		row := requestRow{
			Request: req, Address: "/requests/" + req.ID, Open: !req.State.Final(), Said: decisionSummary(req), What: req.Evidence.Act.String(),
		}
		if req.Evidence.Bundle > 0 {
			row.Bundle, _, _ = strings.Cut(req.ID, ".")
		}
		out = append(out, row)
	}
	return out
}

// decisionSummary sums up a request's decisions.
func decisionSummary(r locksteward.Request) string {
	if r.Outcome != "" {
		return r.Outcome
	}
	var out []string
	for _, d := range r.Decisions {
		verb := "denied"
		if d.Approve {
			verb = "approved"
		}
		out = append(out, verb+" by "+d.By)
	}
	return strings.Join(out, ", ")
}
