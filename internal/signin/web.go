package signin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The session's cookie. With TLS its name makes browsers refuse one that another
// host of the domain, or a connection without TLS, has set.
const (
	cookieName       = "locksteward"
	secureCookieName = "__Host-locksteward"
)

// peer is the other end of the connection.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

func (a *Authenticator) isTrustedProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(a.proxy, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Client is where the request comes from: the other end of the connection, or what
// a trusted proxy says of it.
func (a *Authenticator) Client(r *http.Request) netip.Addr {
	addr := peer(r)
	if !a.isTrustedProxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		if addr = next.Unmap().WithZone(""); !a.isTrustedProxy(addr) {
			break
		}
	}
	return addr
}

// isUserAction says whether a person did this: a page that is loaded, or a form that is
// sent. What a page's script asks for by itself is not: a page left open would keep
// its session for ever. Browsers that do not tell are taken at their best.
func isUserAction(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return mode == "" || mode == "navigate"
}

// Secure says whether the browser speaks TLS, to us or to a trusted proxy.
func (a *Authenticator) Secure(r *http.Request) bool {
	return r.TLS != nil || a.isTrustedProxy(peer(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookie returns the session's id, "" if there is none.
func (a *Authenticator) cookie(r *http.Request) string {
	c, err := r.Cookie(a.cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}

func (a *Authenticator) cookieName(r *http.Request) string {
	if a.Secure(r) {
		return secureCookieName
	}
	return cookieName
}

// setCookie gives the browser the session's id. Strict: no link or form of another
// site ever carries it.
func (a *Authenticator) setCookie(w http.ResponseWriter, r *http.Request, id string) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookieName(r), Value: id, Path: "/", Secure: a.Secure(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// ClearCookie takes the session's id from the browser.
func (a *Authenticator) ClearCookie(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookieName(r), Path: "/", Secure: a.Secure(r), HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1,
	})
}

// LocalPath returns next if it is a path of this site, else "/"; also for a path that browsers
// may take for another site.
func LocalPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\x00\t\r\n") || len(next) > 2000 ||
		strings.HasPrefix(next, "/sign-") {
		return "/"
	}
	for _, c := range next {
		if c < ' ' || c == 0x7f {
			return "/"
		}
	}
	return next
}
