package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// Bounds of what a lock's page shows of the past.
const (
	lockEvents   = 100
	lockRequests = 20
	lockWaiters  = 50
	lockFindings = 20
)

// lockData is one lock, or what is left of it.
type lockData struct {
	Target string
	DB     int
	Key    string

	Lock   *locksteward.Lock // nil: it is not there
	Row    lockRow
	Gauges []gauge
	Class  *api.Class

	Findings []findingRow
	Verdicts []api.Verdict
	Waiters  []waiterRow
	Timeline timeline
	Events   []api.LockEvent
	Requests []requestRow
	Open     *requestRow

	Mark     string
	Possible Possible
	KeyName  string // field of the form that names the key
	KeyValue string
	Preview  *api.Preview
}

// waiterRow is who waits for the lock.
type waiterRow struct {
	Who     who
	Purpose string
	Since   time.Time
	Calls   int
	Cycle   bool
}

// lockAgain is what is shown of a form on a lock's page that was not carried out.
type lockAgain struct {
	problem *api.Problem
	typed   url.Values
	preview *api.Preview
}

// lock answers GET /locks/one.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, who users.User) error {
	asked, err := s.lockOf(r.Context(), pageQuery(r, "target", "db", "key", "key_b64", "key_sha256"))
	if err != nil {
		return err
	}
	return s.lockPage(w, r, who, asked, lockAgain{})
}

func (s *Server) lockPage(w http.ResponseWriter, r *http.Request, who users.User, asked askedLock, again lockAgain) error {
	ctx := r.Context()
	data := lockData{Target: asked.target, DB: asked.db, Key: asked.key, Preview: again.preview}
	data.KeyName, data.KeyValue = keyParameter(asked.key)
	page := pageSpec{name: "lock", section: "/locks", title: showKey(asked.key), problem: again.problem, typed: again.typed, once: again.problem != nil || again.preview != nil}
	l, err := s.deps.Locks.Lock(ctx, asked.target, asked.db, asked.key)
	switch {
	case err == nil:
		data.Lock = &l
		s.loadCurrent(&data, r)
	case !notFound(err):
		return err
	case again.problem == nil:
		page.status = http.StatusNotFound
	}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	if err := s.loadHistory(ctx, &data); err != nil {
		return err
	}
	page.data = data
	return s.show(w, r, who, page)
}

// loadCurrent fills in what is known of a lock that is there.
func (s *Server) loadCurrent(data *lockData, r *http.Request) {
	l := *data.Lock
	for _, c := range s.deps.Targets.Classes() {
		if c.Class == l.Class {
			data.Class = &c
		}
	}
	var on []locksteward.Finding
	row := LockRow{Lock: l}
	all := s.deps.Findings.Findings()
	sortFindings(all)
	for _, f := range all {
		if f.Target == l.Target && f.DB == l.DB && f.Key == l.Key && f.Status != locksteward.StatusResolved {
			on = append(on, f)
			row.Rules = append(row.Rules, f.Rule)
			if row.State != locksteward.StatusFiring {
				row.State = f.Status
			}
		}
	}
	data.Findings = s.markSilenced(findingRows(on[:min(len(on), lockFindings)]))
	data.Row = lockRows([]LockRow{row}, true)[0]
	data.Gauges = gauges(l, data.Class)
	data.Verdicts = s.deps.Locks.Explain(l, langOf(r))
	data.Possible = s.deps.Advisor.Possible(l)
	data.Waiters = s.waitersOf(l)
}

// loadHistory fills in what happened to the lock before, and which releases of it were
// asked for.
func (s *Server) loadHistory(ctx context.Context, data *lockData) error {
	var err error
	if data.Events, err = s.deps.History.LockEvents(ctx, data.Target, data.DB, data.Key, lockEvents); err != nil {
		return fmt.Errorf("read the lock's past: %w", err)
	}
	data.Timeline = newTimeline(data.Events, data.Lock, time.Now())
	list, err := s.deps.Requests.List(ctx, RequestFilter{Target: data.Target, Key: &data.Key, Limit: lockRequests})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	data.Requests = requestRows(list)
	newest := ""
	for i := range data.Requests {
		if i == 0 {
			newest = data.Requests[i].ID
		}
		if data.Requests[i].Open {
			data.Open = &data.Requests[i]
		}
	}
	data.Mark = lockMark(data.Lock, newest)
	return nil
}

// lockMark names a hold and the newest request about its lock.
func lockMark(l *locksteward.Lock, newest string) string {
	if l == nil {
		return mark("", "", newest)
	}
	claim := ""
	if l.Claim != nil {
		claim = l.Claim.ID
	}
	return mark(l.TokenDigest, claim, newest)
}

// waitersOf are the sessions that are known to wait for a lock. Where the lock itself counts none the graph is not made: that takes some
// milliseconds with 100,000 locks.
func (s *Server) waitersOf(l locksteward.Lock) []waiterRow {
	if l.Waiters <= 0 {
		return nil
	}
	g, err := s.deps.Graphs.Graph(l.Target)
	if err != nil {
		return nil // the lock is shown without them
	}
	id := ""
	sessions := map[string]*api.GraphSession{}
	for _, n := range g.Nodes {
		if n.Lock != nil && n.Lock.Target == l.Target && n.Lock.DB == l.DB {
			if key, err := n.Lock.Bytes(); err == nil && key == l.Key {
				id = n.ID
			}
		}
		if n.Session != nil {
			sessions[n.ID] = n.Session
		}
	}
	var out []waiterRow
	for _, e := range g.Edges {
		if e.Kind == api.EdgeWaitsFor && e.To == id && id != "" && len(out) < lockWaiters {
			row := waiterRow{Who: whoOf(locksteward.Holder{}), Since: e.Since, Calls: e.Calls, Cycle: e.Cycle}
			if n := sessions[e.From]; n != nil {
				row.Who, row.Purpose = whoOf(locksteward.Holder{App: n.Holder.App, Host: n.Holder.Host, PID: n.Holder.PID, Session: n.Session, Instance: n.Holder.Instance}), n.Purpose
			}
			out = append(out, row)
		}
	}
	return out
}

// sessionName is who a session is, as far as it is known.
func sessionName(n *api.GraphSession) string {
	if n == nil {
		return "not known"
	}
	who := holder(locksteward.Holder{App: n.Holder.App, Host: n.Holder.Host, PID: n.Holder.PID, Session: n.Session, Instance: n.Holder.Instance})
	if n.Purpose != "" {
		who += ", " + n.Purpose
	}
	return who
}

// ask answers POST /requests: a request for the release of one lock, its dry
// run, or a release past everybody.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "target", "db", "key", "key_b64", "key_sha256", "reason", "act", "take_over", "holder_alive", "lock_delay", "mark", "do",
		"confirm_no_identity", "confirm_holder_alive", "confirm_break_glass")
	if err != nil {
		return err
	}
	asked, err := s.lockOf(r.Context(), q)
	if err != nil {
		return err
	}
	again := lockAgain{typed: q.values}
	req, err := s.requestRelease(r, who, asked, q, &again)
	switch p, known := (*api.Problem)(nil), false; {
	case err == nil && again.preview != nil:
		return s.lockPage(w, r, who, asked, again)
	case err == nil:
		redirect(w, r, s.view(r, who, pageSpec{}), "/requests/"+req.ID)
		return nil
	default:
		if p, known = formProblem(err); !known {
			return err
		}
		again.problem = p
		return s.lockPage(w, r, who, asked, again)
	}
}

func (s *Server) requestRelease(r *http.Request, who users.User, asked askedLock, q *query, again *lockAgain) (locksteward.Request, error) {
	do := q.oneOf("do", "request", "preview", "break-glass")
	in := ReleaseInput{
		Target: asked.target, DB: asked.db, Key: asked.key, Reason: strings.TrimSpace(q.text("reason")), HolderAlive: q.ticked("holder_alive"),
		LockDelay: q.span("lock_delay", "lock-delay"),
	}
	if q.oneOf("act", "release", "take-over") == "take-over" {
		if d := q.span("take_over", "take-over"); d != nil && *d > 0 {
			in.TakeOver = *d
		} else {
			q.bad("take-over: say for how long, such as 10m")
		}
		in.LockDelay = nil
	}
	word := Decision{ConfirmNoIdentity: q.ticked("confirm_no_identity"), ConfirmHolderAlive: q.ticked("confirm_holder_alive")}
	if do == "break-glass" && !q.ticked("confirm_break_glass") {
		q.bad("break-glass: tick that all receivers are notified")
	}
	if err := q.err(); err != nil {
		return locksteward.Request{}, err
	}
	ctx, cancel := changing(r)
	defer cancel()
	if do == "preview" {
		if in.Reason == "" {
			in.Reason = "dry run"
		}
		preview, err := s.deps.Releases.DryRun(ctx, actorOf(who), in)
		again.preview = &preview
		return locksteward.Request{}, err
	}
	if err := s.fresh(ctx, asked, q.text("mark")); err != nil {
		return locksteward.Request{}, err
	}
	if do == "break-glass" {
		req, err := s.deps.Releases.BreakGlass(ctx, actorOf(who), in, word)
		if err == nil {
			s.changed("glass broken", who, req)
		}
		return req, err
	}
	req, err := s.deps.Releases.Request(ctx, actorOf(who), in)
	if err == nil {
		s.changed("release requested", who, req)
	}
	return req, err
}

// fresh refuses a form about a hold that is over, or that was sent before.
func (s *Server) fresh(ctx context.Context, asked askedLock, seen string) error {
	l, err := s.deps.Locks.Lock(ctx, asked.target, asked.db, asked.key)
	if err != nil {
		return err
	}
	list, err := s.deps.Requests.List(ctx, RequestFilter{Target: asked.target, Key: &asked.key, Limit: 1})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	newest := ""
	if len(list) > 0 {
		newest = list[0].ID
	}
	if seen != lockMark(&l, newest) {
		return stale("the lock or the requests about it changed")
	}
	return nil
}

// langOf is the language that findings are shown in.
func langOf(r *http.Request) string {
	if r.URL.Query().Get("lang") == "zh" {
		return "zh"
	}
	return "en"
}
