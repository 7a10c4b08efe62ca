package console

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// certificate is a certificate with its key; nil is "no TLS".
type certificate = tls.Certificate

func loadCertificate(certFile, keyFile string) (*certificate, error) {
	switch {
	case certFile == "" && keyFile == "":
		return nil, nil
	case certFile == "":
		return nil, fmt.Errorf("tls_cert_file: is missing beside tls_key_file %q: write both or none", keyFile)
	case keyFile == "":
		return nil, fmt.Errorf("tls_key_file: is missing beside tls_cert_file %q: write both or none", certFile)
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls_cert_file: load %q with %q: %w", certFile, keyFile, err)
	}
	return &cert, nil
}

// tlsConfig serves whatever certificate is current at each handshake, so that a
// renewed one needs no restart.
func tlsConfig(current *atomic.Pointer[certificate]) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return current.Load(), nil
		},
	}
}
