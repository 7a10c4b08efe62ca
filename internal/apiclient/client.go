// Package apiclient is the command line's way to a running agent: the HTTP API
// of package console in Go. Errors are those of the agent and wrap the sentinels
// of package locksteward, so that a refusal is a refusal on both sides.
//
// A [Client] is safe for concurrent use. Every method ends with its context. The
// token is sent to the agent alone: no redirect is followed, and it does not
// leave the machine unencrypted.
package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

const (
	// timeout is longer than the agent gives a release to execute.
	timeout = 90 * time.Second
	// maxAnswer bounds what is read of an answer: far above the longest list.
	maxAnswer = 256 << 20
)

// Client talks to one agent.
type Client struct {
	base  *url.URL
	token locksteward.Secret
	http  *http.Client
}

// New returns a client for the agent at baseURL, such as http://127.0.0.1:10122.
// The token may be empty: an agent without users can be read. A nil client gets
// a timeout of 90 s. Errors wrap locksteward.ErrInvalid.
func New(baseURL string, token locksteward.Secret, client *http.Client) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("agent URL: %w: must be like http://127.0.0.1:10122", locksteward.ErrInvalid)
	}
	if u.User != nil {
		return nil, fmt.Errorf("agent URL: %w: has credentials in it: give the token in a file or as LOCKSTEWARD_TOKEN", locksteward.ErrInvalid)
	}
	if token != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("agent URL: %w: %s would send the token unencrypted: use https", locksteward.ErrInvalid, u.Scheme+"://"+u.Host)
	}
	if client == nil {
		client = &http.Client{Timeout: timeout}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}, token: token, http: &own}, nil
}

// NewHTTPClient returns a client for [New] that speaks TLS as conf says, through the proxy
// that the environment names, if any.
func NewHTTPClient(conf *tls.Config) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	return &http.Client{Timeout: timeout, Transport: transport}
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// get decodes the answer of a GET. If the agent says that there were too many, it
// waits as long as that says and asks again, for a while.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	for try := 1; ; try++ {
		var out T
		err := c.do(ctx, http.MethodGet, path, query, nil, &out)
		busy, ok := errors.AsType[*busyError](err)
		if !ok || try == maxTries {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, c.unreachable(ctx, ctx.Err())
		case <-time.After(min(max(busy.after, minWait), maxWait)):
		}
	}
}

// How often and for how long a GET waits for its turn.
const (
	maxTries = 10
	minWait  = 20 * time.Millisecond
	maxWait  = 5 * time.Second
)

// busyError is the problem of too many requests.
type busyError struct {
	*api.Problem
	after time.Duration
}

// Unwrap returns the problem, which knows its sentinel.
func (e *busyError) Unwrap() error { return e.Problem }

// post sends a body and decodes the answer.
func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	raw, err := json.Marshal(body)
	if err != nil {
		return out, fmt.Errorf("encode request: %w", err)
	}
	err = c.do(ctx, http.MethodPost, path, nil, raw, &out)
	return out, err
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	// path is escaped already: an id must not become two segments.
	target := c.base.String() + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask agent: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "locksteward")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("read answer of the agent at %s: %w", c.Where(), err)
	}
	if len(raw) > maxAnswer {
		return fmt.Errorf("read answer of the agent at %s: it is larger than %d bytes: narrow the filter", c.Where(), maxAnswer)
	}
	return c.decode(resp, raw, into)
}

func (c *Client) decode(resp *http.Response, raw []byte, into any) error {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case mediaType == api.ProblemType:
		var p api.Problem
		if err := json.Unmarshal(raw, &p); err == nil && p.Code != "" {
			if p.Code == api.CodeTooMany {
				seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
				return &busyError{&p, time.Duration(seconds) * time.Second}
			}
			return &p
		}
	case mediaType == "application/json" && resp.StatusCode >= 200 && resp.StatusCode < 300:
		if err := json.Unmarshal(raw, into); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer like a Locksteward agent (status %d): point to the console's address with --agent URL", c.Where(), resp.StatusCode)
}

// unreachable says what to do, without the query: it names keys.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("ask the agent at %s: %w", c.Where(), context.Cause(ctx))
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent at %s: %w: start one with `locksteward run`, or point to it with --agent URL", c.Where(), err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("ask the agent at %s: %w: use http:// in --agent URL", c.Where(), err)
	case isTLS(err):
		return fmt.Errorf("ask the agent at %s: %w", c.Where(), tlsAdvice(err))
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed):
		return fmt.Errorf("the agent at %s ended the connection without an answer: %w: what was asked for may have been done: look before you ask again%s", c.Where(), err, c.orCertificate())
	default:
		return fmt.Errorf("ask the agent at %s: %w: is it running? point to it with --agent URL%s", c.Where(), err, c.orCertificate())
	}
}

// orCertificate is more advice where TLS is spoken: with TLS 1.3 a client's certificate
// is refused behind the handshake, and the word about that may be lost to a request
// that is being written.
func (c *Client) orCertificate() string {
	if c.base.Scheme != "https" {
		return ""
	}
	return "; or it asks for a certificate that it trusts: give yours with --cert-file FILE and --key-file FILE"
}

// isTLS says that two did not agree on TLS.
func isTLS(err error) bool {
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return verify || alert || strings.Contains(err.Error(), "remote error: tls: ")
}

func tlsAdvice(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: name the authority of its certificate with --ca-file FILE", err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w: its certificate does not fit; look at --agent URL and --ca-file FILE", err)
	}
	return fmt.Errorf("%w: it asks for a certificate that it trusts: give yours with --cert-file FILE and --key-file FILE", err)
}

// Where is the address of the agent, without a password.
func (c *Client) Where() string { return c.base.Scheme + "://" + c.base.Host }
