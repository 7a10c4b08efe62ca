package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

// provider is where people sign in elsewhere.
type provider interface {
	// Name is what people call it.
	Name() string
	// Begin returns where the browser is to go, and what its cookie must hold when
	// it comes back.
	Begin(ctx context.Context, next string) (address, cookie string, err error)
	// Finish returns who came back. Errors wrap locksteward.ErrRefused, or
	// locksteward.ErrInvalid for a way that has to be begun again; others mean that
	// the provider could not be asked.
	Finish(ctx context.Context, cookie string, query url.Values) (signin.ExternalIdentity, error)
	// Files says how its files stand, each under its key in the configuration.
	Files() []credfile.File
}

// The cookie of a sign-in under way. It is Lax, since the provider sends the
// browser back; it opens nothing by itself.
const (
	arrivalCookie       = "locksteward-oidc"
	secureArrivalCookie = "__Host-locksteward-oidc"
	arrivalMaxAge       = 600 // seconds
)

func (s *Server) authFlowCookie(r *http.Request, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: arrivalCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if s.authenticator.Secure(r) {
		c.Name, c.Secure = secureArrivalCookie, true
	}
	return c
}

// oidcStart answers GET /sign-in/oidc.
func (s *Server) oidcStart(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := pageQuery(r, "next")
	if err := q.err(); err != nil {
		return err
	}
	if s.provider == nil {
		return errNoProvider
	}
	next := signin.LocalPath(q.text("next"))
	address, cookie, err := s.provider.Begin(r.Context(), next)
	if err != nil {
		return s.oidcFailed(w, r, next, err)
	}
	http.SetCookie(w, s.authFlowCookie(r, cookie, arrivalMaxAge))
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

var errNoProvider = api.NewProblem(api.CodeNotFound, "this console has no provider for signing in: console.oidc is not configured")

// oidcCallback answers GET /sign-in/oidc/callback.
func (s *Server) oidcCallback(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if s.provider == nil {
		return errNoProvider
	}
	blank := s.authFlowCookie(r, "", -1)
	var held string
	if c, err := r.Cookie(blank.Name); err == nil {
		held = c.Value
	}
	http.SetCookie(w, blank) // one way back is used once
	arrived, err := s.provider.Finish(r.Context(), held, r.URL.Query())
	if err != nil {
		return s.oidcFailed(w, r, "/", err)
	}
	if _, err := s.authenticator.SignInAs(w, r, arrived.Name, arrived.Roles, arrived.Teams); err != nil {
		return s.oidcFailed(w, r, "/", err)
	}
	goOnFromHere(w, arrived.Next)
	return nil
}

// oidcFailed shows the page for signing in with what went wrong.
func (s *Server) oidcFailed(w http.ResponseWriter, r *http.Request, next string, err error) error {
	p := api.ProblemFor(err)
	switch {
	case errors.Is(err, locksteward.ErrRefused), errors.Is(err, locksteward.ErrInvalid):
		s.log.Info("sign-in at the provider is refused", zap.Error(err))
	case p.Code == api.CodeInternal:
		s.log.Error("the provider for signing in cannot be used", zap.Error(err))
		p = api.NewProblem(api.CodeUnavailable, s.provider.Name()+" cannot be used now: the agent's log says why. Try again in a moment, or sign in with a password or an API token.")
	default:
		s.log.Error("sign-in failed", zap.Error(err))
	}
	return s.showSignIn(w, r, signInData{Next: next}, p)
}
