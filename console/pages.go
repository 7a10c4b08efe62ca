package console

import "github.com/locksteward/locksteward/internal/users"

// pageRoutes are the pages for people, the forms on them, and the stream that
// they follow. docs/console.md describes them.
func (s *Server) pageRoutes() []route {
	page := func(pattern string, verb users.Verb, handle handler) route {
		return route{pattern: pattern, verb: verb, handle: handle, page: true}
	}
	return []route{
		page("GET /locks", users.VerbView, s.locks),
		page("GET /locks/one", users.VerbView, s.lock),
		page("GET /findings", users.VerbView, s.findings),
		page("GET /findings/{fingerprint}", users.VerbView, s.finding),
		page("POST /findings/{fingerprint}/accept", users.VerbSilence, s.acceptForm),
		page("GET /silences", users.VerbView, s.silences),
		page("GET /notifications", users.VerbView, s.notifications),
		page("POST /silences", users.VerbSilence, s.silenceForm),
		page("POST /silences/{id}/expire", users.VerbSilence, s.expireForm),
		page("GET /graph", users.VerbView, s.graph),
		page("GET /requests", users.VerbView, s.requests),
		page("POST /requests", users.VerbRequest, s.ask),
		page("GET /requests/{id}", users.VerbView, s.request),
		page("POST /requests/{id}/approve", users.VerbApprove, s.approveForm),
		page("POST /requests/{id}/deny", users.VerbApprove, s.denyForm),
		page("POST /requests/{id}/undo", users.VerbApprove, s.undoForm),
		page("POST /requests/{id}/lift", users.VerbApprove, s.liftForm),
		page("POST /bundles", users.VerbRequest, s.askBundle),
		page("GET /bundles/{id}", users.VerbView, s.bundle),
		page("POST /bundles/{id}/approve", users.VerbApprove, s.approveBundleForm),
		page("POST /bundles/{id}/deny", users.VerbApprove, s.denyBundleForm),
		page("GET /audit", users.VerbView, s.audit),
		page("GET /targets", users.VerbView, s.targets),
		page("POST /targets/pause", users.VerbAdmin, s.pauseForm),
		page("POST /targets/resume", users.VerbAdmin, s.pauseForm),
		page("GET /rules", users.VerbView, s.rules),
		page("GET /rules/{group}/{name}", users.VerbView, s.rule),
		page("GET /classes", users.VerbView, s.classes),
		page("GET "+releasePausePath, users.VerbView, s.releasePause),
		page("POST "+releasePausePath, users.VerbPause, s.releasePauseForm),
		{pattern: "GET /live", verb: users.VerbView, handle: s.live},
	}
}
