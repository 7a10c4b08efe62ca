package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

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
	return writeJSON(w, http.StatusCreated, api.NewRequest(req))
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
	key, err := in.Key.Bytes()
	if err != nil {
		return ReleaseInput{}, err
	}
	if in.Target == "" {
		return ReleaseInput{}, fmt.Errorf("%w: target is missing: write the name of a target", locksteward.ErrInvalid)
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
	return Word{Reason: in.Reason, EvidenceHash: in.EvidenceHash, ConfirmNoIdentity: in.ConfirmNoIdentity, ConfirmHolderAlive: in.ConfirmHolderAlive}, nil
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
