package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

var openStates = []locksteward.RequestState{
	locksteward.RequestPending, locksteward.RequestApproved, locksteward.RequestExecuting,
}

// requestParams are the parameters of [query.requestFilter].
var requestParams = []string{"state", "target", "class", "requester", "key", "key_b64", "since", "limit", "cursor"}

// requestFilter reads which requests are asked for; preset is how many where
// nobody says.
func (q *query) requestFilter(preset int) RequestFilter {
	f := RequestFilter{
		Target: q.text("target"), Class: q.text("class"), Requester: q.text("requester"),
		Since: q.moment("since"), Limit: q.number("limit", preset, 1, maxLimit),
	}
	switch state := q.oneOf("state", "open", "pending", "approved", "executing", "released", "already_gone", "changed",
		"failed", "unknown", "denied", "expired", "superseded"); state {
	case "":
	case "open":
		f.States = openStates
	default:
		f.States = []locksteward.RequestState{locksteward.RequestState(state)}
	}
	if q.values.Has("key") || q.values.Has("key_b64") {
		key, err := api.Key{Key: q.text("key"), KeyB64: q.text("key_b64")}.Bytes()
		if err != nil {
			q.bad("%w", err)
		}
		f.Key = &key
	}
	var after requestCursor
	if q.cursor(&after) {
		f.After = &RequestPosition{At: after.At, ID: after.ID}
	}
	return f
}

// pageOfRequests returns what the filter selects, and the cursor of the next page.
func (s *Server) pageOfRequests(ctx context.Context, f RequestFilter) ([]locksteward.Request, string, error) {
	limit := f.Limit
	f.Limit++
	requests, err := s.deps.Requests.List(ctx, f)
	if err != nil {
		return nil, "", fmt.Errorf("list requests: %w", err)
	}
	if len(requests) <= limit {
		return requests, "", nil
	}
	last := requests[limit-1]
	return requests[:limit], encodeCursor(requestCursor{At: last.CreatedAt, ID: last.ID}), nil
}

// listRequests answers GET /api/v1/requests.
func (s *Server) listRequests(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, requestParams...)
	filter := q.requestFilter(defaultLimit)
	if err := q.err(); err != nil {
		return err
	}
	requests, next, err := s.pageOfRequests(r.Context(), filter)
	if err != nil {
		return err
	}
	linkNext(w, r, next)
	return writeJSON(w, http.StatusOK, api.RequestList{Requests: s.requestViews(requests), Next: next})
}

// requestView is a request with what still is to be decided on it.
func (s *Server) requestView(r locksteward.Request) api.Request {
	out := api.NewRequest(r)
	standing := s.deps.Requests.ApprovalStatus(r)
	if standing.ApprovalsNeeded > 0 {
		out.ApprovalsNeeded, out.DenialsNeeded = &standing.ApprovalsNeeded, &standing.DenialsNeeded
	}
	out.Warnings = append(out.Warnings, standing.Warnings...)
	return out
}

func (s *Server) requestViews(list []locksteward.Request) []api.Request {
	out := make([]api.Request, 0, len(list))
	for _, r := range list {
		out = append(out, s.requestView(r))
	}
	return out
}

// oneRequest answers GET /api/v1/requests/{id}.
func (s *Server) oneRequest(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	req, err := s.deps.Requests.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.requestView(req))
}

// createRequest answers POST /api/v1/requests.
func (s *Server) createRequest(w http.ResponseWriter, r *http.Request, who users.User) error {
	in, err := s.releaseInput(r)
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	req, err := s.deps.Releases.Request(ctx, actorOf(who), in)
	if err != nil {
		return err
	}
	s.changed("release requested", who, req)
	w.Header().Set("Location", "/api/v1/requests/"+req.ID)
	out := s.requestView(req)
	s.warnNow(ctx, req, &out)
	return writeJSON(w, http.StatusCreated, out)
}

// warnNow adds to a new request what a preview of it says: that it could not be executed as the store and its rights are
// now, or what a release would do besides. What cannot be found out is no warning.
func (s *Server) warnNow(ctx context.Context, r locksteward.Request, out *api.Request) {
	preview, err := s.deps.Releases.Preview(ctx, r.ID)
	if err != nil {
		return
	}
	if preview.Refusal != "" {
		out.Warnings = append(out.Warnings, "the release would fail: "+preview.Refusal)
	}
	for _, text := range preview.Warnings {
		if !slices.Contains(out.Warnings, text) {
			out.Warnings = append(out.Warnings, text)
		}
	}
}

// dryRun answers POST /api/v1/requests/preview.
func (s *Server) dryRun(w http.ResponseWriter, r *http.Request, who users.User) error {
	in, err := s.releaseInput(r)
	if err != nil {
		return err
	}
	out, err := s.deps.Releases.DryRun(r.Context(), actorOf(who), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}

// breakGlass answers POST /api/v1/requests/break-glass.
func (s *Server) breakGlass(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.BreakGlass
	if err := body(r, &in); err != nil {
		return err
	}
	ask, err := s.releaseOf(in.CreateRequest)
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	req, err := s.deps.Releases.BreakGlass(ctx, actorOf(who), ask, Decision{ConfirmNoIdentity: in.ConfirmNoIdentity, ConfirmHolderAlive: in.ConfirmHolderAlive})
	if err != nil {
		return err
	}
	s.changed("glass broken", who, req)
	w.Header().Set("Location", "/api/v1/requests/"+req.ID)
	return writeJSON(w, http.StatusCreated, s.requestView(req))
}

// preview answers GET /api/v1/requests/{id}/preview.
func (s *Server) preview(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	out, err := s.deps.Releases.Preview(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}

// releaseInput is what the body asks to be released.
func (s *Server) releaseInput(r *http.Request) (ReleaseInput, error) {
	var in api.CreateRequest
	if err := body(r, &in); err != nil {
		return ReleaseInput{}, err
	}
	return s.releaseOf(in)
}

// releaseOf is what a person asks to be released.
func (s *Server) releaseOf(in api.CreateRequest) (ReleaseInput, error) {
	key, err := in.Key.Bytes()
	if err != nil {
		return ReleaseInput{}, err
	}
	if err := named("target", in.Target, "write the name of a target"); err != nil {
		return ReleaseInput{}, err
	}
	db, err := s.database(in.Target, in.DB)
	if err != nil {
		return ReleaseInput{}, err
	}
	out := ReleaseInput{Target: in.Target, DB: db, Key: key, Reason: in.Reason, HolderAlive: in.HolderAlive}
	if out.TakeOver, err = durationOf("take_over_ms", in.TakeOverMs); err != nil {
		return ReleaseInput{}, err
	}
	if in.LockDelayMs != nil {
		delay, err := durationOf("lock_delay_ms", *in.LockDelayMs)
		if err != nil {
			return ReleaseInput{}, err
		}
		out.LockDelay = &delay
	}
	return out, nil
}

// named refuses what cannot be the name of a target or host.
func named(field, text, what string) error {
	const most = 255
	switch {
	case text == "":
		return fmt.Errorf("%w: %s is missing: %s", locksteward.ErrInvalid, field, what)
	case len(text) > most:
		return fmt.Errorf("%w: %s: is %d bytes long, and no name has more than %d", locksteward.ErrInvalid, field, len(text), most)
	}
	return nil
}

// durationOf reads a duration that is not negative and not absurd.
func durationOf(field string, ms int64) (time.Duration, error) {
	const most = 365 * 24 * time.Hour
	if ms < 0 || ms > most.Milliseconds() {
		return 0, fmt.Errorf("%w: %s: must be between 0 and %d, got %d", locksteward.ErrInvalid, field, most.Milliseconds(), ms)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// undo answers POST /api/v1/requests/{id}/undo.
func (s *Server) undo(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.follow(w, r, who, "release undone", s.deps.Releases.Undo)
}

// lift answers POST /api/v1/requests/{id}/lift.
func (s *Server) lift(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.follow(w, r, who, "what stood in the lock's place lifted", s.deps.Releases.Lift)
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request, who users.User, what string,
	act func(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error),
) error {
	var in api.Follow
	if err := body(r, &in); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	req, err := act(ctx, actorOf(who), r.PathValue("id"), in.Reason)
	if err != nil {
		return err
	}
	s.changed(what, who, req)
	w.Header().Set("Location", "/api/v1/requests/"+req.ID)
	return writeJSON(w, http.StatusCreated, s.requestView(req))
}

// approve answers POST /api/v1/requests/{id}/approve.
func (s *Server) approve(w http.ResponseWriter, r *http.Request, who users.User) error {
	word, err := decisionOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	req, err := s.deps.Releases.Approve(ctx, actorOf(who), r.PathValue("id"), word)
	if err != nil {
		return err
	}
	s.changed("release approved", who, req)
	return writeJSON(w, http.StatusOK, s.requestView(req))
}

// deny answers POST /api/v1/requests/{id}/deny.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, who users.User) error {
	word, err := decisionOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	req, err := s.deps.Releases.Deny(ctx, actorOf(who), r.PathValue("id"), word)
	if err != nil {
		return err
	}
	s.changed("release denied", who, req)
	return writeJSON(w, http.StatusOK, s.requestView(req))
}

func decisionOf(r *http.Request) (Decision, error) {
	var in api.Decide
	if err := body(r, &in); err != nil {
		return Decision{}, err
	}
	return Decision{Reason: in.Reason, EvidenceHash: in.EvidenceHash, ConfirmNoIdentity: in.ConfirmNoIdentity, ConfirmHolderAlive: in.ConfirmHolderAlive}, nil
}

func actorOf(u users.User) Actor {
	a := Actor{Name: u.Name, Teams: u.Teams}
	for _, r := range u.Roles {
		a.Roles = append(a.Roles, string(r))
	}
	return a
}

func (s *Server) changed(what string, who users.User, req locksteward.Request) {
	s.log.Info("console change", zap.String("action", what), zap.String("user", who.Name),
		zap.String("request_id", req.ID), zap.String("state", string(req.State)))
}
