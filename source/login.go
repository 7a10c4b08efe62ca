package source

import (
	"crypto/tls"

	"github.com/locksteward/locksteward"
)

// Login is how a source or a releaser reaches the servers of a target.
type Login struct {
	// URL is where the target is. Its scheme is that of the store; it has no password.
	URL string
	// Username is who logs in; empty: who the URL names, or nobody.
	Username string
	// Password is read before each connection, so that a changed file counts from the next
	// one on; nil is no password.
	Password func() (locksteward.Secret, error)
	// TLS is how connections are encrypted; nil is not at all.
	TLS *tls.Config
}
