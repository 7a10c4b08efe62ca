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

// agentActor is who writes of failures: nobody proved to be anybody.
const agentActor = "agent"

// What [Desk] fails with.
var (
	// ErrNobody is a request that does not say who asks.
	ErrNobody = errors.New("nobody is signed in")
	// ErrUnknown is a token, name or password that is not known.
	ErrUnknown = errors.New("this token, name or password is not known")
	// ErrForged is a proxy's header from an address that is not the proxy's.
	ErrForged = errors.New("the header that says who asks comes from an address that is not the proxy's")
)

// WaitError is too much in too short a time.
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

// By is the way in which somebody said who they are.
type By string

// The ways.
const (
	ByToken   By = "token"
	BySession By = "session"
	ByProxy   By = "proxy"
	ByBasic   By = "basic"
)

// Who is who asks.
type Who struct {
	User    users.User
	By      By
	Session Session // of BySession

	token string
}

// Ambient says that the browser said it by itself, so that a change needs the
// form token too.
func (w Who) Ambient() bool { return w.By == BySession || w.By == ByProxy || w.By == ByBasic }

// FormToken is what forms must carry that are shown to this person; "" where no
// form can change anything.
func (w Who) FormToken() string { return w.token }

// CheckForm says whether a form was shown to this person.
func (w Who) CheckForm(token string) bool {
	return w.token != "" && subtle.ConstantTimeCompare([]byte(w.token), []byte(token)) == 1
}

// checkTimeout bounds how long a sign-in waits for others' passwords to be
// checked.
const checkTimeout = 5 * time.Second

// Desk is where people and programs say who they are. Make one with [New].
type Desk struct {
	log   *zap.Logger
	cfg   Config
	users func() *users.Set
	store Store
	now   func() time.Time
	proxy []netip.Prefix
	// secret makes the form tokens of those who come through a proxy.
	secret []byte

	seen     *table[Session]
	lockouts *lockouts
	addrs    *rates // attempts to sign in, by place
	// And by name, of those that there are and of others; not from where that person
	// signed in before.
	names, strangers *rates
	requests         *rates // by user, or place
	// Failures are written with measure: told by name, allTold in all.
	told      *rates
	allTold   *rate.Limiter
	unwritten atomic.Int64
}

// New returns a desk. users are those of the moment, now is the clock.
func New(log *zap.Logger, cfg Config, set func() *users.Set, store Store, now func() time.Time) (*Desk, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Desk{
		log: log, cfg: cfg, users: set, store: store, now: now, secret: make([]byte, 32),
		seen: newTable[Session](remembered), lockouts: newLockouts(cfg.Lockout),
		addrs:     newRates(rate.Every(attemptEvery), attemptBurst),
		names:     newRates(rate.Every(nameEvery), nameBurst),
		strangers: newRates(rate.Every(nameEvery), nameBurst),
		requests:  newRates(rate.Limit(cfg.Rate.PerSecond), cfg.Rate.Burst),
		told:      newRates(rate.Every(10*time.Second), 5), allTold: rate.NewLimiter(2, 50),
	}
	_, _ = rand.Read(d.secret)
	if cfg.Proxy != nil {
		var err error
		if d.proxy, err = cfg.Proxy.addresses(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Open says that nobody can sign in: there are no users, and none can come from
// elsewhere.
func (d *Desk) Open() bool {
	return d.users().Len() == 0 && d.cfg.OIDC == nil && d.cfg.Proxy == nil
}

// Identify returns who asks, by the first of: API token, proxy, session, name
// and password. A name with a password counts for reading alone. The error is
// [ErrNobody], [ErrUnknown], [ErrForged], users.ErrBusy, a *[WaitError], or the
// store's.
func (d *Desk) Identify(r *http.Request) (Who, error) {
	proxied, byProxy, err := d.byProxy(r)
	if err != nil {
		return Who{}, err
	}
	scheme, rest, given := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		user, ok := d.users().Authenticate(strings.TrimSpace(rest))
		if !ok {
			return Who{}, ErrUnknown
		}
		return Who{User: user, By: ByToken}, nil
	case byProxy:
		return proxied, nil
	}
	if id := d.cookie(r); id != "" {
		if who, ok, err := d.bySession(r.Context(), id, attended(r)); err != nil || ok {
			return who, err
		}
	}
	switch {
	case given && strings.EqualFold(scheme, "Basic") && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		name, password, ok := r.BasicAuth()
		if !ok {
			return Who{}, ErrUnknown
		}
		user, _, err := d.check(r, name, password)
		return Who{User: user, By: ByBasic}, err
	case scheme != "":
		return Who{}, ErrUnknown
	default:
		return Who{}, ErrNobody
	}
}

// byProxy returns whom the trusted proxy names.
func (d *Desk) byProxy(r *http.Request) (Who, bool, error) {
	if d.cfg.Proxy == nil || d.cfg.Proxy.Header == "" {
		return Who{}, false, nil
	}
	values := r.Header.Values(d.cfg.Proxy.Header)
	switch {
	case len(values) == 0:
		return Who{}, false, nil
	case !d.trusts(peer(r)):
		d.log.Warn("proxy header from an address that is not in console.proxy.allow", zap.String("remote", r.RemoteAddr), zap.String("path", r.URL.Path))
		return Who{}, false, ErrForged
	case len(values) > 1:
		return Who{}, false, fmt.Errorf("%w: %s stands there twice", ErrForged, d.cfg.Proxy.Header)
	case values[0] == "":
		return Who{}, false, nil // the proxy knows nobody
	}
	account, ok := d.users().Find(values[0])
	if !ok || account.Disabled || !account.External {
		d.log.Info("proxy names nobody who may come through it", zap.String("name", inert(values[0])))
		return Who{}, false, fmt.Errorf("%w: the proxy says %q, who is not an external user of the users file (`locksteward users add NAME --external`), or is disabled", ErrUnknown, inert(values[0]))
	}
	return Who{User: account.User, By: ByProxy, token: formToken(d.secret, "proxy\x00"+account.Name)}, true, nil
}

// SignIn checks a name with a password, or an API token in its place, and begins a
// session, whose cookie it sets. The error is [ErrUnknown], users.ErrBusy, a
// *[WaitError] or the store's.
func (d *Desk) SignIn(w http.ResponseWriter, r *http.Request, name, password string) (users.User, error) {
	now := d.now()
	known := d.isKnown(name)
	from := place(d.Client(r))
	if wait, ok := d.addrs.take(from, now); !ok {
		return users.User{}, &WaitError{After: wait}
	}
	if !d.lockouts.trusts(name, from) {
		by := d.strangers
		if known {
			by = d.names
		}
		if wait, ok := by.take(strings.ToLower(name), now); !ok {
			return users.User{}, &WaitError{After: wait}
		}
	}
	user, mark, err := d.check(r, name, password)
	if err != nil {
		return users.User{}, err
	}
	return user, d.welcome(w, r, Session{User: user.Name, Source: SourcePassword, Stamp: mark})
}

// SignInAs begins a session for whom an OIDC provider named, with the roles and
// teams that it gave. A name of the users file must be external there. The error
// wraps locksteward.ErrRefused, or is the store's.
func (d *Desk) SignInAs(w http.ResponseWriter, r *http.Request, name string, roles []users.Role, teams []string) (users.User, error) {
	s := Session{User: name, Source: SourceOIDC, Teams: teams}
	for _, role := range roles {
		s.Roles = append(s.Roles, string(role))
	}
	account, known := d.users().Find(name)
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
	user, ok := userOf(d.users(), s)
	if why == "" && !ok {
		why = "has no role here: an admin has to map one of their groups in console.oidc.roles, or add an external user"
	}
	if why != "" {
		d.failed(r, name, ActionFailed, SourceOIDC)
		return users.User{}, fmt.Errorf("%w: %s %s", locksteward.ErrRefused, inert(name), why)
	}
	return user, d.welcome(w, r, s)
}

// welcome begins the session of somebody who proved who they are.
func (d *Desk) welcome(w http.ResponseWriter, r *http.Request, s Session) error {
	id, err := d.begin(r.Context(), d.cookie(r), s, locksteward.Entry{
		At: d.now(), Actor: s.User, Action: ActionOK, Outcome: "ok", Detail: detail(map[string]any{"by": s.Source, "address": d.Client(r).String()}),
	})
	if err != nil {
		return err
	}
	d.setCookie(w, r, id)
	d.log.Info("signed in", zap.String("user", s.User), zap.String("by", s.Source), zap.Stringer("address", d.Client(r)))
	return nil
}

func (d *Desk) isKnown(name string) bool {
	_, known := d.users().Find(name)
	return known
}

// check is the one place where a password is compared.
func (d *Desk) check(r *http.Request, name, password string) (users.User, string, error) {
	known := d.isKnown(name)
	t, wait := d.lockouts.attempt(name, place(d.Client(r)), known, d.now())
	if t == nil {
		return users.User{}, "", &WaitError{After: wait, Locked: true}
	}
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	user, mark, err := d.users().AuthenticatePassword(ctx, name, password)
	switch {
	case err == nil:
		t.passed()
		return user, mark, nil
	case errors.Is(err, users.ErrBusy):
		t.undone()
		return users.User{}, "", err
	}
	d.failed(r, name, ActionFailed, SourcePassword)
	if t.locks {
		d.failed(r, name, ActionLocked, SourcePassword)
		d.log.Warn("name is locked out after failed sign-ins", zap.String("name", inert(name)), zap.Stringer("address", d.Client(r)), zap.Duration("for", d.cfg.Lockout.Time))
	}
	return users.User{}, "", ErrUnknown
}

// failed writes a failed sign-in into the audit trail, as long as there are not
// too many of them; then their number stands in the next that is written.
func (d *Desk) failed(r *http.Request, name, action, by string) {
	now := d.now()
	if action != ActionLocked {
		if _, ok := d.told.take(strings.ToLower(name), now); !ok || !d.allTold.AllowN(now, 1) {
			d.unwritten.Add(1)
			return
		}
	}
	what := map[string]any{"by": by, "address": d.Client(r).String()}
	if n := d.unwritten.Swap(0); n > 0 {
		what["others_not_written"] = n
	}
	if action == ActionLocked {
		what["for_ms"] = d.cfg.Lockout.Time.Milliseconds()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), checkTimeout)
	defer cancel()
	err := d.store.AppendEntries(ctx, locksteward.Entry{
		At: now, Actor: agentActor, Action: action, Subject: inert(name), Outcome: "refused", Detail: detail(what),
	})
	if err != nil {
		d.log.Error("failed sign-in is not in the audit trail", zap.String("name", inert(name)), zap.Error(err))
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
func (d *Desk) Allow(r *http.Request, who Who) error {
	key := "user\x00" + strings.ToLower(who.User.Name)
	if who.User.Name == "" {
		key = "place\x00" + place(d.Client(r))
	}
	if wait, ok := d.requests.take(key, d.now()); !ok {
		return &WaitError{After: wait}
	}
	return nil
}

// Arrival is who came back from a provider.
type Arrival struct {
	Name  string
	Roles []users.Role
	Teams []string
	Next  string // the page that they wanted
}
