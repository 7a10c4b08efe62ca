package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// form reads what a page's form sent, strictly as [parseQuery] reads addresses.
// Lines end as people think they do.
func form(r *http.Request, allowed ...string) (*query, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/x-www-form-urlencoded" {
		return nil, api.NewProblem(api.CodeMediaType, "this address takes a form: send `Content-Type: application/x-www-form-urlencoded`, or use the API under /api/v1")
	}
	err = r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, api.NewProblem(api.CodeTooLarge, fmt.Sprintf("the form is larger than %d bytes", maxBody))
	}
	if err != nil {
		return nil, fmt.Errorf("read form: %w: %w", locksteward.ErrInvalid, err)
	}
	q := &query{values: url.Values{}}
	allowed = append(allowed, "csrf")
	for name, values := range r.PostForm {
		switch {
		case !slices.Contains(allowed, name):
			q.bad("%s: unknown field of this form", name)
		case len(values) > 1:
			q.bad("%s: is given %d times", name, len(values))
		}
		q.values.Set(name, strings.ReplaceAll(values[0], "\r\n", "\n"))
	}
	for name := range r.URL.Query() {
		if name != "lang" {
			q.bad("%s: belongs in the form, not in the address", name)
		}
	}
	return q, nil
}

// ticked says that a box of the form was ticked.
func (q *query) ticked(name string) bool { return q.oneOf(name, "yes") == "yes" }

// span returns what was typed as a duration, nil for nothing. A number alone is
// refused: nobody knows of what.
func (q *query) span(name, what string) *time.Duration {
	text := strings.TrimSpace(q.values.Get(name))
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		q.bad("%s: write a duration such as 30s, 10m or 1h, got %q", what, text)
		return nil
	}
	return &d
}

// formProblem says whether a form that met this problem is shown again with it:
// people can do something about it there.
func formProblem(err error) (*api.Problem, bool) {
	p := api.ProblemFor(err)
	switch p.Code {
	case api.CodeInvalid, api.CodeRefused, api.CodeConflict, api.CodeNotFound:
		return p, true
	default:
		return p, false
	}
}

// redirect leads to a page after a form was carried out: loading that again does not
// send the form again.
func redirect(w http.ResponseWriter, r *http.Request, v view, path string) {
	http.Redirect(w, r, v.To(path), http.StatusSeeOther)
}

// mark names what somebody saw when they were given a form. A form that comes
// with another mark is old, or was sent twice.
func mark(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// stale is the problem of such a form.
func stale(what string) error {
	return fmt.Errorf("%w: this form was already sent, or %s since it was loaded. It changed nothing: review the page and decide again", locksteward.ErrConflict, what)
}
