package alert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

const (
	maxResponse = 64 << 10
	maxFile     = 1 << 20
)

// webhook delivers to one endpoint.
type webhook struct {
	url      *url.URL
	endpoint string // scheme and host
	secrets  [][]byte
	timeout  time.Duration
	client   *http.Client
}

// newWebhook reads the files that the configuration names and reports all
// problems at once, each with its path below the webhook.
func newWebhook(cfg Webhook) (*webhook, error) {
	var errs []error
	secret := cfg.URL
	path := "url"
	if cfg.URLFile != "" {
		path = "url_file"
		text, err := readFile(cfg.URLFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("url_file: %w", err))
		}
		secret = locksteward.Secret(strings.TrimSpace(string(text)))
	}
	var u *url.URL
	if len(errs) == 0 {
		var err error
		if u, err = parseURL(secret, cfg.AllowPrivate); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	var secrets [][]byte
	for i, f := range cfg.SecretFiles {
		text, err := readFile(f)
		if err == nil {
			var key []byte
			key, err = parseSecret(string(text))
			secrets = append(secrets, key)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("secret_files[%d]: %q: %w", i, f, err))
		}
	}
	roots, err := rootCAs(cfg.CAFile)
	if err != nil {
		errs = append(errs, fmt.Errorf("ca_file: %w", err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	dialer := &net.Dialer{Timeout: cfg.Timeout, Control: guard(cfg.AllowPrivate)}
	return &webhook{
		url: u, endpoint: shown(u), secrets: secrets, timeout: cfg.Timeout,
		client: &http.Client{
			Transport: &http.Transport{
				// No Proxy: a proxy would resolve the name behind the guard.
				DialContext:            dialer.DialContext,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
				TLSHandshakeTimeout:    cfg.Timeout,
				ForceAttemptHTTP2:      true,
				MaxIdleConns:           inFlight,
				MaxIdleConnsPerHost:    inFlight,
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: maxResponse,
			},
			// A redirect would carry the message to a place nobody configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// send makes one attempt. The error is a *DeliveryError.
func (w *webhook) send(ctx context.Context, id string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return transportError(w.endpoint, err)
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "locksteward")
	req.Header.Set(HeaderID, id)
	req.Header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	if len(w.secrets) > 0 {
		req.Header.Set(HeaderSignature, signature(w.secrets, id, now, body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return transportError(w.endpoint, err)
	}
	defer resp.Body.Close()
	// Reading a little lets the connection be used again. The answer is judged
	// by its status alone, so that a fault here changes nothing.
	_, _ = io.CopyN(io.Discard, resp.Body, maxResponse)
	if e := statusError(w.endpoint, resp, now); e != nil {
		return e
	}
	return nil
}

func (w *webhook) close() { w.client.CloseIdleConnections() }

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("%q is empty", path)
	}
	return raw, nil
}

// rootCAs adds a PEM file to the system's authorities; nil is the system's.
func rootCAs(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := readFile(path)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%q holds no PEM certificate", path)
	}
	return pool, nil
}
