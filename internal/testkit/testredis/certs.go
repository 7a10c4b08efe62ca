package testredis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// certFiles are the PEM files of one server; the certificate is for servers
// and clients alike.
type certFiles struct{ ca, cert, key string }

type pemSet struct{ ca, cert, key []byte }

// pems makes one CA and one certificate for the whole test binary, so that the
// nodes of a cluster trust each other.
var pems = sync.OnceValues(makePEMs)

// testCerts writes the certificates into dir.
func testCerts(dir string) (*certFiles, error) {
	set, err := pems()
	if err != nil {
		return nil, err
	}
	f := &certFiles{
		ca:   filepath.Join(dir, "ca.crt"),
		cert: filepath.Join(dir, "redis.crt"),
		key:  filepath.Join(dir, "redis.key"),
	}
	err = errors.Join(
		os.WriteFile(f.ca, set.ca, 0o600),
		os.WriteFile(f.cert, set.cert, 0o600),
		os.WriteFile(f.key, set.key, 0o600),
	)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func makePEMs() (pemSet, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pemSet{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pemSet{}, err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "locksteward test CA"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "locksteward test redis"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return pemSet{}, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return pemSet{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pemSet{}, err
	}
	return pemSet{
		ca:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
