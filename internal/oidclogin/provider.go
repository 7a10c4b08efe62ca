package oidclogin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/signin"
)

const (
	// askTimeout bounds each request to the provider.
	askTimeout = 10 * time.Second
	// maxAnswer bounds what it may answer.
	maxAnswer = 1 << 20
	// flowTimeout is how long a sign-in may take.
	flowTimeout = 10 * time.Minute
)

// Provider is an OpenID Connect provider.
type Provider struct {
	cfg    signin.OIDCConfig
	secret *credfile.Value[locksteward.Secret] // nil: the client has none
	ca     *credfile.Pool                      // nil: the system's
	client *http.Client
	now    func() time.Time
	seal   sealer
	// discovering lets one ask for the addresses at a time; found has them.
	discovering chan struct{}
	found       *oidc.Provider
}

// New returns a provider as it is configured, and asks nothing of it. now is the
// clock by which tokens expire.
func New(cfg signin.OIDCConfig, now func() time.Time) (*Provider, error) {
	cfg = *signin.Config{OIDC: &cfg}.WithDefaults().OIDC
	p := &Provider{cfg: cfg, now: now, discovering: make(chan struct{}, 1)}
	err := p.openFiles()
	if err != nil {
		return nil, err
	}
	if p.seal, err = newSealer(); err != nil {
		return nil, err
	}
	p.client = &http.Client{
		Timeout:       askTimeout,
		Transport:     limitedTransport{reloadingTransport{p.ca}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

// limitedTransport cuts answers off that are too long.
type limitedTransport struct{ next http.RoundTripper }

func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Name is what people call it.
func (p *Provider) Name() string { return p.cfg.Name }

// authFlow is the state of a sign-in under way, sealed in the browser's cookie.
type authFlow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Until    time.Time `json:"until"`
}

// Begin starts a sign-in. It returns the provider's address for the browser, and the
// cookie that the browser must send back. An error means that the provider is unreachable.
func (p *Provider) Begin(ctx context.Context, next string) (address, cookie string, err error) {
	config, _, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	j := authFlow{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), Next: next, Until: p.now().Add(flowTimeout)}
	if cookie, err = p.seal.seal(j); err != nil {
		return "", "", err
	}
	return config.AuthCodeURL(j.State, oidc.Nonce(j.Nonce), oauth2.S256ChallengeOption(j.Verifier)), cookie, nil
}

// Finish completes a sign-in and returns the person. Errors wrap locksteward.ErrRefused
// if the provider or the configuration refuses the person, and locksteward.ErrInvalid if
// the sign-in has to start again; others mean that the provider is unreachable.
func (p *Provider) Finish(ctx context.Context, cookie string, query url.Values) (signin.ExternalIdentity, error) {
	var j authFlow
	if err := p.seal.open(cookie, &j); err != nil || p.now().After(j.Until) {
		return signin.ExternalIdentity{}, retryError("this sign-in was not begun in this browser, or too long ago")
	}
	if subtle.ConstantTimeCompare([]byte(j.State), []byte(query.Get("state"))) != 1 {
		return signin.ExternalIdentity{}, retryError("this is the way back of another sign-in")
	}
	// RFC 9207: whose answer it is, for providers that say so.
	if iss := query.Get("iss"); iss != "" && iss != p.cfg.Issuer {
		return signin.ExternalIdentity{}, retryError("this is the answer of another provider")
	}
	if code := query.Get("error"); code != "" {
		return signin.ExternalIdentity{}, fmt.Errorf("%w: %s says %s", locksteward.ErrRefused, p.cfg.Name, clip(code, query.Get("error_description")))
	}
	if query.Get("code") == "" {
		return signin.ExternalIdentity{}, retryError("the provider sent no code")
	}
	config, found, err := p.discover(ctx)
	if err != nil {
		return signin.ExternalIdentity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(j.Verifier))
	if err != nil {
		return signin.ExternalIdentity{}, exchangeError(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return signin.ExternalIdentity{}, errors.New("the provider's token endpoint sent no id_token: is openid among the scopes of this client?")
	}
	verified, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return signin.ExternalIdentity{}, fmt.Errorf("%w: the provider's ID token is not accepted: %w", locksteward.ErrRefused, clipError(err))
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(j.Nonce)) != 1 {
		return signin.ExternalIdentity{}, fmt.Errorf("%w: the provider's ID token belongs to another sign-in", locksteward.ErrRefused)
	}
	arrived, err := p.identityFrom(verified)
	arrived.Next = j.Next
	return arrived, err
}

func retryError(why string) error {
	return fmt.Errorf("%w: %s: sign in again", locksteward.ErrInvalid, why)
}

// exchangeError says what the token endpoint said, without what else it sent.
func exchangeError(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return fmt.Errorf("ask token endpoint: %w", clipError(err))
	}
	switch answer.ErrorCode {
	case "invalid_grant":
		return retryError("the provider does not know this code, or it was used")
	case "":
		return fmt.Errorf("ask token endpoint: it answers %d", answer.Response.StatusCode)
	default:
		return fmt.Errorf("ask token endpoint: it answers %d, %s", answer.Response.StatusCode, clip(answer.ErrorCode, answer.ErrorDescription))
	}
}

// discover returns the provider's addresses, which are asked for once.
func (p *Provider) discover(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	select {
	case p.discovering <- struct{}{}:
		defer func() { <-p.discovering }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if p.found == nil {
		found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.cfg.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("ask %s for its addresses: %w", p.cfg.Issuer, clipError(err))
		}
		if err := addresses(found); err != nil {
			return nil, nil, err
		}
		p.found = found
	}
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.clientSecret().Reveal(), Endpoint: p.found.Endpoint(), RedirectURL: p.cfg.RedirectURL, Scopes: p.cfg.Scopes,
	}, p.found, nil
}

// addresses refuses a provider that wants to be spoken to in clear.
func addresses(found *oidc.Provider) error {
	var keys struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := found.Claims(&keys); err != nil {
		return fmt.Errorf("read the provider's addresses: %w", err)
	}
	for name, address := range map[string]string{
		"authorization_endpoint": found.Endpoint().AuthURL, "token_endpoint": found.Endpoint().TokenURL, "jwks_uri": keys.JWKS,
	} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || !signin.SafeScheme(u) {
			return fmt.Errorf("the provider's %s is %q, which is not https", name, clip(address))
		}
	}
	return nil
}

// identityFrom takes a person out of a token that was verified.
func (p *Provider) identityFrom(token *oidc.IDToken) (signin.ExternalIdentity, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return signin.ExternalIdentity{}, fmt.Errorf("%w: the provider's ID token cannot be read: %w", locksteward.ErrRefused, err)
	}
	// A token for several clients says which of them asked for it.
	if azp, _ := claims["azp"].(string); azp != "" && azp != p.cfg.ClientID || azp == "" && len(token.Audience) > 1 {
		return signin.ExternalIdentity{}, fmt.Errorf("%w: the provider's ID token was made for another client", locksteward.ErrRefused)
	}
	name, _ := claims[p.cfg.NameClaim].(string)
	switch {
	case name == "":
		return signin.ExternalIdentity{}, fmt.Errorf("%w: the provider's ID token has no claim %q to name you by: an admin has to add it at the provider, or to change console.oidc.name_claim", locksteward.ErrRefused, p.cfg.NameClaim)
	case p.cfg.NameClaim == "email" && !isTrue(claims["email_verified"]):
		return signin.ExternalIdentity{}, fmt.Errorf("%w: the provider has not verified the address %s", locksteward.ErrRefused, clip(name))
	}
	out := signin.ExternalIdentity{Name: name}
	for _, group := range stringsOf(claims[p.cfg.GroupsClaim]) {
		for _, role := range rolesOf(p.cfg.Roles[group]) {
			if !slices.Contains(out.Roles, role) {
				out.Roles = append(out.Roles, role)
			}
		}
	}
	if p.cfg.TeamsClaim != "" {
		out.Teams = teamsOf(stringsOf(claims[p.cfg.TeamsClaim]))
	}
	return out, nil
}
