package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// approveForm answers POST /requests/{id}/approve.
func (s *Server) approveForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.decideForm(w, r, who, "release approved", s.deps.Releases.Approve)
}

// denyForm answers POST /requests/{id}/deny.
func (s *Server) denyForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.decideForm(w, r, who, "release denied", s.deps.Releases.Deny)
}

func (s *Server) decideForm(w http.ResponseWriter, r *http.Request, who users.User, what string,
	decide func(ctx context.Context, actor Actor, id string, word Decision) (locksteward.Request, error),
) error {
	q, word, err := readDecision(r)
	if err != nil {
		return err
	}
	err = q.err()
	if err == nil {
		ctx, cancel := changing(r)
		defer cancel()
		var req locksteward.Request
		if req, err = decide(ctx, actorOf(who), r.PathValue("id"), word); err == nil {
			s.changed(what, who, req)
		}
	}
	return s.afterForm(w, r, who, q, err, "/requests/"+r.PathValue("id"))
}

// readDecision reads the form of a decision.
func readDecision(r *http.Request) (*query, Decision, error) {
	q, err := form(r, "reason", "evidence_hash", "confirm_no_identity", "confirm_holder_alive")
	if err != nil {
		return nil, Decision{}, err
	}
	return q, Decision{
		Reason: strings.TrimSpace(q.text("reason")), EvidenceHash: q.text("evidence_hash"),
		ConfirmNoIdentity: q.ticked("confirm_no_identity"), ConfirmHolderAlive: q.ticked("confirm_holder_alive"),
	}, nil
}

// undoForm answers POST /requests/{id}/undo.
func (s *Server) undoForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.followForm(w, r, who, "release undone", s.deps.Releases.Undo)
}

// liftForm answers POST /requests/{id}/lift.
func (s *Server) liftForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.followForm(w, r, who, "what stood in the lock's place lifted", s.deps.Releases.Lift)
}

func (s *Server) followForm(w http.ResponseWriter, r *http.Request, who users.User, what string,
	act func(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error),
) error {
	q, err := form(r, "reason", "mark")
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	id := r.PathValue("id")
	next := "/requests/" + id
	err = q.err()
	if err == nil {
		err = s.freshFollow(ctx, id, q.text("mark"))
	}
	if err == nil {
		var req locksteward.Request
		if req, err = act(ctx, actorOf(who), id, strings.TrimSpace(q.text("reason"))); err == nil {
			s.changed(what, who, req)
			next = "/requests/" + req.ID
		}
	}
	return s.afterForm(w, r, who, q, err, next)
}

// freshFollow refuses a form that is older than the newest request about the
// lock: it was sent before, or others went on.
func (s *Server) freshFollow(ctx context.Context, id, seen string) error {
	of, err := s.deps.Requests.Get(ctx, id)
	if err != nil {
		return err
	}
	list, err := s.deps.Requests.List(ctx, RequestFilter{Target: of.Evidence.Target, Key: &of.Evidence.Key, Limit: 1})
	if err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	if len(list) == 0 || seen != mark(id, list[0].ID) {
		return stale("others requested something about this lock")
	}
	return nil
}

// afterForm goes on after a form on a request's page, or shows that page again
// with what kept it from being carried out.
func (s *Server) afterForm(w http.ResponseWriter, r *http.Request, who users.User, q *query, err error, next string) error {
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), next)
		return nil
	}
	p, known := formProblem(err)
	if !known || p.Code == api.CodeNotFound {
		return err
	}
	return s.requestPage(w, r, who, requestAgain{problem: p, typed: q.values})
}
