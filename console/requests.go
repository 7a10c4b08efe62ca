package console

import (
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

var openStates = []locksteward.RequestState{
	locksteward.RequestPending, locksteward.RequestApproved, locksteward.RequestExecuting,
}

// listRequests answers GET /api/v1/requests.
func (s *Server) listRequests(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "state", "target", "limit")
	state := q.oneOf("state", "open", "pending", "approved", "executing", "released", "already_gone", "changed",
		"failed", "unknown", "denied", "expired", "superseded")
	filter := RequestFilter{Target: q.text("target"), Limit: q.limit()}
	if err := q.err(); err != nil {
		return err
	}
	switch state {
	case "":
	case "open":
		filter.States = openStates
	default:
		filter.States = []locksteward.RequestState{locksteward.RequestState(state)}
	}
	requests, err := s.deps.Requests.List(r.Context(), filter)
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	out := api.RequestList{Requests: []api.Request{}}
	for _, req := range requests {
		out.Requests = append(out.Requests, api.NewRequest(req))
	}
	return writeJSON(w, http.StatusOK, out)
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
	return writeJSON(w, http.StatusOK, api.NewRequest(req))
}

// createRequest answers POST /api/v1/requests.
func (s *Server) createRequest(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.CreateRequest
	if err := body(r, &in); err != nil {
		return err
	}
	key, err := in.Key.Bytes()
	if err != nil {
		return err
	}
	if in.Target == "" {
		return fmt.Errorf("%w: target is missing: write the name of a target", locksteward.ErrInvalid)
	}
	db, err := s.database(in.Target, in.DB)
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	req, err := s.deps.Releases.Request(ctx, actorOf(who), ReleaseInput{Target: in.Target, DB: db, Key: key, Reason: in.Reason})
	if err != nil {
		return err
	}
	s.changed("release requested", who, req)
	w.Header().Set("Location", "/api/v1/requests/"+req.ID)
	return writeJSON(w, http.StatusCreated, api.NewRequest(req))
}

// approve answers POST /api/v1/requests/{id}/approve.
func (s *Server) approve(w http.ResponseWriter, r *http.Request, who users.User) error {
	word, err := wordOf(r)
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
	return writeJSON(w, http.StatusOK, api.NewRequest(req))
}

// deny answers POST /api/v1/requests/{id}/deny.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, who users.User) error {
	word, err := wordOf(r)
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
	return writeJSON(w, http.StatusOK, api.NewRequest(req))
}

func wordOf(r *http.Request) (Word, error) {
	var in api.Decide
	if err := body(r, &in); err != nil {
		return Word{}, err
	}
	return Word{Reason: in.Reason, EvidenceHash: in.EvidenceHash, ConfirmNoIdentity: in.ConfirmNoIdentity}, nil
}

func actorOf(u users.User) Actor {
	a := Actor{Name: u.Name}
	for _, r := range u.Roles {
		a.Roles = append(a.Roles, string(r))
	}
	return a
}

func (s *Server) changed(what string, who users.User, req locksteward.Request) {
	s.log.Info("console change", zap.String("action", what), zap.String("user", who.Name),
		zap.String("request_id", req.ID), zap.String("state", string(req.State)))
}
