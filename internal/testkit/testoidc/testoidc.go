// Package testoidc is an OpenID Connect provider for tests: discovery, keys, and a
// token endpoint with PKCE and codes that work once. It signs with a real key, and
// can be made to lie.
package testoidc

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is an OpenID Connect provider on loopback. Make one with [Start].
type Issuer struct {
	*httptest.Server
	mu sync.Mutex
	// challenges and nonces are by code, of those that were given away.
	challenges, nonces map[string]string
	key                *rsa.PrivateKey
	// Claims stand in tokens beside the usual ones, or in their place; Signer makes
	// tokens of them.
	Claims map[string]any
	Signer func(claims []byte) string
	// Document stands in the discovery document; Answer, if set, in its place. Asked
	// counts the requests for it.
	Document map[string]any
	Answer   http.HandlerFunc
	Asked    int
	// Home, if set, stands in place of scheme and host of the redirect URL where a
	// browser is sent back: the client may not have known its port.
	Home string
}

// Client and Secret are what this provider knows Locksteward by.
const Client, Secret = "locksteward", "the client's secret"

// Start starts a provider, until the test ends. Edits change its server before: with
// a TLS configuration it speaks TLS.
func Start(t testing.TB, edits ...func(*httptest.Server)) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{challenges: map[string]string{}, nonces: map[string]string{}, Claims: map[string]any{}, key: key, Signer: Sign(key, jose.RS256, "k1")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.Asked++
		if i.Answer != nil {
			i.Answer(w, r)
			return
		}
		doc := map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "none", "HS256"},
		}
		maps.Copy(doc, i.Document)
		reply(w, http.StatusOK, doc)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &i.key.PublicKey, KeyID: "k1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		to, err := url.Parse(r.URL.Query().Get("redirect_uri"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		address := i.URL + r.URL.RequestURI()
		back := i.Authorize(t, address)
		i.mu.Lock()
		defer i.mu.Unlock()
		// A page of its own, as where people type their password: from here on it is
		// the provider's site that leads the browser.
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>provider</title><main><a href="%s">Let me in</a></main>`, html.EscapeString(i.Home+to.Path+"?"+back.Encode()))
	})
	i.Server = httptest.NewUnstartedServer(mux)
	for _, edit := range edits {
		edit(i.Server)
	}
	if i.TLS != nil {
		i.StartTLS()
	} else {
		i.Server.Start()
	}
	t.Cleanup(i.Close)
	return i
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Sign returns a signer with a key.
func Sign(with any, alg jose.SignatureAlgorithm, id string) func([]byte) string {
	return func(claims []byte) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: with, KeyID: id}}, nil)
		if err != nil {
			panic(err)
		}
		signed, err := s.Sign(claims)
		if err != nil {
			panic(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			panic(err)
		}
		return text
	}
}

// Unsigned is a token with the algorithm "none".
func Unsigned(claims []byte) string {
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(`{"alg":"none"}`)) + "." + enc.EncodeToString(claims) + "."
}

// Authorize is what the browser does at the provider: it returns the way back.
func (i *Issuer) Authorize(t testing.TB, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, i.URL+"/authorize?") {
		t.Errorf("sent to %q, %v", address, err)
		return nil
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" || q.Get("client_id") != Client || q.Get("state") == "" || q.Get("nonce") == "" {
		t.Errorf("asked for %v", q)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := fmt.Sprintf("code%d", len(i.challenges))
	i.challenges[code], i.nonces[code] = q.Get("code_challenge"), q.Get("nonce")
	return url.Values{"code": {code}, "state": {q.Get("state")}}
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := r.PostFormValue("code")
	id, password, _ := r.BasicAuth()
	if id == "" {
		id, password = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if plain, err := url.QueryUnescape(password); err == nil {
		password = plain
	}
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	challenge, ok := i.challenges[code]
	delete(i.challenges, code) // once
	if !ok || id != Client || password != Secret || base64.RawURLEncoding.EncodeToString(sum[:]) != challenge {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "no such code: " + code})
		return
	}
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": Client, "sub": "4711", "exp": now.Add(time.Minute).Unix(), "iat": now.Unix(), "nonce": i.nonces[code],
		"email": "ana@example.org", "email_verified": true, "groups": []string{"lock-viewers", "lock-approvers", "others"}, "departments": []string{"checkout", "a b"},
	}
	maps.Copy(claims, i.Claims)
	raw, _ := json.Marshal(claims)
	reply(w, http.StatusOK, map[string]any{"access_token": "at-secret", "token_type": "Bearer", "id_token": i.Signer(raw), "expires_in": 60})
}

// Set changes the fields, while the provider may be asked.
func (i *Issuer) Set(fn func(i *Issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	fn(i)
}
