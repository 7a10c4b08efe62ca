package console

import (
	"fmt"

	"github.com/locksteward/locksteward/internal/credfile"
)

// openTLS reads the certificate and the authorities of clients; nil is "no TLS".
func (c Config) openTLS() (*credfile.Set, error) {
	set, err := credfile.Open(
		credfile.Files{CA: c.TLSClientCAFile, Cert: c.TLSCertFile, Key: c.TLSKeyFile},
		credfile.Keys{CA: "tls_client_ca_file", Cert: "tls_cert_file", Key: "tls_key_file"})
	switch {
	case err != nil:
		return nil, err
	case set.Pair == nil && set.CA != nil:
		return nil, fmt.Errorf("tls_client_ca_file: %q needs TLS: write tls_cert_file and tls_key_file too", c.TLSClientCAFile)
	case set.Pair == nil:
		return nil, nil
	}
	return set, nil
}

// Files looks at the files of the certificate, of the clients' authorities and of the
// provider, and says how each stands, under its key in the configuration.
func (s *Server) Files() []credfile.File {
	files := s.tls.States(true)
	if s.provider != nil {
		files = append(files, s.provider.Files()...)
	}
	return files
}
