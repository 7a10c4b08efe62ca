package console

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// createBundle answers POST /api/v1/bundles.
func (s *Server) createBundle(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.CreateBundle
	if err := body(r, &in); err != nil {
		return err
	}
	if err := errors.Join(named("target", in.Target, "write the name of a target"),
		named("host", in.Host, "write the host that is dead, as its locks' holders name it")); err != nil {
		return err
	}
	ask := BundleInput{Target: in.Target, Host: in.Host, Reason: in.Reason}
	if in.Keys != nil {
		ask.Keys = []string{}
	}
	for _, k := range in.Keys {
		key, err := k.Bytes()
		if err != nil {
			return err
		}
		ask.Keys = append(ask.Keys, key)
	}
	ctx, cancel := changing(r)
	defer cancel()
	b, err := s.deps.Releases.RequestBundle(ctx, actorOf(who), ask)
	if err != nil {
		return err
	}
	s.log.Info("console change", zap.String("action", "bundle requested"), zap.String("user", who.Name),
		zap.String("bundle_id", b.ID), zap.Int("requests", len(b.Requests)), zap.Int("left_out", len(b.LeftOut)))
	w.Header().Set("Location", "/api/v1/bundles/"+b.ID)
	out := s.bundleView(b)
	asked := map[string]bool{} // one lock of each class: rights go by patterns
	for i, req := range b.Requests {
		if !asked[req.Evidence.Class] {
			s.warnNow(ctx, req, &out.Requests[i])
		}
		asked[req.Evidence.Class] = true
	}
	return writeJSON(w, http.StatusCreated, out)
}

// oneBundle answers GET /api/v1/bundles/{id}.
func (s *Server) oneBundle(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	b, err := s.deps.Requests.Bundle(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.bundleView(b))
}

// approveBundle answers POST /api/v1/bundles/{id}/approve.
func (s *Server) approveBundle(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.decideBundle(w, r, who, "bundle approved", s.deps.Releases.ApproveBundle)
}

// denyBundle answers POST /api/v1/bundles/{id}/deny.
func (s *Server) denyBundle(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.decideBundle(w, r, who, "bundle denied", s.deps.Releases.DenyBundle)
}

func (s *Server) decideBundle(w http.ResponseWriter, r *http.Request, who users.User, what string,
	act func(ctx context.Context, actor Actor, id string, word Decision) (Bundle, error),
) error {
	word, err := decisionOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	b, err := act(ctx, actorOf(who), r.PathValue("id"), word)
	if len(b.Requests) == 0 {
		return err
	}
	// Some were decided on, and perhaps executed: the answer is what became of each,
	// with what kept the others from it.
	out := s.bundleView(b)
	if err != nil {
		out.Problems = append(out.Problems, api.ProblemFor(err).Detail)
		s.log.Warn("a bundle was decided on in part", zap.String("bundle_id", b.ID), zap.Error(err))
	}
	s.log.Info("console change", zap.String("action", what), zap.String("user", who.Name),
		zap.String("bundle_id", b.ID), zap.Int("requests", len(b.Requests)))
	return writeJSON(w, http.StatusOK, out)
}

func (s *Server) bundleView(b Bundle) api.Bundle {
	out := api.NewBundle(b.ID, b.Hash, s.requestViews(b.Requests))
	out.LeftOut = append(out.LeftOut, b.LeftOut...)
	return out
}
