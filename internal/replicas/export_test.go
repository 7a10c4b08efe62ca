package replicas

import (
	"crypto/tls"
	"testing"
)

// NewCertificate is one that no replica has.
func NewCertificate(t testing.TB) tls.Certificate {
	c, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
