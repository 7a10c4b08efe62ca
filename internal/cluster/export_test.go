package cluster

import (
	"crypto/tls"
	"testing"
)

// NewCertificate returns a certificate of no replica.
func NewCertificate(t testing.TB) tls.Certificate {
	c, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
