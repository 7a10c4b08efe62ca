package alert

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// maxResponse is how much of an answer is read.
	maxResponse = 64 << 10
)

// poster posts bodies to one URL: guarded, bounded, and following no redirect. It
// is safe for concurrent use.
type poster struct {
	url      *url.URL
	endpoint string // scheme and host
	timeout  time.Duration
	client   *http.Client
}

// openPoster makes a poster to the endpoint's URL. It takes what the files of the URL and of
// the certificate authorities hold, and reports all problems at once, each with its key.
func openPoster(e Endpoint, fs *files) (*poster, []error) {
	u, err := e.read(fs)
	if err != nil {
		_, tlsErr := e.tls(fs)
		return nil, []error{err, tlsErr}
	}
	p, err := newPoster(u, e, fs)
	return p, []error{err}
}

// newPoster makes a poster to one URL of the endpoint. It takes the certificate authorities of
// their file; its error begins with the key.
func newPoster(u *url.URL, e Endpoint, fs *files) (*poster, error) {
	config, err := e.tls(fs)
	if err != nil {
		return nil, err
	}
	return &poster{
		url: u, endpoint: schemeAndHost(u), timeout: e.Timeout,
		client: &http.Client{
			Transport: &http.Transport{
				// No Proxy: a proxy would resolve the name behind the guard.
				DialContext:            e.dialer().DialContext,
				TLSClientConfig:        config,
				TLSHandshakeTimeout:    e.Timeout,
				ForceAttemptHTTP2:      true,
				MaxIdleConns:           maxInFlight,
				MaxIdleConnsPerHost:    maxInFlight,
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: maxResponse,
			},
			// A redirect would take the notification to an endpoint that is not configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// dialer dials only what the guard permits.
func (e Endpoint) dialer() *net.Dialer {
	return &net.Dialer{Timeout: e.Timeout, Control: guard(e.AllowPrivate)}
}

func (e Endpoint) tls(fs *files) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12} // without a file the system's authorities
	if e.CAFile != "" {
		var err error
		if config.RootCAs, err = fs.pool("ca_file", e.CAFile); err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
	}
	return config, nil
}

// answer is the answer of an endpoint to a notification.
type answer struct {
	status int
	header http.Header
	// body is the first part of the body, as far as it arrived.
	body []byte
}

// post makes one attempt with a JSON body; header may be nil. The error is a
// *DeliveryError: no answer, or a status that is not 2xx; the answer is there in
// the second case.
func (p *poster) post(ctx context.Context, body []byte, header http.Header) (answer, error) {
	return p.postTo(ctx, p.url, body, header)
}

// postTo is post for a URL of the same endpoint, such as one with a signature in
// its query.
func (p *poster) postTo(ctx context.Context, to *url.URL, body []byte, header http.Header) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, attemptTimeout{p.timeout})
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, transportError(p.endpoint, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "locksteward")
	maps.Copy(req.Header, header)
	now := time.Now()
	resp, err := p.client.Do(req)
	if err != nil {
		return answer{}, transportError(p.endpoint, nameTimeout(ctx, err))
	}
	defer resp.Body.Close()
	// Reading a little lets the connection be used again. A body that is cut off does not
	// decode.
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	a := answer{status: resp.StatusCode, header: resp.Header, body: raw}
	if e := statusError(p.endpoint, resp, now); e != nil {
		e.Moved = p.redacted(e.Moved) // a host can hold what the path does
		return a, e
	}
	return a, nil
}

func (p *poster) close() { p.client.CloseIdleConnections() }
