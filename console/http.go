package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// withHeaders sets the headers that every answer has, bounds the body, and logs.
func (s *Server) withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		rec := &recorder{ResponseWriter: w, status: http.StatusOK, request: r}
		start := time.Now()
		next.ServeHTTP(rec, r)
		// Neither the query (it names keys) nor any header.
		s.log.Debug("console request", zap.String("method", r.Method), zap.String("path", r.URL.Path),
			zap.Int("status", rec.status), zap.Duration("duration", time.Since(start)), zap.String("remote", r.RemoteAddr))
	})
}

type recorder struct {
	http.ResponseWriter
	request *http.Request
	status  int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the real writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func writeProblem(w http.ResponseWriter, p *api.Problem) {
	writeAs(w, api.ProblemType, p.Status, p)
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	writeAs(w, "application/json", status, v)
	return nil
}

func writeAs(w http.ResponseWriter, mediaType string, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil { // api holds nothing that cannot be encoded
		mediaType, status = api.ProblemType, http.StatusInternalServerError
		raw = []byte(`{"type":"urn:locksteward:problem:internal","title":"Internal Server Error","status":500,"detail":"the answer could not be encoded","code":"internal"}`)
	}
	raw = append(locksteward.EscapeJSON(raw), '\n')
	if status == http.StatusOK && notModified(w, raw) {
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	// A client that went away is no fault of ours.
	_, _ = w.Write(raw)
}

// changing is the context of a change: a client that hangs up must not stop a
// release halfway.
func changing(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), changeTimeout)
}

// query is the parameters of a GET, read strictly: a misspelt filter must not
// look like an empty result.
type query struct {
	values url.Values
	errs   []error
}

func parseQuery(r *http.Request, allowed ...string) *query {
	q := &query{}
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.bad("query: %w", err)
	}
	for name, vs := range q.values {
		switch {
		case len(allowed) == 0:
			q.bad("%s: unknown parameter; this address takes none", name)
		case !slices.Contains(allowed, name):
			q.bad("%s: unknown parameter; use %s", name, strings.Join(allowed, ", "))
		case len(vs) > 1:
			q.bad("%s: is given %d times", name, len(vs))
		}
	}
	return q
}

func (q *query) bad(format string, args ...any) { q.errs = append(q.errs, fmt.Errorf(format, args...)) }

func (q *query) text(name string) string { return q.values.Get(name) }

// oneOf returns the parameter if it is one of the words, "" if it is not given.
func (q *query) oneOf(name string, words ...string) string {
	v := q.values.Get(name)
	if v != "" && !slices.Contains(words, v) {
		q.bad("%s: must be %s, got %q", name, strings.Join(words, ", "), v)
	}
	return v
}

func (q *query) number(name string, preset, low, high int) int {
	text := q.values.Get(name)
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		q.bad("%s: must be %d to %d, got %q", name, low, high, text)
		return preset
	}
	return n
}

// duration returns the parameter as a duration, 0 if it is not given.
func (q *query) duration(name string, low, high time.Duration) time.Duration {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		q.bad("%s: must be %s to %s, such as 30m, got %q", name, low, high, text)
		return 0
	}
	return d
}

// moment returns the parameter as a point in time, the zero time if it is not
// given: RFC 3339, or how long ago.
func (q *query) moment(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.bad("%s: must be how long ago, such as 24h, or a time such as 2026-03-01T12:00:00Z, got %q", name, text)
	}
	return at
}

// How many items a list has unless somebody says, and at most.
const (
	defaultLimit = 1000
	maxLimit     = 10_000
)

func (q *query) limit() int { return q.number("limit", defaultLimit, 1, maxLimit) }

func (q *query) lang() string { return q.oneOf("lang", "en", "zh") }

// err reports all problems at once; it wraps locksteward.ErrInvalid.
func (q *query) err() error {
	if len(q.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", locksteward.ErrInvalid, errors.Join(q.errs...))
}
