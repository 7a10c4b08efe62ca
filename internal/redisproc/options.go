package redisproc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Options say which server to start. The zero value is a standalone server on
// a private port of 127.0.0.1 that saves nothing.
type Options struct {
	// Program is the server to start. Empty means that of [Binary].
	Program string
	// Dir is the working directory: configuration, log and data. Empty means a
	// new temporary directory that [Proc.Close] removes.
	Dir string
	// Config are lines of redis.conf. They come last, so they win. Those that
	// allow DEBUG and its like are left out where the server is older than they.
	Config []string
	// Env are variables, "NAME=value", that the server has beside those of this
	// process.
	Env []string
	// TLS makes the port speak TLS only.
	TLS *TLS
	// Socket listens on a unix socket in place of a port.
	Socket bool
	// Sentinel starts the server as a Sentinel; its Config must not need a
	// master at start.
	Sentinel bool
	// Cluster makes the server a node of a Redis Cluster without slots.
	Cluster bool
	// Username and Password are what the readiness check logs in with, where
	// Config demands it. An empty Username with a Password is the default user.
	Username, Password string
	// StartTimeout bounds the time until the server answers. Default 15s.
	StartTimeout time.Duration
}

// TLS names the PEM files of the server. The certificate also serves as the
// client certificate of the readiness check and of replication.
type TLS struct {
	CAFile, CertFile, KeyFile string
}

// ErrNotInstalled says that the machine has no Redis server.
var ErrNotInstalled = errors.New("redis-server is not installed: run make deps")

// Binary returns the path of redis-server, or of valkey-server in its place,
// or an error that is [ErrNotInstalled].
func Binary() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}

func (t *TLS) clientConfig() (*tls.Config, error) {
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read CA: no certificate in %q", t.CAFile)
	}
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &tls.Config{
		RootCAs:      roots,
		Certificates: []tls.Certificate{cert},
		ServerName:   "127.0.0.1",
		MinVersion:   tls.VersionTLS12,
	}, nil
}
