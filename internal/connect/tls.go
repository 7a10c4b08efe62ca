package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// tlsConfig returns the TLS settings, nil without TLS. The server's name is
// checked against the address that is dialed.
func (c Config) tlsConfig(on bool) (*tls.Config, error) {
	var errs []error
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("ca_file: %w", err))
		} else {
			conf.RootCAs = x509.NewCertPool()
			if !conf.RootCAs.AppendCertsFromPEM(pem) {
				errs = append(errs, fmt.Errorf("ca_file: no PEM certificate in %q", c.CAFile))
			}
		}
	}
	switch {
	case c.CertFile != "" && c.KeyFile != "":
		if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
			errs = append(errs, fmt.Errorf("cert_file: load %q with key_file: %w", c.CertFile, err))
		}
		// Read anew for each handshake: a rotated certificate counts for the next
		// connection without a restart.
		cert, key := c.CertFile, c.KeyFile
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				return nil, fmt.Errorf("load client certificate: %w", err)
			}
			return &pair, nil
		}
	case c.CertFile != "":
		errs = append(errs, errors.New("key_file: missing; cert_file needs it"))
	case c.KeyFile != "":
		errs = append(errs, errors.New("cert_file: missing; key_file needs it"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if !on {
		return nil, nil
	}
	return conf, nil
}

// handshakeError is a TLS handshake that failed, which [Explain] tells apart
// from a server that does not answer at all.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "tls handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// handshake speaks TLS over raw, and closes it when that fails.
func (c *Conn) handshake(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	conf := c.tls.Clone()
	host, _, err := net.SplitHostPort(addr)
	if err == nil {
		conf.ServerName = host
		cn := tls.Client(raw, conf)
		if err = cn.HandshakeContext(ctx); err == nil {
			return cn, nil
		}
	}
	return nil, &handshakeError{err: errors.Join(err, raw.Close())}
}
