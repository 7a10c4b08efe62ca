package signin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/users"
)

// Config says how people sign in, and for how long. It is part of `console:`.
type Config struct {
	Session SessionConfig `yaml:"session"`
	Lockout LockoutConfig `yaml:"lockout"`
	Rate    RateConfig    `yaml:"rate"`
	// Proxy, if set, is in front of the console and may say who asks.
	Proxy *ProxyConfig `yaml:"proxy"`
	// OIDC, if set, is a provider at which people sign in.
	OIDC *OIDCConfig `yaml:"oidc"`
}

// SessionConfig is how long a browser stays signed in.
type SessionConfig struct {
	Idle   time.Duration `yaml:"idle"`    // without a page loaded or a form sent; 0: [DefaultIdle]
	MaxAge time.Duration `yaml:"max_age"` // at most; 0: [DefaultMaxAge]
}

// LockoutConfig is what stops guessing: so many failures of one name from one
// address within Window lock that name out there for as long.
type LockoutConfig struct {
	Failures int           `yaml:"failures"` // 0: [DefaultFailures]
	Window   time.Duration `yaml:"window"`   // 0: [DefaultWindow]
}

// RateConfig is how many requests each user, or each address while there are no
// users, may make: twice as many at once as in a second.
type RateConfig struct {
	PerSecond int `yaml:"per_second"` // 0: [DefaultPerSecond]
}

// Defaults of what a configuration leaves out.
const (
	DefaultIdle      = time.Hour
	DefaultMaxAge    = 12 * time.Hour
	DefaultFailures  = 10
	DefaultWindow    = 15 * time.Minute
	DefaultPerSecond = 50
)

// ProxyConfig is a reverse proxy that is trusted.
type ProxyConfig struct {
	// Allow are the addresses of the proxy: 10.0.0.5 or 10.0.0.0/24.
	Allow []string `yaml:"allow"`
	// Header, if set, is where the proxy writes who asks: the name of a user of the
	// users file who is external there.
	Header string `yaml:"header"`
}

// OIDCConfig is an OpenID Connect provider.
type OIDCConfig struct {
	// Name is what the page calls it.
	Name   string `yaml:"name"`
	Issuer string `yaml:"issuer"`
	// CAFile has the authority of its certificate; "" is the system's.
	CAFile           string `yaml:"ca_file"`
	ClientID         string `yaml:"client_id"`
	ClientSecretFile string `yaml:"client_secret_file"`
	// RedirectURL is this console's [CallbackPath], as browsers reach it.
	RedirectURL string   `yaml:"redirect_url"`
	Scopes      []string `yaml:"scopes"` // none: [DefaultScopes]
	// NameClaim names the person; of "email" only a verified one counts.
	NameClaim string `yaml:"name_claim"` // "": email
	// GroupsClaim lists the groups that Roles maps to roles, TeamsClaim the teams.
	GroupsClaim string              `yaml:"groups_claim"` // "": groups
	TeamsClaim  string              `yaml:"teams_claim"`  // "": none
	Roles       map[string][]string `yaml:"roles"`
}

// CallbackPath is where an OIDC provider sends the browser back to.
const CallbackPath = "/sign-in/oidc/callback"

// DefaultScopes returns what a provider is asked for.
func DefaultScopes() []string { return []string{"openid", "email", "profile"} }

// DefaultConfig returns the configuration that needs no file.
func DefaultConfig() Config { return Config{}.WithDefaults() }

// WithDefaults fills in what is left out.
func (c Config) WithDefaults() Config {
	c.Session.Idle = cmp.Or(c.Session.Idle, DefaultIdle)
	c.Session.MaxAge = cmp.Or(c.Session.MaxAge, DefaultMaxAge)
	c.Lockout.Failures = cmp.Or(c.Lockout.Failures, DefaultFailures)
	c.Lockout.Window = cmp.Or(c.Lockout.Window, DefaultWindow)
	c.Rate.PerSecond = cmp.Or(c.Rate.PerSecond, DefaultPerSecond)
	if c.OIDC != nil {
		o := *c.OIDC
		o.Name, o.NameClaim, o.GroupsClaim = cmp.Or(o.Name, "single sign-on"), cmp.Or(o.NameClaim, "email"), cmp.Or(o.GroupsClaim, "groups")
		if len(o.Scopes) == 0 {
			o.Scopes = DefaultScopes()
		}
		c.OIDC = &o
	}
	return c
}

// Fixed is all of it as text, to compare it with another: a running agent keeps
// to it. It holds no secret.
func (c Config) Fixed() string {
	c = c.WithDefaults()
	text := fmt.Sprintf("%v %v %v", c.Session, c.Lockout, c.Rate)
	if c.Proxy != nil {
		text += fmt.Sprintf(" proxy %v", *c.Proxy)
	}
	if c.OIDC != nil {
		text += fmt.Sprintf(" oidc %v", *c.OIDC)
	}
	return text
}

// Validate reports all problems at once, each with its path.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	within := func(path string, got, low, high time.Duration) {
		if got < low || got > high {
			errs = append(errs, fmt.Errorf("%s: must be %s to %s, got %s", path, low, high, got))
		}
	}
	within("session.idle", c.Session.Idle, time.Minute, 24*time.Hour)
	within("session.max_age", c.Session.MaxAge, time.Minute, 30*24*time.Hour)
	if c.Session.MaxAge < c.Session.Idle {
		errs = append(errs, fmt.Errorf("session.max_age: must be at least session.idle (%s), got %s", c.Session.Idle, c.Session.MaxAge))
	}
	within("lockout.window", c.Lockout.Window, time.Minute, 24*time.Hour)
	number := func(path string, got, low, high int) {
		if got < low || got > high {
			errs = append(errs, fmt.Errorf("%s: must be %d to %d, got %d", path, low, high, got))
		}
	}
	number("lockout.failures", c.Lockout.Failures, 1, 1000)
	number("rate.per_second", c.Rate.PerSecond, 1, 100_000)
	if c.Proxy != nil {
		_, err := c.Proxy.addresses()
		errs = append(errs, err, c.Proxy.validate())
	}
	if c.OIDC != nil {
		errs = append(errs, c.OIDC.validate())
	}
	return errors.Join(errs...)
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// reservedHeaders mean something else already.
var reservedHeaders = []string{
	"Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Forwarded", "Host", "Origin", "Referer",
	"User-Agent", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
}

func (p *ProxyConfig) validate() error {
	if p.Header == "" {
		return nil
	}
	if !headerName.MatchString(p.Header) || slices.Contains(reservedHeaders, http.CanonicalHeaderKey(p.Header)) || strings.HasPrefix(http.CanonicalHeaderKey(p.Header), "Sec-") {
		return fmt.Errorf("proxy.header: must be a header of its own, such as X-Remote-User, got %q", p.Header)
	}
	return nil
}

// addresses reads Allow.
func (p *ProxyConfig) addresses() ([]netip.Prefix, error) {
	if len(p.Allow) == 0 {
		return nil, errors.New("proxy.allow: empty: list the addresses of the proxy, such as 10.0.0.5")
	}
	var out []netip.Prefix
	var errs []error
	for i, text := range p.Allow {
		prefix, err := netip.ParsePrefix(text)
		if addr, plain := netip.ParseAddr(text); plain == nil {
			prefix, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("proxy.allow[%d]: must be an address or a network, such as 10.0.0.5 or 10.0.0.0/24, got %q", i, text))
		case prefix.Bits() == 0:
			errs = append(errs, fmt.Errorf("proxy.allow[%d]: %q is everybody: list the addresses of the proxy alone", i, text))
		case prefix != prefix.Masked():
			errs = append(errs, fmt.Errorf("proxy.allow[%d]: %q has bits behind its mask: write %s", i, text, prefix.Masked()))
		default:
			out = append(out, prefix)
		}
	}
	return out, errors.Join(errs...)
}

func (o *OIDCConfig) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("oidc."+format, args...)) }
	if u, ok := safeURL(o.Issuer); !ok || u.RawQuery != "" || u.Fragment != "" {
		bad("issuer: must be an https:// URL (http:// on loopback alone) as the provider writes it, got %q", o.Issuer)
	}
	if o.ClientID == "" {
		bad("client_id: is missing: register Locksteward at the provider")
	}
	if u, ok := safeURL(o.RedirectURL); !ok || u.Path != CallbackPath || u.RawQuery != "" || u.Fragment != "" {
		bad("redirect_url: must be this console as browsers reach it with %s behind it, such as https://locks.example.org%s, got %q", CallbackPath, CallbackPath, o.RedirectURL)
	}
	if _, err := o.Secret(); err != nil {
		errs = append(errs, err)
	}
	if o.CAFile != "" {
		if _, err := os.ReadFile(o.CAFile); err != nil {
			bad("ca_file: %w", err)
		}
	}
	if !slices.Contains(o.Scopes, "openid") {
		bad("scopes: must have openid, got %q", o.Scopes)
	}
	for _, group := range slices.Sorted(maps.Keys(o.Roles)) {
		if len(o.Roles[group]) == 0 {
			bad("roles.%s: is empty: name at least one role", group)
		}
		for i, role := range o.Roles[group] {
			if _, err := users.ParseRole(role); err != nil {
				bad("roles.%s[%d]: %w", group, i, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Secret returns the client's secret, "" for a client without one.
func (o *OIDCConfig) Secret() (locksteward.Secret, error) {
	if o.ClientSecretFile == "" {
		return "", nil
	}
	raw, err := os.ReadFile(o.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("oidc.client_secret_file: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("oidc.client_secret_file: %q is empty: write the client's secret on its first line", o.ClientSecretFile)
	}
	return locksteward.Secret(line), nil
}

// safeURL says whether what is sent to a URL stays between us and its host.
func safeURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return nil, false
	}
	return u, SafeScheme(u)
}

// SafeScheme says whether a URL is https, or http on this machine.
func SafeScheme(u *url.URL) bool {
	if u.Scheme != "http" {
		return u.Scheme == "https"
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}
