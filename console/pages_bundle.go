package console

import (
	"net/http"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// bundleData is requests that are decided on together.
type bundleData struct {
	ID, Hash, Target, Host string
	Rows                   []requestRow
	Open                   int
	First                  requestRow // for what all have in common
	Approval               ApprovalStatus
	WeakIdentity, Alive    bool // one of them needs this to be confirmed
	Refused                string
	LeftOut                []api.LeftOut
}

// bundle answers GET /bundles/{id}.
func (s *Server) bundle(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := pageQuery(r).err(); err != nil {
		return err
	}
	b, err := s.deps.Requests.Bundle(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.bundlePage(w, r, who, b, requestAgain{})
}

func (s *Server) bundlePage(w http.ResponseWriter, r *http.Request, who users.User, b Bundle, again requestAgain) error {
	data := bundleData{ID: b.ID, Hash: b.Hash, Rows: requestRows(b.Requests), LeftOut: b.LeftOut}
	for _, row := range data.Rows {
		if row.Open && row.State != locksteward.RequestExecuting {
			data.Open++
		}
		data.WeakIdentity = data.WeakIdentity || row.Evidence.WeakIdentity()
		data.Alive = data.Alive || row.Evidence.HolderAlive
		data.Target, data.Host = row.Evidence.Target, row.Evidence.Holder.Host
	}
	if len(data.Rows) > 0 {
		data.First = data.Rows[0]
		data.Approval = s.deps.Requests.ApprovalStatus(data.First.Request)
	}
	for _, row := range data.Rows {
		if row.Open && data.Refused == "" {
			if err := s.deps.Advisor.WhyNotApprove(actorOf(who), row.Request); err != nil {
				data.Refused = err.Error()
			}
		}
	}
	page := pageSpec{
		name: "bundle", section: "/requests", title: "Locks of " + inert(data.Host), data: data,
		problem: again.problem, typed: again.typed, once: again.problem != nil || again.once,
	}
	if again.problem != nil {
		page.status = again.problem.Status
	}
	return s.show(w, r, who, page)
}

// askBundle answers POST /bundles: the release of all dead locks of one host.
func (s *Server) askBundle(w http.ResponseWriter, r *http.Request, who users.User) error {
	q, err := form(r, "target", "host", "reason")
	if err != nil {
		return err
	}
	if err := q.err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	b, err := s.deps.Releases.RequestBundle(ctx, actorOf(who), BundleInput{Target: q.text("target"), Host: q.text("host"), Reason: strings.TrimSpace(q.text("reason"))})
	if err != nil {
		return err
	}
	if len(b.LeftOut) > 0 {
		// Which locks were left out, and why, is known now and never again.
		return s.bundlePage(w, r, who, b, requestAgain{once: true})
	}
	redirect(w, r, s.view(r, who, pageSpec{}), "/bundles/"+b.ID)
	return nil
}

// approveBundleForm answers POST /bundles/{id}/approve.
func (s *Server) approveBundleForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.decideBundleForm(w, r, who, true)
}

// denyBundleForm answers POST /bundles/{id}/deny.
func (s *Server) denyBundleForm(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.decideBundleForm(w, r, who, false)
}

func (s *Server) decideBundleForm(w http.ResponseWriter, r *http.Request, who users.User, approve bool) error {
	q, word, err := readDecision(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if err = q.err(); err == nil {
		ctx, cancel := changing(r)
		defer cancel()
		decide := s.deps.Releases.DenyBundle
		if approve {
			decide = s.deps.Releases.ApproveBundle
		}
		_, err = decide(ctx, actorOf(who), id, word)
	}
	if err == nil {
		redirect(w, r, s.view(r, who, pageSpec{}), "/bundles/"+id)
		return nil
	}
	p, known := formProblem(err)
	if !known || p.Code == api.CodeNotFound {
		return err
	}
	b, missing := s.deps.Requests.Bundle(r.Context(), id)
	if missing != nil {
		return err
	}
	return s.bundlePage(w, r, who, b, requestAgain{problem: p, typed: q.values})
}
