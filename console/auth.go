package console

import (
	"net"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// guarded finds out who asks before the handler runs.
func (s *Server) guarded(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.authorize(r, rt.verb)
		if err == nil {
			err = rt.handle(w, r, who)
		}
		if err != nil {
			s.fail(w, r, who, err)
		}
	})
}

// authorize returns who asks, or the problem. The verbs request and approve are
// judged by [Releases], which also writes refusals into the audit trail.
func (s *Server) authorize(r *http.Request, verb users.Verb) (users.User, error) {
	set := s.users.Load()
	if set.Len() == 0 {
		return anonymous(r, verb)
	}
	who, ok := identify(set, r, verb)
	if !ok {
		return users.User{}, unauthenticated(r, verb)
	}
	if (verb == users.VerbView || verb == users.VerbAdmin) && !who.Can(verb) {
		return who, api.NewProblem(api.CodeRefused, "refused by policy: "+who.Name+" does not have the role "+string(users.RoleFor(verb))+", which this needs")
	}
	return who, nil
}

// anonymous is the rule for an agent without users: the listener is on loopback,
// so that whoever can ask is on this machine.
func anonymous(r *http.Request, verb users.Verb) (users.User, error) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if !loopback(host) && !strings.HasSuffix(host, ".localhost") {
		return users.User{}, api.NewProblem(api.CodeMisdirected, "while no users are configured, the console answers to loopback addresses alone: use http://127.0.0.1, or run `locksteward users add`")
	}
	if verb != users.VerbView {
		return users.User{}, api.NewProblem(api.CodeRefused, "refused by policy: no users are configured, so that nothing can be changed: run `locksteward users add NAME --role "+string(users.RoleFor(verb))+"` where the agent runs, then reload it")
	}
	return users.User{}, nil
}

// identify takes an API token for everything, and a name with a password for
// reading: a browser sends those by itself, so they must not change anything.
func identify(set *users.Set, r *http.Request, verb users.Verb) (users.User, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return set.Authenticate(strings.TrimSpace(token))
	case strings.EqualFold(scheme, "Basic") && verb == users.VerbView:
		if name, password, ok := r.BasicAuth(); ok {
			return set.AuthenticatePassword(name, password)
		}
	}
	return users.User{}, false
}

func unauthenticated(r *http.Request, verb users.Verb) error {
	switch {
	case r.Header.Get("Authorization") == "":
		return api.NewProblem(api.CodeUnauthenticated, "an API token is needed: send `Authorization: Bearer lsu_…`, or give it to the command line as --token-file or LOCKSTEWARD_TOKEN")
	case verb != users.VerbView:
		return api.NewProblem(api.CodeUnauthenticated, "this API token is not known, or this is no token: a change needs one that `locksteward users add` printed, and an agent that has read the users file since")
	default:
		return api.NewProblem(api.CodeUnauthenticated, "this API token or password is not known: was the agent reloaded since `locksteward users add`?")
	}
}

// fail answers with the problem of err. What is told as "internal", or as a
// fault outside the request, is logged here, where it would be lost otherwise.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, who users.User, err error) {
	p := api.ProblemFor(err)
	switch {
	case p.Code == api.CodeInternal, p.Code == api.CodeUnavailable:
		s.log.Error("console request failed", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.String("user", who.Name), zap.Error(err))
	case p.Code == api.CodeUnauthenticated:
		w.Header().Add("WWW-Authenticate", `Bearer realm="locksteward"`)
		// The API does not offer Basic: a browser would pop a dialogue up.
		if r.URL.Path == "/" {
			w.Header().Add("WWW-Authenticate", `Basic realm="locksteward", charset="UTF-8"`)
		}
		s.log.Info("console request not authenticated", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.String("remote", r.RemoteAddr))
	}
	writeProblem(w, p)
}
