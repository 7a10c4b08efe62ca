package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/internal/users"
)

// pageRequests is how many requests a page lists.
const pageRequests = 50

// requestsData is a list of requests with its filter.
type requestsData struct {
	States, Targets, Classes pick
	Requester                string
	Filtered                 bool
	Rows                     []requestRow
	Pager                    pager
}

// requests answers GET /requests: those that are open first, unless a filter says
// which.
func (s *Server) requests(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "state", "target", "class", "requester", "cursor")
	state := q.oneOf("state", "open", "pending", "approved", "executing", "released", "already_gone", "changed",
		"failed", "unknown", "denied", "expired", "superseded")
	filter := RequestFilter{Target: q.text("target"), Class: q.text("class"), Requester: strings.TrimSpace(q.text("requester")), Limit: pageRequests + 1}
	switch state {
	case "":
	case "open":
		filter.States = openStates
	default:
		filter.States = []locksteward.RequestState{locksteward.RequestState(state)}
	}
	var after requestCursor
	if q.cursor(&after) {
		filter.After = &RequestPosition{At: after.At, ID: after.ID}
	}
	if err := q.err(); err != nil {
		return err
	}
	list, err := s.deps.Requests.List(r.Context(), filter)
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	more := len(list) > pageRequests
	list = list[:min(len(list), pageRequests)]
	if state == "" && filter.After == nil && more {
		if list, err = s.openFirst(r, filter, list); err != nil {
			return err
		}
	}
	data := requestsData{Requester: inertTyped(filter.Requester), Filtered: state+filter.Target+filter.Class+filter.Requester != ""}
	v := s.view(r, who, pageSpec{})
	if filter.After != nil {
		data.Pager.Before, data.Pager.BeforeName = v.With("cursor", ""), "Newest"
	}
	if more {
		last := list[len(list)-1]
		data.Pager.After, data.Pager.AfterName = v.With("cursor", encodeCursor(requestCursor{At: last.CreatedAt, ID: last.ID})), "Older"
	}
	data.Pager.Shows = plural.Count(len(list), "request")
	data.Rows = requestRows(list)
	slices.SortStableFunc(data.Rows, func(a, b requestRow) int {
		switch {
		case a.Open == b.Open:
			return 0
		case a.Open:
			return -1
		default:
			return 1
		}
	})
	data.choices(s, state, filter)
	return s.show(w, r, who, pageSpec{name: "requests", section: "/requests", title: "Release requests", data: data})
}

// openFirst puts the open requests that are older than the page before it, in
// place of the last ones.
func (s *Server) openFirst(r *http.Request, filter RequestFilter, list []locksteward.Request) ([]locksteward.Request, error) {
	filter.States, filter.Limit = openStates, pageRequests/2
	open, err := s.deps.Requests.List(r.Context(), filter)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	open = slices.DeleteFunc(open, func(one locksteward.Request) bool {
		return slices.ContainsFunc(list, func(other locksteward.Request) bool { return other.ID == one.ID })
	})
	return append(open, list[:pageRequests-len(open)]...), nil
}

func (d *requestsData) choices(s *Server, state string, f RequestFilter) {
	d.States = pick{Label: "State", Name: "state", All: "any state"}
	d.States.add("open", "open", state)
	for _, one := range []locksteward.RequestState{
		locksteward.RequestPending, locksteward.RequestReleased, locksteward.RequestAlreadyGone, locksteward.RequestChanged, locksteward.RequestFailed,
		locksteward.RequestUnknown, locksteward.RequestDenied, locksteward.RequestExpired, locksteward.RequestSuperseded,
	} {
		d.States.add(string(one), stateWords(one), state)
	}
	d.States.keep(state)
	d.Targets = pick{Label: "Target", Name: "target", All: "all targets"}
	for _, t := range s.deps.Targets.Targets() {
		d.Targets.add(t.Name, t.Name, f.Target)
	}
	d.Targets.keep(f.Target)
	d.Classes = pick{Label: "Class", Name: "class", All: "all classes"}
	for _, c := range s.deps.Targets.Classes() {
		d.Classes.add(c.Class, c.Class, f.Class)
	}
	d.Classes.keep(f.Class)
}

// requestData is one request, what changed since, and what may be done about it.
type requestData struct {
	requestRow
	Approval ApprovalStatus
	Yes      []string // who approved, each once, as their last word says
	No       []string
	Compare  []compared
	NowKnown string // why it is not known how the lock is now; "" if it is
	Waiters  string
	// After says who has the lock now that the request is over; "" where it is not known.
	After    string
	Findings []findingRow

	Preview *api.Preview
	Failed  string // why there is no preview
	// Refused is why this person cannot approve; "" if they can.
	Refused string
	Bundle  string

	UndoUntil, LiftUntil time.Time // zero: not possible
	NoUndo               string
	Mark                 string
	Follows              []requestRow
}

// compared is a fact as the request froze it and as it is now.
type compared struct {
	Name, Then, Now string
	Differs         bool
}

// requestAgain is what is shown of a form that was not carried out.
type requestAgain struct {
	problem *api.Problem
	typed   url.Values
	once    bool // the answer to a form that was carried out
}

// request answers GET /requests/{id}.
func (s *Server) request(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	return s.requestPage(w, r, who, requestAgain{})
}

func (s *Server) requestPage(w http.ResponseWriter, r *http.Request, who users.User, again requestAgain) error {
	ctx := r.Context()
	req, err := s.deps.Requests.Get(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	data := requestData{requestRow: requestRows([]locksteward.Request{req})[0], Approval: s.deps.Requests.ApprovalStatus(req)}
	data.Bundle = data.requestRow.Bundle
	data.Yes, data.No = lastWords(req)
	if data.Open {
		preview, err := s.deps.Releases.Preview(ctx, req.ID)
		if err != nil {
			data.Failed = api.ProblemFor(err).Detail
		} else {
			// Warnings of the policy are shown above.
			preview.Warnings = slices.DeleteFunc(preview.Warnings, func(text string) bool { return slices.Contains(data.Approval.Warnings, text) })
			data.Preview = &preview
		}
		if err := s.deps.Advisor.WhyNotApprove(actorOf(who), req); err != nil {
			data.Refused = err.Error()
		}
	}
	s.compareEvidence(&data, r)
	if data.State.Final() && data.Evidence.Act == locksteward.ActRelease {
		data.After = s.holderAfter(r, data.Evidence)
	}
	if err := s.loadFollowUps(r, &data); err != nil {
		return err
	}
	page := pageSpec{name: "request", section: "/requests", title: "Release of " + showKey(req.Evidence.Key), data: data, problem: again.problem, typed: again.typed, once: again.problem != nil}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	return s.show(w, r, who, page)
}

// lastWords are those who said yes and no last, each person once.
func lastWords(r locksteward.Request) (yes, no []string) {
	last := map[string]locksteward.Decision{}
	var order []string
	for _, d := range r.Decisions {
		name := strings.ToLower(d.By)
		if _, ok := last[name]; !ok {
			order = append(order, name)
		}
		last[name] = d
	}
	for _, name := range order {
		if d := last[name]; d.Approve {
			yes = append(yes, d.By)
		} else {
			no = append(no, d.By)
		}
	}
	return yes, no
}

// compareEvidence compares what the request froze with the lock as it is. What is over
// is compared with nothing.
func (s *Server) compareEvidence(data *requestData, r *http.Request) {
	e := data.Evidence
	then := []compared{
		{Name: "Type", Then: e.Type},
		{Name: "Token", Then: digest(e.TokenDigest)},
		{Name: "Expires", Then: expiry(e.ExpireAt)},
		{Name: "Entered", Then: times(e.Count)},
		{Name: "Holder", Then: holder(e.Holder)},
		{Name: "Acquisition", Then: e.ClaimID},
		{Name: "Fencing token", Then: strconv.FormatInt(e.Fence, 10)},
	}
	now := make([]string, len(then))
	known := false
	if data.Open {
		l, err := s.deps.Locks.Lock(r.Context(), e.Target, e.DB, e.Key)
		switch {
		case notFound(err):
			data.NowKnown = "it is gone"
		case err != nil:
			data.NowKnown = "it could not be read: " + api.ProblemFor(err).Detail
		default:
			known = true
			claim := ""
			if l.Claim != nil {
				claim = l.Claim.ID
			}
			now = []string{l.Type, digest(l.TokenDigest), expiry(l.ExpireAt), times(l.Count), holder(l.Holder), claim, strconv.FormatInt(l.Fence, 10)}
			// A digest is shown by its beginning and compared in full.
			if l.TokenDigest != e.TokenDigest && now[1] == then[1].Then {
				now[1] += " (another)"
			}
			if data.Waiters = "not known"; l.Waiters >= 0 {
				data.Waiters = strconv.Itoa(l.Waiters)
			}
		}
	}
	for i, c := range then {
		if c.Then == "" && now[i] == "" || c.Then == "0" && (now[i] == "0" || now[i] == "") {
			continue
		}
		c.Now = now[i]
		c.Differs = known && c.Now != c.Then
		if c.Name == "Expires" && e.HolderAlive { // its holder renews it
			c.Differs, c.Now = false, c.Now+" (not compared)"
		}
		data.Compare = append(data.Compare, c)
	}
	for _, f := range s.deps.Findings.Findings() {
		if f.Target == e.Target && f.DB == e.DB && f.Key == e.Key && f.Status == locksteward.StatusFiring {
			data.Findings = append(data.Findings, findingRow{Finding: f})
		}
	}
}

// holderAfter says who has the lock after a request for its release; "" if it could not be read.
func (s *Server) holderAfter(r *http.Request, e locksteward.Evidence) string {
	l, err := s.deps.Locks.Lock(r.Context(), e.Target, e.DB, e.Key)
	switch {
	case notFound(err):
		return "nobody holds it"
	case err != nil:
		return ""
	case l.TokenDigest == e.TokenDigest && l.Fence == e.Fence:
		return "the same hold is there"
	}
	who := "another holder has it"
	if l.Holder != (locksteward.Holder{}) {
		who = holder(l.Holder) + " holds it"
	}
	if age := ageWords(l, l.At); age != notKnown {
		who += ", for " + age
	}
	return who
}

// loadFollowUps fills in what came of the request and what can be undone or ended.
func (s *Server) loadFollowUps(r *http.Request, data *requestData) error {
	e := data.Evidence
	list, err := s.deps.Requests.List(r.Context(), RequestFilter{Target: e.Target, Key: &e.Key, Limit: lockRequests})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	newest, undone, lifted := "", false, false
	for i, one := range list {
		if i == 0 {
			newest = one.ID
		}
		if one.Evidence.Of == data.ID {
			data.Follows = append(data.Follows, requestRows([]locksteward.Request{one})...)
			done := one.State == locksteward.RequestReleased
			undone = undone || done && one.Evidence.Act == locksteward.ActUndo
			lifted = lifted || done && one.Evidence.Act == locksteward.ActLift
		}
	}
	data.Mark = mark(data.ID, newest)
	if data.State != locksteward.RequestReleased || e.Act == locksteward.ActUndo || e.Act == locksteward.ActLift {
		return nil
	}
	now := time.Now()
	if undone {
		data.NoUndo = "it was already undone"
	} else if until := data.FinishedAt.Add(e.Undo); e.Undo > 0 && now.Before(until) {
		data.UndoUntil = until
	} else if e.Undo > 0 {
		data.NoUndo = "the undo window is over"
	} else {
		data.NoUndo = "the deleted lock was not saved"
	}
	if until := data.FinishedAt.Add(e.Placeholder); e.Placeholder > 0 && !undone && !lifted && now.Before(until) {
		data.LiftUntil = until
	}
	return nil
}

// times says how often a re-entrant lock is entered; other locks are entered once.
func times(count int64) string {
	if count <= 1 {
		return "once"
	}
	return strconv.FormatInt(count, 10) + " times"
}
