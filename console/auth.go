package console

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/loopback"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

// guarded finds out who asks before the handler runs.
func (s *Server) guarded(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.authorize(r, rt)
		r = r.WithContext(context.WithValue(r.Context(), principalKey{}, who))
		if err == nil {
			err = rt.handle(w, r, who.User)
		}
		if err != nil {
			s.fail(w, r, rt, who.User, err)
		} else if !safe(r) {
			s.Touch()
		}
	})
}

// principalKey is where a request's context has who asks.
type principalKey struct{}

func principalOf(r *http.Request) signin.Principal {
	who, _ := r.Context().Value(principalKey{}).(signin.Principal)
	return who
}

// formToken is what each form must carry as csrf that is shown in answer to this
// request; "" where nobody could send it.
func (s *Server) formToken(r *http.Request) string { return principalOf(r).FormToken() }

// safe says that a method changes nothing.
func safe(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// authorize returns who asks, or the problem. The verbs of releases are judged by
// [Releases], which also writes refusals into the audit trail.
func (s *Server) authorize(r *http.Request, rt route) (signin.Principal, error) {
	if s.authenticator.Open() {
		if err := anonymous(r, rt); err != nil {
			return signin.Principal{}, err
		}
		return signin.Principal{}, s.authenticator.Allow(r, signin.Principal{})
	}
	who, err := s.authenticator.Identify(r)
	if limited := s.authenticator.Allow(r, who); limited != nil {
		return who, limited
	}
	if rt.anybody && (errors.Is(err, signin.ErrNobody) || errors.Is(err, signin.ErrUnknown)) {
		return signin.Principal{}, nil
	}
	if err != nil {
		return signin.Principal{}, err
	}
	if rt.anybody {
		return who, nil
	}
	if !safe(r) && who.Ambient() {
		if !rt.page {
			return who, api.NewProblem(api.CodeUnauthenticated, "a change over the API needs an API token: cookies do not count here; send `Authorization: Bearer lsu_…`, or use the pages")
		}
		if err := checkForm(r, who); err != nil {
			return who, err
		}
	}
	if (rt.verb == users.VerbView || rt.verb == users.VerbAdmin || rt.verb == users.VerbSilence) && !who.User.Can(rt.verb) {
		return who, api.NewProblem(api.CodeRefused, "refused by policy: "+who.User.Name+" does not have the role "+string(users.RoleFor(rt.verb))+", which this needs")
	}
	return who, nil
}

// checkForm refuses a form that was not shown to this person in this session.
func checkForm(r *http.Request, who signin.Principal) error {
	err := r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return api.NewProblem(api.CodeTooLarge, fmt.Sprintf("the form is larger than %d bytes", maxBody))
	}
	if err != nil {
		return fmt.Errorf("read form: %w: %w", locksteward.ErrInvalid, err)
	}
	if !who.CheckForm(r.PostForm.Get("csrf")) {
		return api.NewProblem(api.CodeRefused, "refused by policy: this form belongs to another session: reload the page and send it again")
	}
	return nil
}

// anonymous is the rule for an agent without users: the listener is on loopback,
// so that every client is on this machine.
func anonymous(r *http.Request, rt route) error {
	if !loopback.Names(loopback.HostOf(r)) {
		return api.NewProblem(api.CodeMisdirected, "while no users are configured, the console only answers on loopback addresses: use http://127.0.0.1, or run `locksteward users add`")
	}
	if rt.verb != users.VerbView && !rt.anybody {
		return api.NewProblem(api.CodeRefused, "refused by policy: no users are configured, so nothing can be changed: run `locksteward users add NAME --role "+string(users.RoleFor(rt.verb))+"` where the agent runs, then reload it")
	}
	return nil
}

// problemOf turns what went wrong at the door into the problem that tells it.
func problemOf(r *http.Request, err error) *api.Problem {
	given := r.Header.Get("Authorization") != ""
	switch {
	case errors.Is(err, signin.ErrForged):
		return api.NewProblem(api.CodeRefused, "refused by policy: "+err.Error())
	case errors.Is(err, users.ErrBusy):
		return api.NewProblem(api.CodeTooMany, "too many passwords are being checked: try again in a moment")
	case errors.Is(err, signin.ErrNobody):
		return api.NewProblem(api.CodeUnauthenticated, "an API token is needed: send `Authorization: Bearer lsu_…`, or give it to the command line as --token-file or LOCKSTEWARD_TOKEN; people sign in at /sign-in")
	case errors.Is(err, signin.ErrUnknown) && !given:
		return api.NewProblem(api.CodeUnauthenticated, err.Error())
	case errors.Is(err, signin.ErrUnknown) && !safe(r):
		return api.NewProblem(api.CodeUnauthenticated, "unknown API token: a change needs a token that `locksteward users add` printed, and a reload of the agent since")
	case errors.Is(err, signin.ErrUnknown):
		return api.NewProblem(api.CodeUnauthenticated, "unknown API token or password: was the agent reloaded since `locksteward users add`?")
	}
	if wait, ok := errors.AsType[*signin.WaitError](err); ok {
		return api.NewProblem(api.CodeTooMany, wait.Error())
	}
	return api.ProblemFor(err)
}

// retryAfter says when to come again, if that is the problem.
func retryAfter(w http.ResponseWriter, err error) {
	wait, ok := errors.AsType[*signin.WaitError](err)
	switch {
	case ok:
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.After.Seconds())))))
	case errors.Is(err, users.ErrBusy):
		w.Header().Set("Retry-After", strconv.Itoa(int((2 * time.Second).Seconds())))
	}
}

// fail answers with the problem of err. What is reported as "internal", or as a
// fault outside the request, is logged here, where it would be lost otherwise.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, rt route, who users.User, err error) {
	if rt.page && safe(r) && errors.Is(err, signin.ErrNobody) {
		s.redirectToSignIn(w, r)
		return
	}
	p := problemOf(r, err)
	if rt.page && errors.Is(err, signin.ErrNobody) {
		p = api.NewProblem(api.CodeUnauthenticated, "you are not signed in, so nothing was changed: sign in at /sign-in, then go back and send the form again")
	}
	retryAfter(w, err)
	switch {
	case p.Code == api.CodeInternal, p.Code == api.CodeUnavailable:
		s.log.Error("console request failed", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.String("user", who.Name), zap.Error(err))
	case p.Code == api.CodeUnauthenticated:
		w.Header().Add("WWW-Authenticate", `Bearer realm="locksteward"`)
		s.log.Info("console request not authenticated", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.String("remote", r.RemoteAddr))
	}
	if rt.page {
		s.problemPage(w, r, who, p)
		return
	}
	writeProblem(w, p)
}

// redirectToSignIn answers one who is not signed in, and looks at a page. A browser
// that follows a link from elsewhere keeps the session's cookie back, and brings
// it when the same page is asked for from here.
func (s *Server) redirectToSignIn(w http.ResponseWriter, r *http.Request) {
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" {
		goOnFromHere(w, r.URL.RequestURI())
		return
	}
	http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}
