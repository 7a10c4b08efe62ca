package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// route is one method and path. docs/openapi.yaml describes each.
type route struct {
	pattern string // as http.ServeMux takes it
	verb    users.Verb
	handle  handler
	// page says that people look at the answer: problems are pages too, and who is
	// not signed in is led there.
	page bool
	// anybody says that one need not be signed in; there is no verb then.
	anybody bool
}

// handler answers a request of who asks; its error is answered as a problem.
type handler func(w http.ResponseWriter, r *http.Request, who users.User) error

func (s *Server) routes() []route {
	return []route{
		{pattern: "GET /{$}", verb: users.VerbView, handle: s.overview, page: true},
		{pattern: "GET /api/v1/locks", verb: users.VerbView, handle: s.listLocks},
		{pattern: "GET /api/v1/locks/one", verb: users.VerbView, handle: s.oneLock},
		{pattern: "GET /api/v1/locks/events", verb: users.VerbView, handle: s.lockEvents},
		{pattern: "GET /api/v1/graph", verb: users.VerbView, handle: s.showGraph},
		{pattern: "GET /api/v1/findings", verb: users.VerbView, handle: s.listFindings},
		{pattern: "GET /api/v1/targets", verb: users.VerbView, handle: s.listTargets},
		{pattern: "GET /api/v1/classes", verb: users.VerbView, handle: s.listClasses},
		{pattern: "GET /api/v1/report", verb: users.VerbView, handle: s.report},
		{pattern: "GET /api/v1/requests", verb: users.VerbView, handle: s.listRequests},
		{pattern: "GET /api/v1/requests/{id}", verb: users.VerbView, handle: s.oneRequest},
		{pattern: "POST /api/v1/requests", verb: users.VerbRequest, handle: s.createRequest},
		{pattern: "POST /api/v1/requests/{id}/approve", verb: users.VerbApprove, handle: s.approve},
		{pattern: "POST /api/v1/requests/{id}/deny", verb: users.VerbApprove, handle: s.deny},
		{pattern: "POST /api/v1/requests/{id}/undo", verb: users.VerbApprove, handle: s.undo},
		{pattern: "POST /api/v1/requests/{id}/lift", verb: users.VerbApprove, handle: s.lift},
		{pattern: "POST /api/v1/requests/preview", verb: users.VerbRequest, handle: s.dryRun},
		{pattern: "GET /api/v1/requests/{id}/preview", verb: users.VerbView, handle: s.preview},
		{pattern: "POST /api/v1/requests/break-glass", verb: users.VerbBreakGlass, handle: s.breakGlass},
		{pattern: "POST /api/v1/bundles", verb: users.VerbRequest, handle: s.createBundle},
		{pattern: "GET /api/v1/bundles/{id}", verb: users.VerbView, handle: s.oneBundle},
		{pattern: "POST /api/v1/bundles/{id}/approve", verb: users.VerbApprove, handle: s.approveBundle},
		{pattern: "POST /api/v1/bundles/{id}/deny", verb: users.VerbApprove, handle: s.denyBundle},
		{pattern: "GET /api/v1/release/pause", verb: users.VerbView, handle: s.showReleasePause},
		{pattern: "POST /api/v1/release/pause", verb: users.VerbPause, handle: s.pauseReleases},
		{pattern: "POST /api/v1/release/resume", verb: users.VerbPause, handle: s.resumeReleases},
		{pattern: "GET /api/v1/audit", verb: users.VerbView, handle: s.listAudit},
		{pattern: "GET /api/v1/audit/checkpoints", verb: users.VerbView, handle: s.auditCheckpoints},
		{pattern: "GET /api/v1/audit/verify", verb: users.VerbView, handle: s.verifyAudit},
		{pattern: "GET /api/v1/audit/status", verb: users.VerbView, handle: s.auditStatus},
		{pattern: "POST /api/v1/audit/import", verb: users.VerbAdmin, handle: s.importAudit},
		{pattern: "GET /api/v1/notifications", verb: users.VerbView, handle: s.listNotifications},
		{pattern: "POST /api/v1/notifications/{id}/retry", verb: users.VerbAdmin, handle: s.retryNotification},
		{pattern: "POST /api/v1/receivers/{name}/retry", verb: users.VerbAdmin, handle: s.retryReceiver},
		{pattern: "POST /api/v1/receivers/{name}/test", verb: users.VerbAdmin, handle: s.testReceiver},
		{pattern: "GET /api/v1/silences", verb: users.VerbView, handle: s.listSilences},
		{pattern: "POST /api/v1/silences", verb: users.VerbSilence, handle: s.addSilence},
		{pattern: "POST /api/v1/silences/{id}/expire", verb: users.VerbSilence, handle: s.expireSilence},
		{pattern: "POST /-/reload", verb: users.VerbAdmin, handle: s.reload},
		{pattern: "POST /-/pause", verb: users.VerbAdmin, handle: s.pause},
		{pattern: "POST /-/resume", verb: users.VerbAdmin, handle: s.resume},
	}
}

// handler is the whole listener: headers and log, cross-origin protection, the
// routes, and problems for what is no route.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range slices.Concat(s.routes(), s.pageRoutes(), s.signInRoutes()) {
		mux.Handle(rt.pattern, s.guarded(rt))
	}
	mux.Handle("GET /console.css", asset("console.css", "text/css; charset=utf-8"))
	mux.Handle("GET /console.js", asset("console.js", "text/javascript; charset=utf-8"))
	mux.Handle("GET /console.svg", asset("console.svg", "image/svg+xml"))
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.problem(w, r, api.NewProblem(api.CodeRefused, "this request comes from another web site: changes are only accepted from this site and from programs"))
	}))
	return s.withHeaders(cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // not handler: the mux sets the path values
			return
		}
		s.noRoute(w, r, handler)
	})))
}

// noRoute turns the mux's own 404 and 405 into problems; its 301 to a clean path
// goes through.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request, fallback http.Handler) {
	probe := &probe{head: http.Header{}}
	fallback.ServeHTTP(probe, r)
	switch probe.status {
	case http.StatusMethodNotAllowed:
		allow := probe.head.Get("Allow")
		w.Header().Set("Allow", allow)
		s.problem(w, r, api.NewProblem(api.CodeMethod, r.Method+" is not a method of this path: it takes "+allow))
	case http.StatusNotFound:
		s.problem(w, r, api.NewProblem(api.CodeNotFound, "there is no such path: docs/openapi.yaml lists them"))
	default:
		fallback.ServeHTTP(w, r)
	}
}

// problem answers with a problem before it is known who asks: as a page to
// browsers.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.problemPage(w, r, users.User{}, p)
		return
	}
	writeProblem(w, p)
}

// probe learns what a handler would answer.
type probe struct {
	head   http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.head }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }
