package console

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// auditFilters are what selects entries of the trail.
var auditFilters = []string{
	"q", "actor", "action", "target", "key", "key_b64", "subject", "since", "until", "before", "after", "limit",
}

// auditQuery reads the filters of the trail, for the API and the page.
func auditQuery(q *query) AuditQuery {
	out := AuditQuery{
		Search: q.text("q"), Actor: q.text("actor"), Action: q.text("action"), Target: q.text("target"), Subject: q.text("subject"),
		Since: q.moment("since"), Until: q.moment("until"),
		Before: q.place("before"), After: q.place("after"), Ascending: q.text("after") != "",
		Limit: q.number("limit", 100, 1, 10_000),
	}
	if out.Before > 0 && out.Ascending {
		q.bad("after: lists the oldest first, before the newest first: give one of the two")
	}
	if q.text("key") != "" || q.text("key_b64") != "" {
		key, err := api.Key{Key: q.text("key"), KeyB64: q.text("key_b64")}.Bytes()
		if err != nil {
			q.errs = append(q.errs, err)
		}
		out.Key = key
	}
	return out
}

// place returns the parameter as the number of an entry, 0 if it is not given.
func (q *query) place(name string) int64 {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n == math.MaxInt64 {
		q.bad("%s: must be the number of an entry, got %q", name, text)
	}
	return n
}

// listAudit answers GET /api/v1/audit.
func (s *Server) listAudit(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, auditFilters...)
	wanted := auditQuery(q)
	if err := q.err(); err != nil {
		return err
	}
	out, err := s.entries(r, wanted)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}

// entries returns one page of the trail and where the next begins.
func (s *Server) entries(r *http.Request, wanted AuditQuery) (api.EntryList, error) {
	limit := wanted.Limit
	wanted.Limit++ // one more tells whether there is another page
	entries, err := s.deps.Audit.Entries(r.Context(), wanted)
	if err != nil {
		return api.EntryList{}, fmt.Errorf("list audit entries: %w", err)
	}
	out := api.EntryList{Entries: []api.Entry{}}
	if len(entries) > limit {
		entries = entries[:limit]
		out.Next = entries[limit-1].Seq
	}
	for _, e := range entries {
		out.Entries = append(out.Entries, api.NewEntry(e))
	}
	return out, nil
}

// auditCheckpoints answers GET /api/v1/audit/checkpoints.
func (s *Server) auditCheckpoints(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "before", "limit")
	before, limit := q.place("before"), q.number("limit", 100, 1, 10_000)
	if err := q.err(); err != nil {
		return err
	}
	list, err := s.deps.Audit.Checkpoints(r.Context(), before, limit)
	if err != nil {
		return fmt.Errorf("list checkpoints: %w", err)
	}
	return writeJSON(w, http.StatusOK, api.CheckpointList{Checkpoints: append([]api.Checkpoint{}, list...)})
}

// verifyAudit answers GET /api/v1/audit/verify.
func (s *Server) verifyAudit(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	out, err := s.deps.Audit.VerifyAudit(r.Context())
	if err != nil {
		return fmt.Errorf("verify audit trail: %w", err)
	}
	if !out.Whole {
		s.log.Error("the audit trail is broken", zap.Int64("entry", out.BrokenAt), zap.String("problem", out.Problem))
	}
	return writeJSON(w, http.StatusOK, out)
}

// auditStatus answers GET /api/v1/audit/status.
func (s *Server) auditStatus(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	out, err := s.deps.Audit.AuditStatus(r.Context())
	if err != nil {
		return fmt.Errorf("read status of the audit trail: %w", err)
	}
	return writeJSON(w, http.StatusOK, out)
}

// importAudit answers POST /api/v1/audit/import.
func (s *Server) importAudit(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.AuditImport
	if err := body(r, &in); err != nil {
		return err
	}
	if len(in.Lines) == 0 {
		return fmt.Errorf("lines: %w: is empty: give the lines of a file that `locksteward unlock` wrote", locksteward.ErrInvalid)
	}
	ctx, cancel := changing(r)
	defer cancel()
	out, err := s.deps.Audit.ImportAudit(ctx, who.Name, in)
	if err != nil {
		return fmt.Errorf("import audit file: %w", err)
	}
	s.log.Info("console change", zap.String("action", "audit file imported"), zap.String("file", in.File), zap.Int("entries", out.Imported),
		zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, out)
}
