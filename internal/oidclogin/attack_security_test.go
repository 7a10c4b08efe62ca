package oidclogin

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/locksteward/locksteward/internal/testkit/testoidc"
)

// publicKey is the key that anybody may fetch from the provider.
func publicKey(t *testing.T, i *testoidc.Issuer) *rsa.PublicKey {
	t.Helper()
	resp, err := i.Client().Get(i.URL + "/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		t.Fatal(err)
	}
	return set.Keys[0].Key.(*rsa.PublicKey)
}

// keysAt is a key server with other keys than the provider's, or with too much.
func keysAt(t *testing.T, answer func(w io.Writer)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// by is a token with a header of the attacker's choice.
func by(header string, sign func(input string) []byte) func([]byte) string {
	enc := base64.RawURLEncoding
	return func(claims []byte) string {
		input := enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString(claims)
		return input + "." + enc.EncodeToString(sign(input))
	}
}

// TestForgedTokens: anyone who sits between an agent and its provider, or made a client
// of it, and knows the provider's public key, signs in as nobody.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(string) []byte { return nil }
	// confused signs by HMAC with what the provider publishes.
	confused := func(key func(*rsa.PublicKey) []byte, alg jose.SignatureAlgorithm) func(*testing.T, *testoidc.Issuer) {
		return func(t *testing.T, i *testoidc.Issuer) {
			signer := testoidc.Sign(key(publicKey(t, i)), alg, "k1")
			i.Set(func(i *testoidc.Issuer) { i.Signer = signer })
		}
	}
	spki := func(k *rsa.PublicKey) []byte { raw, _ := x509.MarshalPKIXPublicKey(k); return raw }
	signer := func(sign func([]byte) string) func(*testing.T, *testoidc.Issuer) {
		return func(_ *testing.T, i *testoidc.Issuer) { i.Set(func(i *testoidc.Issuer) { i.Signer = sign }) }
	}
	claim := func(name string, value any) func(*testing.T, *testoidc.Issuer) {
		return func(_ *testing.T, i *testoidc.Issuer) { i.Set(func(i *testoidc.Issuer) { i.Claims[name] = value }) }
	}
	keys := func(at string, sign func([]byte) string) func(*testing.T, *testoidc.Issuer) {
		return func(_ *testing.T, i *testoidc.Issuer) {
			i.Set(func(i *testoidc.Issuer) {
				i.Document = map[string]any{"jwks_uri": at}
				if sign != nil {
					i.Signer = sign
				}
			})
		}
	}
	for name, attack := range map[string]func(*testing.T, *testoidc.Issuer){
		"HS256 with the public key in DER": confused(spki, jose.HS256),
		"HS256 with the public key in PEM": confused(func(k *rsa.PublicKey) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki(k)})
		}, jose.HS256),
		"HS512 with the public key in PEM": confused(func(k *rsa.PublicKey) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki(k)})
		}, jose.HS512),
		"HS256 with PKCS #1":               confused(x509.MarshalPKCS1PublicKey, jose.HS256),
		"HS256 with the modulus":           confused(func(k *rsa.PublicKey) []byte { return k.N.Bytes() }, jose.HS256),
		"HS256 with the client's secret":   signer(testoidc.Sign([]byte(strings.Repeat(testoidc.Secret, 2)), jose.HS256, "k1")),
		"alg none":                         signer(by(`{"alg":"none","kid":"k1"}`, nothing)),
		"alg None":                         signer(by(`{"alg":"None","kid":"k1"}`, nothing)),
		"alg nOnE":                         signer(by(`{"alg":"nOnE"}`, nothing)),
		"no alg":                           signer(by(`{"kid":"k1"}`, nothing)),
		"RS256 with an empty signature":    signer(by(`{"alg":"RS256","kid":"k1"}`, nothing)),
		"RS256 with a signature of zeros":  signer(by(`{"alg":"RS256","kid":"k1"}`, func(string) []byte { return make([]byte, 256) })),
		"RS256 with a signature of ones":   signer(by(`{"alg":"RS256","kid":"k1"}`, func(string) []byte { return big.NewInt(1).FillBytes(make([]byte, 256)) })),
		"alg twice":                        signer(by(`{"alg":"none","alg":"RS256","kid":"k1"}`, nothing)),
		"a critical header":                signer(by(`{"alg":"RS256","kid":"k1","crit":["b64"],"b64":false}`, nothing)),
		"ES256":                            signer(by(`{"alg":"ES256","kid":"k1"}`, func(string) []byte { return make([]byte, 64) })),
		"PS256 by another key":             signer(testoidc.Sign(own, jose.PS256, "k1")),
		"a key in the header":              signer(embedded(t, own)),
		"a key address in the header":      signer(by(`{"alg":"RS256","kid":"k1","jku":"`+keysAt(t, func(w io.Writer) { t.Error("the address of the header was asked"); _, _ = io.WriteString(w, `{}`) })+`"}`, nothing)),
		"an encrypted token":               signer(func([]byte) string { return "e30.e30.e30.e30.e30" }),
		"no signature part":                signer(func(c []byte) string { return "e30." + base64.RawURLEncoding.EncodeToString(c) }),
		"a token of 2 MiB":                 claim("padding", strings.Repeat("x", 2<<20)),
		"the issuer's name with a slash":   claim("iss", "ISSUER/"),
		"an issuer that is no text":        claim("iss", []string{"a"}),
		"no issuer":                        claim("iss", nil),
		"no audience":                      claim("aud", nil),
		"an empty audience":                claim("aud", []string{}),
		"an audience that begins the same": claim("aud", testoidc.Client+"2"),
		"an audience in other letters":     claim("aud", strings.ToUpper(testoidc.Client)),
		"an audience that is an object":    claim("aud", map[string]string{testoidc.Client: testoidc.Client}),
		"audiences, asked by the other": func(_ *testing.T, i *testoidc.Issuer) {
			i.Set(func(i *testoidc.Issuer) {
				i.Claims["aud"], i.Claims["azp"] = []string{"other", testoidc.Client}, "other"
			})
		},
		"no expiry":                  claim("exp", nil),
		"an expiry that is text":     claim("exp", "never"),
		"an expiry that is negative": claim("exp", -1),
		"expired a second ago":       claim("exp", time.Now().Add(-time.Second).Unix()),
		"a nonce that is no text":    claim("nonce", []string{"n"}),
		"a nonce that is missing":    claim("nonce", nil),
		"a name that is a number":    claim("email", 7),
		"a name that is an object":   claim("email", map[string]string{"email": "ana@example.org"}),
		"a name that is true":        claim("email", true),
		"verified that is a number":  claim("email_verified", 1),
		"verified that is a list":    claim("email_verified", []bool{true}),
		"a symmetric key at the key address": keys(keysAt(t, func(w io.Writer) {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte(strings.Repeat("k", 32)), KeyID: "k1"}}})
		}), testoidc.Sign([]byte(strings.Repeat("k", 32)), jose.HS256, "k1")),
		"no keys":               keys(keysAt(t, func(w io.Writer) { _, _ = io.WriteString(w, `{"keys":[]}`) }), nil),
		"endless keys":          keys(keysAt(t, func(w io.Writer) { _, _ = io.WriteString(w, `{"keys":[`); endless(w) }), nil),
		"keys that are no JSON": keys(keysAt(t, func(w io.Writer) { _, _ = io.WriteString(w, `<html>`) }), nil),
		"a deep nest of keys":   keys(keysAt(t, func(w io.Writer) { _, _ = io.WriteString(w, strings.Repeat("[", 1<<19)) }), nil),
		"keys that are huge numbers": keys(keysAt(t, func(w io.Writer) {
			_, _ = io.WriteString(w, `{"keys":[{"kty":"RSA","kid":"k1","e":"AQAB","n":"`+strings.Repeat("_", 900_000)+`"}]}`)
		}), nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := testoidc.Start(t)
			attack(t, i)
			if iss, ok := i.Claims["iss"].(string); ok {
				i.Set(func(i *testoidc.Issuer) { i.Claims["iss"] = strings.Replace(iss, "ISSUER", i.URL, 1) })
			}
			got, err := arrive(t, i, provider(t, i), nil)
			if err == nil || got.Name != "" || len(got.Roles)+len(got.Teams) != 0 {
				t.Errorf("let in as %+v, %v", got, err)
			}
			quiet(t, err)
			if err != nil && (len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\x1b")) {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// endless writes more than an agent reads of an answer.
func endless(w io.Writer) {
	block := []byte(strings.Repeat(`{"kty":"oct","k":"AAAA"},`, 4096))
	for range 40 {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// embedded signs with a key that the token brings itself.
func embedded(t *testing.T, key *rsa.PrivateKey) func([]byte) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	return func(claims []byte) string {
		signed, err := s.Sign(claims)
		if err != nil {
			t.Error(err)
			return ""
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Error(err)
		}
		return text
	}
}

// Groups and teams that are no texts give no role and no team, and the person who
// brings them is let in with none.
func TestGroupsThatAreNoTexts(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"number": 7, "true": true, "object": map[string]string{"lock-approvers": "lock-approvers"}, "null": nil,
		"list of lists": [][]string{{"lock-approvers"}}, "list of objects": []any{map[string]string{"name": "lock-approvers"}},
		"one text with several": "lock-approvers,lock-viewers", "spaces": " lock-approvers ", "other letters": "LOCK-APPROVERS",
		"with a NUL": "lock-approvers\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := testoidc.Start(t)
			i.Set(func(i *testoidc.Issuer) { i.Claims["groups"], i.Claims["departments"] = value, []any{7, "a b", "x\n"} })
			got, err := arrive(t, i, provider(t, i), nil)
			if err != nil || len(got.Roles)+len(got.Teams) != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// A token of one sign-in opens no other, though the same provider made both for the
// same client: neither by its nonce nor by its code, whose verifier is another's.
func TestTokensOfAnotherSignIn(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	p := provider(t, i)
	begin := func() (cookie string, back url.Values) {
		t.Helper()
		address, cookie, err := p.Begin(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		return cookie, i.Authorize(t, address)
	}
	_, hers := begin()
	his, back := begin()
	back.Set("code", hers.Get("code"))
	if got, err := p.Finish(t.Context(), his, back); err == nil {
		t.Errorf("another's code lets in as %+v", got)
	}
	// Her token, replayed by a token endpoint that the attacker leads him to.
	var first string
	plain := i.Signer
	i.Set(func(i *testoidc.Issuer) {
		i.Signer = func(claims []byte) string {
			if first == "" {
				first = plain(claims)
			}
			return first
		}
	})
	if _, err := arrive(t, i, p, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := arrive(t, i, p, nil); err == nil {
		t.Errorf("her token lets him in as %+v", got)
	}
}
