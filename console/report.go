package console

import (
	"cmp"
	"net/http"
	"time"

	"github.com/locksteward/locksteward/internal/users"
)

// How far a report goes back.
const (
	reportPreset = 24 * time.Hour
	reportMost   = 30 * 24 * time.Hour
)

// report answers GET /api/v1/report.
func (s *Server) report(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target", "class", "since")
	since := cmp.Or(q.duration("since", time.Minute, reportMost), reportPreset)
	if err := q.err(); err != nil {
		return err
	}
	out, err := s.deps.Reports.Report(r.Context(), q.text("target"), q.text("class"), time.Now().Add(-since))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}
