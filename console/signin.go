package console

import (
	"errors"
	"html/template"
	"net/http"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

// signInRoutes are open to anybody.
func (s *Server) signInRoutes() []route {
	return []route{
		{pattern: "GET /sign-in", handle: s.signInPage, page: true, anybody: true},
		{pattern: "POST /sign-in", handle: s.signIn, page: true, anybody: true},
		{pattern: "POST /sign-out", handle: s.signOut, page: true, anybody: true},
		{pattern: "GET /sign-in/oidc", handle: s.oidcStart, page: true, anybody: true},
		{pattern: "GET /sign-in/oidc/callback", handle: s.oidcCallback, page: true, anybody: true},
	}
}

// signInData is what the page for signing in shows.
type signInData struct {
	Next     string
	Name     string // as it was typed
	Provider string // of OIDC, "" for none
}

// signInPage answers GET /sign-in.
func (s *Server) signInPage(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := pageQuery(r, "next")
	if err := q.err(); err != nil {
		return err
	}
	next := signin.LocalPath(q.text("next"))
	if who.Name != "" || s.authenticator.Open() {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	return s.showSignIn(w, r, signInData{Next: next}, nil)
}

// signIn answers POST /sign-in.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q, err := form(r, "name", "password", "next")
	if err == nil {
		err = q.err()
	}
	if err != nil {
		return err
	}
	data := signInData{Next: signin.LocalPath(q.text("next")), Name: q.text("name")}
	if s.authenticator.Open() {
		return s.showSignIn(w, r, data, api.NewProblem(api.CodeRefused, "no users are configured, so nobody can sign in: run `locksteward users add NAME --role viewer` where the agent runs, then reload it"))
	}
	_, err = s.authenticator.SignIn(w, r, data.Name, q.text("password"))
	if err != nil {
		retryAfter(w, err)
		p := problemOf(r, err)
		if errors.Is(err, signin.ErrUnknown) {
			p = api.NewProblem(api.CodeUnauthenticated, "Unknown name, password or API token. Users that were added or changed take effect on reload.")
		}
		if p.Code == api.CodeInternal || p.Code == api.CodeUnavailable {
			s.log.Error("sign-in failed", zap.Error(err))
		}
		return s.showSignIn(w, r, data, p)
	}
	http.Redirect(w, r, data.Next, http.StatusSeeOther)
	return nil
}

func (s *Server) showSignIn(w http.ResponseWriter, r *http.Request, data signInData, p *api.Problem) error {
	if s.provider != nil {
		data.Provider = s.provider.Name()
	}
	page := pageSpec{name: "signin", title: "Sign in", data: data, problem: p, bare: true}
	if p != nil {
		page.status = p.Status
	}
	return s.show(w, r, users.User{}, page)
}

// signOut answers POST /sign-out.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request, _ users.User) error {
	who := principalOf(r)
	if who.Method == signin.MethodProxy {
		return api.NewProblem(api.CodeRefused, "the proxy in front of this console signs you in: sign out there")
	}
	if who.Method == signin.MethodSession {
		if err := checkForm(r, who); err != nil {
			return err
		}
		ctx, cancel := changing(r)
		defer cancel()
		if err := s.authenticator.SignOut(ctx, who); err != nil {
			return err
		}
	}
	s.authenticator.ClearCookie(w, r)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	return nil
}

// continuePage leads on by a request that this site makes itself: a browser keeps
// a strict cookie back from requests that another site began, redirects included.
var continuePage = template.Must(template.New("continue").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="0;url={{.}}">
<title>Locksteward</title>
<link rel="stylesheet" href="/console.css">
</head>
<body>
<main id="main"><p><a href="{{.}}">Continue</a></p></main>
</body>
</html>
`))

func goOnFromHere(w http.ResponseWriter, path string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A path of ours, escaped by the template; a client that went away is no fault.
	_ = continuePage.Execute(w, signin.LocalPath(path))
}
