package oidclogin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
)

// openFiles opens the files of the secret and of the authorities, and reports the
// problems of both. They are read again when they change.
func (p *Provider) openFiles() error {
	var errs []error
	var err error
	if file := p.cfg.ClientSecretFile; file != "" {
		p.secret, err = credfile.OpenValue(file, func(text []byte) (locksteward.Secret, error) {
			line, _, _ := strings.Cut(string(text), "\n")
			if line = strings.TrimSpace(line); line == "" {
				return "", fmt.Errorf("the first line of %q is empty: write the client's secret there", file)
			}
			return locksteward.Secret(line), nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("oidc.client_secret_file: %w", err))
		}
	}
	if p.cfg.CAFile != "" {
		if p.ca, err = credfile.OpenPool(p.cfg.CAFile); err != nil {
			errs = append(errs, fmt.Errorf("oidc.ca_file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// clientSecret is what the file has now, "" for a client without one.
func (p *Provider) clientSecret() locksteward.Secret {
	if p.secret == nil {
		return ""
	}
	return p.secret.Get()
}

// Files looks at the files and says how each stands, under its key in the
// configuration of the console.
func (p *Provider) Files() []credfile.File {
	var out []credfile.File
	if p.secret != nil {
		out = append(out, credfile.File{Key: "oidc.client_secret_file", State: p.secret.State(true)})
	}
	if p.ca != nil {
		out = append(out, credfile.File{Key: "oidc.ca_file", State: p.ca.State(true)})
	}
	return out
}

// reloadingTransport makes each request over a connection of its own, with the authorities of
// the moment; nil: the system's.
type reloadingTransport struct{ ca *credfile.Pool }

// RoundTrip makes one request.
func (f reloadingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != nil {
		config.RootCAs = f.ca.Pool()
	}
	once := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	return once.RoundTrip(r)
}
