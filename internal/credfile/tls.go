package credfile

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
)

// Files name what one side of TLS needs. Empty: the system's authorities, no
// certificate.
type Files struct {
	CA   string
	Cert string
	Key  string
}

// Keys are how the files are called where they are written down, for errors.
type Keys struct{ CA, Cert, Key string }

// Set is the opened [Files].
type Set struct {
	keys Keys
	CA   *Pool // nil: none is named
	Pair *Pair // nil: none is named
}

// Open reads all files and reports all problems at once, each with its key.
func Open(files Files, keys Keys) (*Set, error) {
	s := &Set{keys: keys}
	var errs []error
	var err error
	if files.CA != "" {
		if s.CA, err = OpenPool(files.CA); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", keys.CA, err))
		}
	}
	switch {
	case files.Cert != "" && files.Key != "":
		if s.Pair, err = OpenPair(files.Cert, files.Key); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", keys.Cert, err))
		}
	case files.Cert != "":
		errs = append(errs, fmt.Errorf("%s: is missing beside %s %q: %w", keys.Key, keys.Cert, files.Cert, ErrNotBoth))
	case files.Key != "":
		errs = append(errs, fmt.Errorf("%s: is missing beside %s %q: %w", keys.Cert, keys.Key, files.Key, ErrNotBoth))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// File is the state of one of the files of a set.
type File struct {
	// Key is how it is called where it is written down.
	Key string
	State
}

// States looks at all files, at once if force is set. A certificate and its key
// are one, under the certificate's key.
func (s *Set) States(force bool) []File {
	if s == nil {
		return nil
	}
	var out []File
	if s.CA != nil {
		out = append(out, File{s.keys.CA, s.CA.State(force)})
	}
	if s.Pair != nil {
		out = append(out, File{s.keys.Cert, s.Pair.State(force)})
	}
	return out
}

// Refused looks at once and joins why files are not in use.
func (s *Set) Refused() error {
	var errs []error
	for _, f := range s.States(true) {
		if f.Refused != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Key, f.Refused))
		}
	}
	return errors.Join(errs...)
}

// Client returns the configuration for handshakes with serverName: the authorities that
// are in use now, and the certificate that is in use at each handshake. min 0 is TLS 1.2.
func (s *Set) Client(serverName string, min uint16) *tls.Config {
	conf := &tls.Config{ServerName: serverName, MinVersion: cmp.Or(min, tls.VersionTLS12)}
	if s == nil {
		return conf
	}
	if s.CA != nil {
		conf.RootCAs = s.CA.Pool()
	}
	if s.Pair != nil {
		// Not in Certificates: a certificate that the server's list of authorities does
		// not fit would be left out in silence, and the server would say no more than
		// that one is missing.
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return s.Pair.Certificate(), nil
		}
	}
	return conf
}

// Server returns the configuration of a listener: the certificate of s, and with
// authorities in s the demand that clients show one that these signed. What is in
// use at each handshake counts.
func (s *Set) Server(protocols ...string) *tls.Config {
	conf := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.Pair.Certificate(), nil
		},
	}
	if s.CA == nil {
		return conf
	}
	// A session that is resumed would not be checked against other authorities.
	conf.SessionTicketsDisabled = true
	conf.ClientAuth = tls.RequireAndVerifyClientCert
	conf.ClientCAs = s.CA.Pool()
	conf.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := conf.Clone()
		now.GetConfigForClient = nil
		now.ClientCAs = s.CA.Pool()
		return now, nil
	}
	return conf
}

// ParseVersion reads the least version of TLS: "1.2", "1.3", or "" for the default.
func ParseVersion(text string) (uint16, error) {
	switch text {
	case "", "1.2":
		return tls.VersionTLS12, nil
	case "1.3":
		return tls.VersionTLS13, nil
	default:
		return 0, fmt.Errorf("got %q, write 1.2 or 1.3", text)
	}
}
