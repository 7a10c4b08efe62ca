package console

import (
	"net/http"

	"github.com/locksteward/locksteward/internal/users"
)

// showGraph answers GET /api/v1/graph.
func (s *Server) showGraph(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target")
	if err := q.err(); err != nil {
		return err
	}
	graph, err := s.deps.Graphs.Graph(q.text("target"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, graph)
}
