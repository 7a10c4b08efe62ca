package credfile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Pair is a certificate with its key.
type Pair struct{ f file[*tls.Certificate] }

// OpenPair reads a certificate, with its chain, and its key from PEM files. A
// certificate that is out of its time is taken: there is no better one.
func OpenPair(certFile, keyFile string) (*Pair, error) {
	p := &Pair{f: file[*tls.Certificate]{
		paths: []string{certFile, keyFile},
		read: func(raw [][]byte) (*tls.Certificate, error) {
			if len(raw[0]) == 0 || len(raw[1]) == 0 {
				return nil, fmt.Errorf("load %q with %q: empty", certFile, keyFile)
			}
			cert, err := tls.X509KeyPair(raw[0], raw[1])
			if err != nil {
				return nil, fmt.Errorf("load %q with %q: %w", certFile, keyFile, err)
			}
			if cert.Leaf == nil { // GODEBUG x509keypairleaf=0
				if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
					return nil, fmt.Errorf("load %q: %w", certFile, err)
				}
			}
			return &cert, nil
		},
		worse: func(old, fresh *tls.Certificate, now time.Time) error {
			if inTime(old.Leaf, now) == nil {
				if err := inTime(fresh.Leaf, now); err != nil {
					return fmt.Errorf("load %q: %w", certFile, err)
				}
			}
			return nil
		},
		expires: func(c *tls.Certificate) time.Time { return chainEnd(c) },
	}}
	if err := p.f.open(); err != nil {
		return nil, err
	}
	return p, nil
}

// Certificate returns the certificate in use. It must not be changed.
func (p *Pair) Certificate() *tls.Certificate { return p.f.get() }

// State looks at the files, at once if force is set.
func (p *Pair) State(force bool) State { return p.f.state(force) }

func inTime(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", c.NotBefore.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// chainEnd is when the first certificate of a chain ends.
func chainEnd(c *tls.Certificate) time.Time {
	end := c.Leaf.NotAfter
	for _, der := range c.Certificate[1:] {
		if above, err := x509.ParseCertificate(der); err == nil && above.NotAfter.Before(end) {
			end = above.NotAfter
		}
	}
	return end
}

// authorities are the certificates of a file.
type authorities struct {
	pool *x509.CertPool
	end  time.Time // of the last of them
}

// Pool is a file of authorities.
type Pool struct{ f file[authorities] }

// OpenPool reads authorities from a PEM file.
func OpenPool(caFile string) (*Pool, error) { return openPool(caFile, x509.NewCertPool) }

// OpenMore reads authorities from a PEM file, which count beside those of the system.
func OpenMore(caFile string) (*Pool, error) {
	return openPool(caFile, func() *x509.CertPool {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return x509.NewCertPool() // there are none
		}
		return pool
	})
}

// openPool adds the authorities of a file to a pool of those that count besides.
func openPool(caFile string, base func() *x509.CertPool) (*Pool, error) {
	p := &Pool{f: file[authorities]{
		paths: []string{caFile},
		read: func(raw [][]byte) (authorities, error) {
			a, err := readAuthorities(raw[0], base())
			if err != nil {
				return a, fmt.Errorf("load %q: %w", caFile, err)
			}
			return a, nil
		},
		worse: func(old, fresh authorities, now time.Time) error {
			if now.After(fresh.end) && !now.After(old.end) {
				return fmt.Errorf("load %q: the last of its certificates expired at %s", caFile, fresh.end.UTC().Format(time.RFC3339))
			}
			return nil
		},
		expires: func(a authorities) time.Time { return a.end },
	}}
	if err := p.f.open(); err != nil {
		return nil, err
	}
	return p, nil
}

// readAuthorities wants every block to be whole: half a bundle would turn away
// those whom the other half vouches for.
func readAuthorities(raw []byte, pool *x509.CertPool) (authorities, error) {
	a := authorities{pool: pool}
	for {
		var block *pem.Block
		block, raw = pem.Decode(raw)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return a, fmt.Errorf("parse a certificate: %w", err)
		}
		a.pool.AddCert(cert)
		if cert.NotAfter.After(a.end) {
			a.end = cert.NotAfter
		}
	}
	if a.end.IsZero() {
		return a, errors.New("no PEM certificate in it")
	}
	if cutShort(raw) {
		return a, errors.New("the last PEM block is cut short")
	}
	return a, nil
}

// Pool returns the authorities in use. It must not be changed.
func (p *Pool) Pool() *x509.CertPool { return p.f.get().pool }

// State looks at the file, at once if force is set.
func (p *Pool) State(force bool) State { return p.f.state(force) }
