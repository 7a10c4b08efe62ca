package oidclogin

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/testkit/testoidc"
	"github.com/locksteward/locksteward/internal/users"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func provider(t *testing.T, i *testoidc.Issuer, edits ...func(*signin.OIDCConfig)) *Provider {
	t.Helper()
	file := t.TempDir() + "/secret"
	writeFile(t, file, testoidc.Secret+"\n")
	cfg := signin.OIDCConfig{
		Issuer: i.URL, ClientID: testoidc.Client, ClientSecretFile: file, RedirectURL: "http://127.0.0.1:10122" + signin.CallbackPath,
		Roles: map[string][]string{"lock-viewers": {"viewer"}, "lock-approvers": {"approver", "viewer"}}, TeamsClaim: "departments",
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	p, err := New(cfg, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// arrive goes all the way; edit changes what the browser brings back.
func arrive(t *testing.T, i *testoidc.Issuer, p *Provider, edit func(cookie *string, back url.Values)) (signin.ExternalIdentity, error) {
	t.Helper()
	address, cookie, err := p.Begin(t.Context(), "/locks?target=a")
	if err != nil {
		return signin.ExternalIdentity{}, err
	}
	back := i.Authorize(t, address)
	if edit != nil {
		edit(&cookie, back)
	}
	return p.Finish(t.Context(), cookie, back)
}

func TestArrive(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	p := provider(t, i)
	got, err := arrive(t, i, p, func(_ *string, back url.Values) { back.Set("iss", i.URL) })
	if err != nil || got.Name != "ana@example.org" || got.Next != "/locks?target=a" ||
		!slices.Equal(got.Roles, []users.Role{users.RoleViewer, users.RoleApprover}) || !slices.Equal(got.Teams, []string{"checkout"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := arrive(t, i, p, nil); err != nil || i.Asked != 1 {
		t.Errorf("the provider was asked for its addresses %d times, %v", i.Asked, err)
	}
	i.Set(func(i *testoidc.Issuer) {
		i.Claims["email_verified"], i.Claims["groups"], i.Claims["aud"], i.Claims["azp"] = "true", "lock-viewers", []string{testoidc.Client, "other"}, testoidc.Client
	})
	if got, err := arrive(t, i, p, nil); err != nil || !slices.Equal(got.Roles, []users.Role{users.RoleViewer}) {
		t.Errorf("claims as text, two audiences: %+v, %v", got, err)
	}
	i.Set(func(i *testoidc.Issuer) { i.Claims = map[string]any{"preferred_username": "ana", "groups": 7} })
	other := provider(t, i, func(c *signin.OIDCConfig) { c.NameClaim = "preferred_username" })
	if got, err := arrive(t, i, other, nil); err != nil || got.Name != "ana" || len(got.Roles) != 0 {
		t.Errorf("another name claim: %+v, %v", got, err)
	}
}

// Tokens that are not for this sign-in, or not the provider's, open nothing.
func TestTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	strange, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(i *testoidc.Issuer){
		"another nonce":        func(i *testoidc.Issuer) { i.Claims["nonce"] = "n" },
		"no nonce":             func(i *testoidc.Issuer) { i.Claims["nonce"] = "" },
		"another audience":     func(i *testoidc.Issuer) { i.Claims["aud"] = "other" },
		"another asked for it": func(i *testoidc.Issuer) { i.Claims["azp"] = "other" },
		"two audiences":        func(i *testoidc.Issuer) { i.Claims["aud"] = []string{testoidc.Client, "other"} },
		"another issuer":       func(i *testoidc.Issuer) { i.Claims["iss"] = "https://evil.example" },
		"expired":              func(i *testoidc.Issuer) { i.Claims["exp"] = time.Now().Add(-time.Minute).Unix() },
		"not yet":              func(i *testoidc.Issuer) { i.Claims["nbf"] = time.Now().Add(time.Hour).Unix() },
		"unsigned":             func(i *testoidc.Issuer) { i.Signer = testoidc.Unsigned },
		"signed by another":    func(i *testoidc.Issuer) { i.Signer = testoidc.Sign(strange, jose.RS256, "k1") },
		"by a key unknown":     func(i *testoidc.Issuer) { i.Signer = testoidc.Sign(strange, jose.RS256, "k2") },
		"symmetric":            func(i *testoidc.Issuer) { i.Signer = testoidc.Sign([]byte(strings.Repeat("k", 32)), jose.HS256, "k1") },
		"not verified":         func(i *testoidc.Issuer) { i.Claims["email_verified"] = false },
		"verified unsaid":      func(i *testoidc.Issuer) { i.Claims["email_verified"] = nil },
		"no name":              func(i *testoidc.Issuer) { i.Claims["email"] = "" },
		"a name that is none":  func(i *testoidc.Issuer) { i.Claims["email"] = []string{"ana@example.org"} },
		"no token":             func(i *testoidc.Issuer) { i.Signer = func([]byte) string { return "" } },
		"garbage":              func(i *testoidc.Issuer) { i.Signer = func([]byte) string { return "a.b.c" } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := testoidc.Start(t)
			i.Set(change)
			got, err := arrive(t, i, provider(t, i), nil)
			if !errors.Is(err, locksteward.ErrRefused) || got.Name != "" {
				t.Errorf("got %+v, %v", got, err)
			}
			quiet(t, err)
		})
	}
}

// quiet checks that no secret is in an error.
func quiet(t *testing.T, err error) {
	t.Helper()
	for _, s := range []string{testoidc.Secret, "at-secret", "code0"} {
		if err != nil && strings.Contains(err.Error(), s) {
			t.Errorf("the error shows %q: %v", s, err)
		}
	}
}

// The way back belongs to the browser, the sign-in and the ten minutes.
func TestWaysBackThatAreRefused(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	p := provider(t, i)
	_, foreign, err := p.Begin(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	_, elsewhere, _ := provider(t, i).Begin(t.Context(), "/")
	for name, c := range map[string]struct {
		edit func(cookie *string, back url.Values)
		want error
		say  string
	}{
		"no cookie":             {func(c *string, _ url.Values) { *c = "" }, locksteward.ErrInvalid, "not begun in this browser"},
		"a changed cookie":      {func(c *string, _ url.Values) { *c = "A" + (*c)[1:] + "A" }, locksteward.ErrInvalid, "not begun in this browser"},
		"cookie of another key": {func(c *string, _ url.Values) { *c = elsewhere }, locksteward.ErrInvalid, "not begun in this browser"},
		"another's cookie":      {func(c *string, _ url.Values) { *c = foreign }, locksteward.ErrInvalid, "another sign-in"},
		"another state":         {func(_ *string, b url.Values) { b.Set("state", "s") }, locksteward.ErrInvalid, "another sign-in"},
		"no state":              {func(_ *string, b url.Values) { b.Del("state") }, locksteward.ErrInvalid, "another sign-in"},
		"another issuer":        {func(_ *string, b url.Values) { b.Set("iss", "https://evil.example") }, locksteward.ErrInvalid, "another provider"},
		"no code":               {func(_ *string, b url.Values) { b.Del("code") }, locksteward.ErrInvalid, "no code"},
		"code unknown":          {func(_ *string, b url.Values) { b.Set("code", "x") }, locksteward.ErrInvalid, "does not know this code"},
		"refused there": {func(_ *string, b url.Values) {
			b.Set("error", "access_denied")
			b.Set("error_description", "no\x00<b>"+strings.Repeat("x", 900))
		}, locksteward.ErrRefused, "access_denied"},
	} {
		_, err := arrive(t, i, p, c.edit)
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.say) || strings.Contains(fmt.Sprint(err), "\x00") || len(fmt.Sprint(err)) > 500 {
			t.Errorf("%s: %v", name, err)
		}
		quiet(t, err)
	}
	// A code is used once, with the cookie that is still there.
	address, cookie, _ := p.Begin(t.Context(), "/")
	back := i.Authorize(t, address)
	if _, err := p.Finish(t.Context(), cookie, back); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Finish(t.Context(), cookie, back); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("the second time: %v", err)
	}
	address, cookie, _ = p.Begin(t.Context(), "/")
	back = i.Authorize(t, address)
	p.now = func() time.Time { return time.Now().Add(flowTimeout + time.Second) }
	if _, err := p.Finish(t.Context(), cookie, back); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("too late: %v", err)
	}
}

// An agent starts without the provider, says so, and finds it when it is back.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	p := provider(t, i)
	for name, change := range map[string]func(i *testoidc.Issuer){
		"error": func(i *testoidc.Issuer) {
			i.Answer = func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, strings.Repeat("<html>", 9999), http.StatusBadGateway)
			}
		},
		"elsewhere": func(i *testoidc.Issuer) {
			i.Answer = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }
		},
		"no document": func(i *testoidc.Issuer) {
			i.Answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
		},
		"endless": func(i *testoidc.Issuer) {
			i.Answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2*maxAnswer)) }
		},
		"another issuer":    func(i *testoidc.Issuer) { i.Document = map[string]any{"issuer": "https://evil.example"} },
		"tokens in clear":   func(i *testoidc.Issuer) { i.Document = map[string]any{"token_endpoint": "http://192.0.2.1/token"} },
		"keys in clear":     func(i *testoidc.Issuer) { i.Document = map[string]any{"jwks_uri": "http://192.0.2.1/keys"} },
		"people in clear":   func(i *testoidc.Issuer) { i.Document = map[string]any{"authorization_endpoint": "http://192.0.2.1/a"} },
		"a script's scheme": func(i *testoidc.Issuer) { i.Document = map[string]any{"authorization_endpoint": "javascript:alert(1)"} },
	} {
		i.Set(func(i *testoidc.Issuer) { i.Answer, i.Document = nil, nil; change(i) })
		_, _, err := p.Begin(t.Context(), "/")
		if err == nil || errors.Is(err, locksteward.ErrRefused) || errors.Is(err, locksteward.ErrInvalid) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	i.Set(func(i *testoidc.Issuer) { i.Answer, i.Document = nil, nil })
	if _, err := arrive(t, i, p, nil); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	gone := provider(t, i, func(c *signin.OIDCConfig) { c.Issuer = "http://127.0.0.1:1" })
	if _, _, err := gone.Begin(t.Context(), "/"); err == nil {
		t.Error("nobody listens there")
	}
}

func TestProviderWithTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	i := &testoidc.Issuer{Server: srv}
	p := provider(t, i)
	if _, _, err := p.Begin(t.Context(), "/"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody signed: %v", err)
	}
	file := t.TempDir() + "/ca.pem"
	writeFile(t, file, pemOf(srv.Certificate()))
	p = provider(t, i, func(c *signin.OIDCConfig) { c.CAFile = file })
	if _, _, err := p.Begin(t.Context(), "/"); err == nil || strings.Contains(err.Error(), "certificate") || !strings.Contains(err.Error(), "404") {
		t.Errorf("with its authority: %v", err)
	}
	writeFile(t, file, "no certificate")
	if _, err := New(signin.OIDCConfig{CAFile: file}, time.Now); err == nil || !strings.Contains(err.Error(), "oidc.ca_file") {
		t.Errorf("got %v", err)
	}
}
