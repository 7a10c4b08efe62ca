// Package testcert makes authorities and certificates for tests.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is an authority. Its methods fail the test when they cannot do their work.
type CA struct {
	// PEM is its certificate.
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Leaf says what a certificate is like.
type Leaf struct {
	Name string
	// Hosts are names and addresses; none: 127.0.0.1, ::1 and localhost.
	Hosts []string
	// NotBefore and NotAfter are by default an hour ago and in a day.
	NotBefore, NotAfter time.Time
}

// Pair is a certificate with its key in PEM.
type Pair struct {
	Cert, Key []byte
	Leaf      *x509.Certificate
}

// NewCA makes an authority for a day.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	return NewCAUntil(t, name, time.Now().Add(24*time.Hour))
}

// NewCAUntil makes an authority that ends then.
func NewCAUntil(t testing.TB, name string, end time.Time) *CA {
	t.Helper()
	ca := &CA{key: newKey(t)}
	ca.cert = &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name},
		NotBefore: end.Add(-48 * time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca.cert, ca.cert, &ca.key.PublicKey, ca.key)
	must(t, err)
	ca.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return ca
}

// Issue makes a certificate for servers and clients alike.
func (ca *CA) Issue(t testing.TB, l Leaf) Pair {
	t.Helper()
	key := newKey(t)
	if l.NotBefore.IsZero() {
		l.NotBefore = time.Now().Add(-time.Hour)
	}
	if l.NotAfter.IsZero() {
		l.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if l.Hosts == nil {
		l.Hosts = []string{"127.0.0.1", "::1", "localhost"}
	}
	leaf := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: l.Name}, NotBefore: l.NotBefore, NotAfter: l.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca.cert, &key.PublicKey, ca.key)
	must(t, err)
	leaf, err = x509.ParseCertificate(der)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		Leaf: leaf,
	}
}

// Put replaces a file as one should: another one is written beside it and renamed.
func Put(t testing.TB, path string, data []byte) {
	t.Helper()
	next := path + ".next"
	must(t, os.WriteFile(next, data, 0o600))
	must(t, os.Rename(next, path))
}

// Files writes an authority and a pair into dir and returns their paths.
func Files(t testing.TB, dir, name string, ca []byte, p Pair) (caFile, certFile, keyFile string) {
	t.Helper()
	caFile, certFile, keyFile = filepath.Join(dir, name+"-ca.pem"), filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	Put(t, caFile, ca)
	Put(t, certFile, p.Cert)
	Put(t, keyFile, p.Key)
	return caFile, certFile, keyFile
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	must(t, err)
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
