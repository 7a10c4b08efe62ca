package console

import (
	"net/http"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// route is one method and path. docs/api.md has a section for each.
type route struct {
	pattern string // as http.ServeMux takes it
	verb    users.Verb
	handle  func(w http.ResponseWriter, r *http.Request, who users.User) error
}

func (s *Server) routes() []route {
	return []route{
		{"GET /{$}", users.VerbView, s.overview},
		{"GET /api/v1/locks", users.VerbView, s.listLocks},
		{"GET /api/v1/locks/one", users.VerbView, s.oneLock},
		{"GET /api/v1/findings", users.VerbView, s.listFindings},
		{"GET /api/v1/targets", users.VerbView, s.listTargets},
		{"GET /api/v1/classes", users.VerbView, s.listClasses},
		{"GET /api/v1/report", users.VerbView, s.report},
		{"GET /api/v1/requests", users.VerbView, s.listRequests},
		{"GET /api/v1/requests/{id}", users.VerbView, s.oneRequest},
		{"POST /api/v1/requests", users.VerbRequest, s.createRequest},
		{"POST /api/v1/requests/{id}/approve", users.VerbApprove, s.approve},
		{"POST /api/v1/requests/{id}/deny", users.VerbApprove, s.deny},
		{"POST /api/v1/requests/{id}/undo", users.VerbApprove, s.undo},
		{"POST /api/v1/requests/{id}/lift", users.VerbApprove, s.lift},
		{"POST /api/v1/requests/preview", users.VerbRequest, s.dryRun},
		{"GET /api/v1/requests/{id}/preview", users.VerbView, s.preview},
		{"GET /api/v1/audit", users.VerbView, s.listAudit},
		{"POST /-/reload", users.VerbAdmin, s.reload},
		{"POST /-/pause", users.VerbAdmin, s.pause},
		{"POST /-/resume", users.VerbAdmin, s.resume},
	}
}

// handler is the whole listener: headers and log, cross-origin protection, the
// routes, and problems for what is no route.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.routes() {
		mux.Handle(rt.pattern, s.guarded(rt))
	}
	mux.Handle("GET /console.css", http.HandlerFunc(stylesheet))
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, api.NewProblem(api.CodeRefused, "this request comes from another web site: changes are taken from this site and from programs alone"))
	}))
	return s.outermost(cross.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // not handler: the mux sets the path values
			return
		}
		noRoute(w, r, handler)
	})))
}

// noRoute turns the mux's own 404 and 405 into problems; its 301 to a clean path
// goes through.
func noRoute(w http.ResponseWriter, r *http.Request, fallback http.Handler) {
	probe := &probe{head: http.Header{}}
	fallback.ServeHTTP(probe, r)
	switch probe.status {
	case http.StatusMethodNotAllowed:
		allow := probe.head.Get("Allow")
		w.Header().Set("Allow", allow)
		writeProblem(w, api.NewProblem(api.CodeMethod, r.Method+" is not a method of this path: it takes "+allow))
	case http.StatusNotFound:
		writeProblem(w, api.NewProblem(api.CodeNotFound, "there is no such path: docs/api.md lists them"))
	default:
		fallback.ServeHTTP(w, r)
	}
}

// probe learns what a handler would answer.
type probe struct {
	head   http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.head }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }
