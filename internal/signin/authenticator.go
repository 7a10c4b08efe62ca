package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/users"
)

// What the audit trail calls signing in and out.
const (
	ActionOK      = "signin.ok"
	ActionFailed  = "signin.failed"
	ActionLocked  = "signin.locked"
	ActionSignOut = "signout"
)

// agentActor is the actor of entries about failures, since nobody was authenticated.
const agentActor = "agent"

// What [Authenticator] fails with.
var (
	// ErrNobody is a request without credentials.
	ErrNobody = errors.New("nobody is signed in")
	// ErrUnknown is a token, name or password that is not known.
	ErrUnknown = errors.New("this token, name or password is not known")
	// ErrForged is a proxy's header from an address that is not the proxy's.
	ErrForged = errors.New("the proxy's user header comes from an address that is not the proxy's")
)

// WaitError is a request beyond a rate limit or a lockout.
type WaitError struct {
	// After is how long to wait.
	After time.Duration
	// Locked says that the name is locked out.
	Locked bool
}

// Error says how long to wait.
func (e *WaitError) Error() string {
	what := "too many requests"
	if e.Locked {
		what = "too many failed sign-ins"
	}
	return fmt.Sprintf("%s: try again in %s", what, max(e.After, time.Second).Round(time.Second))
}

// Method is how a request was authenticated.
type Method string

// The methods.
const (
	MethodToken   Method = "token"
	MethodSession Method = "session"
	MethodProxy   Method = "proxy"
	MethodBasic   Method = "basic"
)

// Principal is the authenticated user of a request.
type Principal struct {
	User    users.User
	Method  Method
	Session Session // of BySession

	token string
}

// Ambient says whether the browser sends the credentials by itself, so that a change
// needs the form token as well.
func (w Principal) Ambient() bool {
	return w.Method == MethodSession || w.Method == MethodProxy || w.Method == MethodBasic
}

// FormToken returns the token that forms for this person must carry; "" if no form
// can change anything.
func (w Principal) FormToken() string { return w.token }

// CheckForm reports whether the token of a form belongs to this person.
func (w Principal) CheckForm(token string) bool {
	return w.token != "" && subtle.ConstantTimeCompare([]byte(w.token), []byte(token)) == 1
}

// checkTimeout bounds how long a sign-in waits for others' passwords to be
// checked.
const checkTimeout = 5 * time.Second

// Authenticator authenticates requests and keeps sessions. Make one with [New].
type Authenticator struct {
	log   *zap.Logger
	cfg   Config
	users func() *users.Set
	store Store
	now   func() time.Time
	proxy []netip.Prefix
	// secret makes the form tokens of those who come through a proxy.
	secret []byte

	sessionCache *lru[Session]
	lockouts     *lockouts
	addrs        *rateLimits // attempts to sign in, by place
	// And by name, of those that there are and of others; not from where that person
	// signed in before.
	knownNames, unknownNames *rateLimits
	requests                 *rateLimits // by user, or place
	// Failed sign-ins are audited at a limited rate: by name, and in total. unwritten counts
	// those that were not.
	failureRate      *rateLimits
	totalFailureRate *rate.Limiter
	unwritten        atomic.Int64
}

// New returns an Authenticator. set returns the current users, now is the clock.
func New(log *zap.Logger, cfg Config, set func() *users.Set, store Store, now func() time.Time) (*Authenticator, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Authenticator{
		log: log, cfg: cfg, users: set, store: store, now: now, secret: make([]byte, 32),
		sessionCache: newLRU[Session](maxTracked), lockouts: newLockouts(cfg.Lockout),
		addrs:        newRateLimits(rate.Every(attemptEvery), attemptBurst),
		knownNames:   newRateLimits(rate.Every(nameEvery), nameBurst),
		unknownNames: newRateLimits(rate.Every(nameEvery), nameBurst),
		requests:     newRateLimits(rate.Limit(cfg.Rate.PerSecond), 2*cfg.Rate.PerSecond),
		failureRate:  newRateLimits(rate.Every(10*time.Second), 5), totalFailureRate: rate.NewLimiter(2, 50),
	}
	_, _ = rand.Read(a.secret)
	if cfg.Proxy != nil {
		var err error
		if a.proxy, err = cfg.Proxy.addresses(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Open reports whether nobody can sign in: there are no users, no proxy and no OIDC
// provider.
func (a *Authenticator) Open() bool {
	return a.users().Len() == 0 && a.cfg.OIDC == nil && a.cfg.Proxy == nil
}

// Identify authenticates a request by the first of: API token, proxy header, session,
// name and password. A name with a password (HTTP Basic) only allows reading. The error is
// [ErrNobody], [ErrUnknown], [ErrForged], users.ErrBusy, a *[WaitError], or the
// store's.
func (a *Authenticator) Identify(r *http.Request) (Principal, error) {
	proxied, byProxy, err := a.fromProxy(r)
	if err != nil {
		return Principal{}, err
	}
	scheme, rest, given := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		user, ok := a.users().Authenticate(strings.TrimSpace(rest))
		if !ok {
			return Principal{}, ErrUnknown
		}
		return Principal{User: user, Method: MethodToken}, nil
	case byProxy:
		return proxied, nil
	}
	if id := a.cookie(r); id != "" {
		if who, ok, err := a.fromSession(r.Context(), id, isUserAction(r)); err != nil || ok {
			return who, err
		}
	}
	switch {
	case given && strings.EqualFold(scheme, "Basic") && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		name, password, ok := r.BasicAuth()
		if !ok {
			return Principal{}, ErrUnknown
		}
		user, _, err := a.checkPassword(r, name, password)
		return Principal{User: user, Method: MethodBasic}, err
	case scheme != "":
		return Principal{}, ErrUnknown
	default:
		return Principal{}, ErrNobody
	}
}

// fromProxy returns whom the trusted proxy names.
func (a *Authenticator) fromProxy(r *http.Request) (Principal, bool, error) {
	if a.cfg.Proxy == nil || a.cfg.Proxy.Header == "" {
		return Principal{}, false, nil
	}
	values := r.Header.Values(a.cfg.Proxy.Header)
	switch {
	case len(values) == 0:
		return Principal{}, false, nil
	case !a.isTrustedProxy(peer(r)):
		a.log.Warn("proxy header from an address that is not in console.proxy.allow", zap.String("remote", r.RemoteAddr), zap.String("path", r.URL.Path))
		return Principal{}, false, ErrForged
	case len(values) > 1:
		return Principal{}, false, fmt.Errorf("%w: %s is given twice", ErrForged, a.cfg.Proxy.Header)
	case values[0] == "":
		return Principal{}, false, nil // the proxy knows nobody
	}
	account, ok := a.users().Find(values[0])
	if !ok || account.Disabled || !account.External {
		a.log.Info("proxy names nobody who may come through it", zap.String("name", printableName(values[0])))
		return Principal{}, false, fmt.Errorf("%w: the proxy says %q, who is not an external user of the users file (`locksteward users add NAME --external`), or is disabled", ErrUnknown, printableName(values[0]))
	}
	return Principal{User: account.User, Method: MethodProxy, token: formToken(a.secret, "proxy\x00"+account.Name)}, true, nil
}

// SignIn checks a name with a password, or an API token in its place, and begins a
// session, whose cookie it sets. The error is [ErrUnknown], users.ErrBusy, a
// *[WaitError] or the store's.
func (a *Authenticator) SignIn(w http.ResponseWriter, r *http.Request, name, password string) (users.User, error) {
	now := a.now()
	known := a.isKnown(name)
	from := networkOf(a.Client(r))
	if wait, ok := a.addrs.allow(from, now); !ok {
		return users.User{}, &WaitError{After: wait}
	}
	if !a.lockouts.isTrusted(name, from) {
		by := a.unknownNames
		if known {
			by = a.knownNames
		}
		if wait, ok := by.allow(strings.ToLower(name), now); !ok {
			return users.User{}, &WaitError{After: wait}
		}
	}
	user, mark, err := a.checkPassword(r, name, password)
	if err != nil {
		return users.User{}, err
	}
	by := SourcePassword
	if _, is := a.users().Authenticate(password); is {
		by = "token"
	}
	return user, a.startSession(w, r, Session{User: user.Name, Source: SourcePassword, Stamp: mark}, by)
}

// SignInAs begins a session for whom an OIDC provider named, with the roles and
// teams that it gave. A name of the users file must be external there. The error
// wraps locksteward.ErrRefused, or is the store's.
func (a *Authenticator) SignInAs(w http.ResponseWriter, r *http.Request, name string, roles []users.Role, teams []string) (users.User, error) {
	s := Session{User: name, Source: SourceOIDC, Teams: teams}
	for _, role := range roles {
		s.Roles = append(s.Roles, string(role))
	}
	account, known := a.users().Find(name)
	var why string
	switch {
	case !users.ValidName(name):
		why = "cannot be the name of a user here (letters, digits and . _ @ + - alone)"
	case known && account.Disabled:
		why = "is disabled in the users file"
	case known && !account.External:
		why = "is a user with a sign-in of their own: an admin has to write `external: true` into the users file if that is the same person"
	}
	if known && why == "" {
		s.User = account.Name
	}
	user, ok := userOf(a.users(), s)
	if why == "" && !ok {
		why = "has no role here: an admin has to map one of their groups in console.oidc.roles, or add an external user"
	}
	if why != "" {
		a.recordFailure(r, name, ActionFailed, SourceOIDC)
		return users.User{}, fmt.Errorf("%w: %s %s", locksteward.ErrRefused, printableName(name), why)
	}
	return user, a.startSession(w, r, s, s.Source)
}

// startSession starts the session of a user who proved who they are by a password, a token
// or an OIDC provider, and sets its cookie.
func (a *Authenticator) startSession(w http.ResponseWriter, r *http.Request, s Session, by string) error {
	id, err := a.saveSession(r.Context(), a.cookie(r), s, locksteward.Entry{
		At: a.now(), Actor: s.User, Action: ActionOK, Outcome: "ok", Detail: detail(map[string]any{"by": by, "address": a.Client(r).String()}),
	})
	if err != nil {
		return err
	}
	a.setCookie(w, r, id)
	a.log.Info("signed in", zap.String("user", s.User), zap.String("by", by), zap.Stringer("address", a.Client(r)))
	return nil
}

func (a *Authenticator) isKnown(name string) bool {
	_, known := a.users().Find(name)
	return known
}

// checkPassword is the one place where a password is compared.
func (a *Authenticator) checkPassword(r *http.Request, name, password string) (users.User, string, error) {
	known := a.isKnown(name)
	t, wait := a.lockouts.attempt(name, networkOf(a.Client(r)), known, a.now())
	if t == nil {
		return users.User{}, "", &WaitError{After: wait, Locked: true}
	}
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	user, mark, err := a.users().AuthenticatePassword(ctx, name, password)
	switch {
	case err == nil:
		t.succeed()
		return user, mark, nil
	case errors.Is(err, users.ErrBusy):
		t.withdraw()
		return users.User{}, "", err
	}
	a.recordFailure(r, name, ActionFailed, SourcePassword)
	if t.locks {
		a.recordFailure(r, name, ActionLocked, SourcePassword)
		a.log.Warn("name is locked out after failed sign-ins", zap.String("name", printableName(name)), zap.Stringer("address", a.Client(r)), zap.Duration("for", a.cfg.Lockout.Window))
	}
	return users.User{}, "", ErrUnknown
}

// recordFailure writes a failed sign-in into the audit trail, as long as there are not
// too many of them; the next entry counts those that were left out.
func (a *Authenticator) recordFailure(r *http.Request, name, action, by string) {
	now := a.now()
	if action != ActionLocked {
		if _, ok := a.failureRate.allow(strings.ToLower(name), now); !ok || !a.totalFailureRate.AllowN(now, 1) {
			a.unwritten.Add(1)
			return
		}
	}
	what := map[string]any{"by": by, "address": a.Client(r).String()}
	if n := a.unwritten.Swap(0); n > 0 {
		what["others_not_written"] = n
	}
	if action == ActionLocked {
		what["for_ms"] = a.cfg.Lockout.Window.Milliseconds()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), checkTimeout)
	defer cancel()
	err := a.store.AppendEntries(ctx, locksteward.Entry{
		At: now, Actor: agentActor, Action: action, Subject: printableName(name), Outcome: "refused", Detail: detail(what),
	})
	if err != nil {
		a.log.Error("failed sign-in is not in the audit trail", zap.String("name", printableName(name)), zap.Error(err))
	}
}

func detail(what map[string]any) json.RawMessage {
	raw, err := json.Marshal(what)
	if err != nil {
		return nil // texts and numbers alone
	}
	return raw
}

// Allow counts a request of who, or of where it comes from if that is nobody; a
// *[WaitError] is one too many.
func (a *Authenticator) Allow(r *http.Request, who Principal) error {
	key := "user\x00" + strings.ToLower(who.User.Name)
	if who.User.Name == "" {
		key = "place\x00" + networkOf(a.Client(r))
	}
	if wait, ok := a.requests.allow(key, a.now()); !ok {
		return &WaitError{After: wait}
	}
	return nil
}

// ExternalIdentity is a person whom an OIDC provider authenticated.
type ExternalIdentity struct {
	Name  string
	Roles []users.Role
	Teams []string
	Next  string // path of the page to show
}
