package signin

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/": "/", "/locks?target=a&key=%2F%2Fevil": "/locks?target=a&key=%2F%2Fevil", "/a//b": "/a//b",
		"": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\/evil.example": "/", "https://evil.example/": "/",
		"javascript:alert(1)": "/", "evil": "/", "/a\nb": "/", "/\t/evil.example": "/", "/a\x00": "/", "/sign-out": "/", "/sign-in?next=/": "/",
		"/" + strings.Repeat("x", 3000): "/",
		"/\n/evil.example":              "/", "\t//evil.example": "/", " //evil.example": "/", "/\\/evil.example": "/", "\\\\evil.example": "/", "/\x7f/evil.example": "/",
		"/locks\r\nSet-Cookie: a=b": "/", "http:evil.example": "/", "https:/evil.example": "/", "HTTPS://evil.example": "/", "data:text/html,x": "/",
		"@evil.example": "/", "?//evil.example": "/", "#//evil.example": "/", ".//evil.example": "/", "%2F%2Fevil.example": "/", "/sign-in/oidc": "/",
	} {
		if got := LocalPath(next); got != want {
			t.Errorf("%q: got %q, want %q", next, got, want)
		}
	}
}

func TestCookieWithTLS(t *testing.T) {
	t.Parallel()
	b := newFixture(t, func(c *Config) { c.Proxy = &ProxyConfig{Allow: []string{"10.0.0.5"}} })
	direct := get("192.0.2.1")
	direct.TLS = &tls.ConnectionState{}
	for name, c := range map[string]struct {
		r      *http.Request
		secure bool
	}{
		"tls":                   {direct, true},
		"tls at the proxy":      {get("10.0.0.5", "X-Forwarded-Proto: https"), true},
		"plain at the proxy":    {get("10.0.0.5", "X-Forwarded-Proto: http"), false},
		"said by somebody else": {get("192.0.2.1", "X-Forwarded-Proto: https"), false},
	} {
		w := httptest.NewRecorder()
		if _, err := b.desk.SignIn(w, c.r, "ann", password); err != nil {
			t.Fatal(err)
		}
		cookie := w.Result().Cookies()[0]
		if cookie.Secure != c.secure || strings.HasPrefix(cookie.Name, "__Host-") != c.secure || cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("%s: %+v", name, cookie)
		}
		// With TLS a cookie that anybody could have set counts for nothing.
		plain := get("10.0.0.5", "X-Forwarded-Proto: https")
		_, err := b.who(plain, &http.Cookie{Name: cookieName, Value: cookie.Value})
		if err == nil {
			t.Errorf("%s: the plain cookie is good with TLS", name)
		}
		w = httptest.NewRecorder()
		b.desk.ClearCookie(w, c.r)
		if gone := w.Result().Cookies()[0]; gone.Name != cookie.Name || gone.MaxAge >= 0 || gone.Value != "" || gone.Secure != c.secure {
			t.Errorf("%s: cleared by %+v", name, gone)
		}
	}
}

func TestClientBehindAProxy(t *testing.T) {
	t.Parallel()
	b := newFixture(t, func(c *Config) { c.Proxy = &ProxyConfig{Allow: []string{"10.0.0.0/8", "2001:db8::1"}} })
	for name, c := range map[string]struct {
		r    *http.Request
		want string
	}{
		"direct":              {get("192.0.2.1"), "192.0.2.1"},
		"direct, made up":     {get("192.0.2.1", "X-Forwarded-For: 198.51.100.7"), "192.0.2.1"},
		"one proxy":           {get("10.0.0.5", "X-Forwarded-For: 198.51.100.7"), "198.51.100.7"},
		"made up, and proxy":  {get("10.0.0.5", "X-Forwarded-For: 1.1.1.1, 198.51.100.7"), "198.51.100.7"},
		"two proxies":         {get("10.0.0.5", "X-Forwarded-For: 1.1.1.1, 198.51.100.7, 10.0.0.6"), "198.51.100.7"},
		"two headers":         {get("2001:db8::1", "X-Forwarded-For: 198.51.100.7", "X-Forwarded-For: 10.0.0.6"), "198.51.100.7"},
		"no address":          {get("10.0.0.5", "X-Forwarded-For: unknown"), "10.0.0.5"},
		"the proxy's own":     {get("10.0.0.5"), "10.0.0.5"},
		"through v6":          {get("10.0.0.5", "X-Forwarded-For: 2001:db8:9::7"), "2001:db8:9::7"},
		"with a zone, mapped": {get("::ffff:192.0.2.1"), "192.0.2.1"},
	} {
		if got := b.desk.Client(c.r).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestConfigProblemsAtOnce(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := Config{
		Session: SessionConfig{Idle: 1, MaxAge: 1}, Lockout: LockoutConfig{Failures: -1, Window: 1}, Rate: RateConfig{PerSecond: -1},
		Proxy: &ProxyConfig{Header: "Cookie", Allow: []string{"10.0.0.5/8", "everybody", "0.0.0.0/0", "10.0.0.5"}},
		OIDC: &OIDCConfig{
			Issuer: "http://id.example.org", RedirectURL: "https://x.example.org/other", ClientSecretFile: empty, CAFile: "/nowhere", Scopes: []string{"email"},
			Roles: map[string][]string{"ops": {"king"}, "none": nil},
		},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	paths := []string{
		"session.idle:", "session.max_age:", "lockout.failures:", "lockout.window:", "rate.per_second:",
		"proxy.header:", "proxy.allow[0]:", "proxy.allow[1]:", "proxy.allow[2]:", "oidc.issuer:", "oidc.client_id:", "oidc.redirect_url:",
		"oidc.client_secret_file:", "oidc.ca_file:", "oidc.scopes:", "oidc.roles.ops[0]:", "oidc.roles.none:",
	}
	for _, path := range paths {
		if !strings.Contains("\n"+err.Error(), "\n"+path) {
			t.Errorf("%s is missing in\n%v", path, err)
		}
	}
	if n := len(strings.Split(err.Error(), "\n")); n != len(paths) {
		t.Errorf("%d problems:\n%v", n, err)
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{Proxy: &ProxyConfig{}}).Validate(); err == nil || !strings.Contains(err.Error(), "proxy.allow: empty") {
		t.Errorf("got %v", err)
	}
}

// A running agent compares this to know what needs a restart.
func TestFixedTellsAnyDifference(t *testing.T) {
	t.Parallel()
	same := Config{}.Fixed()
	if DefaultConfig().Fixed() != same {
		t.Error("the defaults are a difference")
	}
	for what, edit := range map[string]func(*Config){
		"session": func(c *Config) { c.Session.Idle = 1 }, "lockout": func(c *Config) { c.Lockout.Window = 1 }, "rate": func(c *Config) { c.Rate.PerSecond = 1 },
		"proxy": func(c *Config) { c.Proxy = &ProxyConfig{} }, "oidc": func(c *Config) { c.OIDC = &OIDCConfig{} },
	} {
		var c Config
		edit(&c)
		if c.Fixed() == same {
			t.Errorf("%s is no difference", what)
		}
	}
	one, two := Config{OIDC: &OIDCConfig{Roles: map[string][]string{"a": {"viewer"}}}}, Config{OIDC: &OIDCConfig{Roles: map[string][]string{"a": {"admin"}}}}
	if one.Fixed() == two.Fixed() {
		t.Error("other roles are no difference")
	}
}
