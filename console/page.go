package console

import (
	"bytes"
	_ "embed" // for the page and its style
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

//go:embed web/overview.html
var overviewHTML string

//go:embed web/console.css
var consoleCSS []byte

// Bounds of the page: it stays within 100 KB, the API has the rest.
const (
	pageFindings = 25
	pageLocks    = 100
	pageRequests = 20
)

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{
	"key":     showKey,
	"inert":   inert,
	"span":    span,
	"ago":     func(now, then time.Time) string { return span(now.Sub(then)) },
	"millis":  func(ms int64) string { return span(time.Duration(ms) * time.Millisecond) },
	"percent": percent,
	"waited":  waited,
}).Parse(overviewHTML))

// overviewData is what the page shows; nothing in it is trusted to be harmless.
type overviewData struct {
	Lang     string
	Now      time.Time
	User     string
	NoUsers  bool
	Refresh  int
	Findings []findingRow // what needs a person now, and what that explains
	Told     int          // of Findings, those that people are told of
	MoreNow  int
	// Elsewhere counts findings that are pending or for information.
	Elsewhere int
	Down      []api.Target
	Blind     []api.Target // up, without a complete sweep
	Targets   []api.Target
	Locks     []lockRow
	AllLocks  int
	Requests  []requestRow
}

// Quiet says that nothing needs a person and that this can be known.
func (d overviewData) Quiet() bool {
	return len(d.Findings) == 0 && len(d.Down) == 0 && len(d.Blind) == 0 && len(d.Targets) > 0
}

// findingRow is a finding; By says what is told in its place, "" if it is told
// itself.
type findingRow struct {
	locksteward.Finding
	By string
}

type lockRow struct {
	Target, Key, Class, Library string
	Mode                        string
	Acquired                    time.Time // as the value says
	Doubt                       string    // why the age does not count it
	TTL, Age                    string
	NoTTL                       bool
	Holder                      string
	Findings                    []string
	State                       string // firing, pending or ""
}

type requestRow struct {
	locksteward.Request
	Open bool
	Said string
}

// overview answers GET /.
func (s *Server) overview(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := parseQuery(r, "lang", "refresh")
	data := overviewData{Lang: q.lang(), Refresh: q.number("refresh", 0, 5, 3600), Now: time.Now(), User: who.Name, NoUsers: s.users.Load().Len() == 0}
	if err := q.err(); err != nil {
		return err
	}
	if data.Lang == "" {
		data.Lang = "en"
	}
	findings := s.deps.Findings.Findings()
	sortFindings(findings)
	data.now(findings)
	data.Targets = s.deps.Targets.Targets()
	for _, t := range data.Targets {
		switch {
		case !t.Up:
			data.Down = append(data.Down, t)
		case t.LastSweep == nil || !t.LastSweep.Complete:
			data.Blind = append(data.Blind, t)
		}
	}
	data.Locks, data.AllLocks = s.lockRows(findings)
	requests, err := s.deps.Requests.List(r.Context(), RequestFilter{Limit: pageRequests})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	for _, req := range requests {
		data.Requests = append(data.Requests, requestRow{Request: req, Open: !req.State.Final(), Said: said(req)})
	}
	var page bytes.Buffer
	if err := overviewPage.Execute(&page, data); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	_, _ = w.Write(page.Bytes())
	return nil
}

// now picks what needs a person: first what people are told of, then what that
// explains.
func (d *overviewData) now(findings []locksteward.Finding) {
	told := map[string]locksteward.Finding{}
	var explained []findingRow
	show := func(row findingRow) {
		if len(d.Findings) == pageFindings {
			d.MoreNow++
			return
		}
		d.Findings = append(d.Findings, row)
		if row.By == "" {
			d.Told++
		}
	}
	for _, f := range findings {
		switch {
		case f.Status != locksteward.StatusFiring || f.Severity < locksteward.SeverityWarning:
			d.Elsewhere++
		case f.InhibitedBy != "":
			explained = append(explained, findingRow{Finding: f})
		default:
			told[f.Fingerprint()] = f
			show(findingRow{Finding: f})
		}
	}
	for _, row := range explained {
		row.By = toldBy(told, row.InhibitedBy)
		show(row)
	}
}

// toldBy names the finding that is told in place of another one.
func toldBy(told map[string]locksteward.Finding, fingerprint string) string {
	f, ok := told[fingerprint]
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

func (s *Server) lockRows(findings []locksteward.Finding) (rows []lockRow, all int) {
	locks := s.deps.Locks.Locks()
	sortLocks(locks, "age")
	states, rules := lockStates(findings), api.RulesByLock(findings)
	all = len(locks)
	for _, l := range locks[:min(pageLocks, all)] {
		row := lockRow{
			Target: l.Target, Key: l.Key, Class: l.Class, Library: l.Dialect, Mode: l.Mode, NoTTL: l.TTL == locksteward.NoExpiry,
			TTL: span(l.TTL), Age: "not known", Holder: holder(l.Holder), State: string(states[keyOf(l)]),
			Findings: slices.Compact(slices.Sorted(slices.Values(rules[keyOf(l)]))),
		}
		if row.NoTTL {
			row.TTL = "none"
		}
		row.Acquired = l.Acquired
		_, row.Doubt = l.WrittenAge()
		if age, basis, minimum := l.Age(); basis != locksteward.AgeNone {
			row.Age = span(age)
			if minimum {
				row.Age = "≥ " + row.Age
			}
		}
		rows = append(rows, row)
	}
	return rows, all
}

// said sums up a request's decisions.
func said(r locksteward.Request) string {
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

func holder(h locksteward.Holder) string {
	var parts []string
	if h.App != "" {
		parts = append(parts, h.App)
	}
	if h.Host != "" {
		parts = append(parts, "on "+h.Host)
	}
	if h.PID != 0 {
		parts = append(parts, "pid "+strconv.Itoa(h.PID))
	}
	if len(parts) == 0 {
		switch {
		case h.Instance != "":
			return "instance " + h.Instance
		case h.Session != "":
			return "session " + h.Session
		}
		return "not known"
	}
	return strings.Join(parts, " ")
}

// span is a duration for a person: two units at most.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// percent shows the share of a server's time.
func percent(share float64) string {
	if share >= 1 {
		return "no limit"
	}
	return strconv.FormatFloat(share*100, 'f', -1, 64) + " % of a server"
}

// waited says for how long the budget made looking wait, and mostly why; "" if
// it never did.
func waited(b *api.Budget) string {
	total, reason := b.Waited()
	if reason == "" {
		return ""
	}
	return "waited " + span(total) + ", mostly for " + reason
}

// maxShown bounds a key on the page; 64 MiB of name must not become a page.
const maxShown = 200

func showKey(key string) string {
	if len(key) > maxShown {
		return locksteward.DisplayKey(key[:maxShown]) + fmt.Sprintf("… (%d bytes)", len(key))
	}
	return locksteward.DisplayKey(key)
}

// inert takes from a text what could move or turn other text around it: control
// and direction characters. Its markup is the template's business.
func inert(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return '�'
		}
		return r
	}, text)
	if len(text) > 4*maxShown {
		text = strings.ToValidUTF8(text[:4*maxShown], "") + "…"
	}
	return text
}

// stylesheet answers GET /console.css, which holds nothing secret.
func stylesheet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(consoleCSS)
}
