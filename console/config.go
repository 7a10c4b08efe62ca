package console

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/loopback"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

// Config says where the console listens and who may use it.
type Config struct {
	// Listen is host:port. Any address but loopback needs users.
	Listen string `yaml:"listen"`
	// UsersFile need not exist: there are no users then.
	UsersFile string `yaml:"users_file"`
	// TLSCertFile and TLSKeyFile (PEM) turn TLS on. TLSClientCAFile has the
	// authorities of whom every client must show a certificate; empty: nobody must.
	// All are read again when they change.
	TLSCertFile     string `yaml:"tls_cert_file"`
	TLSKeyFile      string `yaml:"tls_key_file"`
	TLSClientCAFile string `yaml:"tls_client_ca_file"`
	// SignIn says how people sign in.
	SignIn signin.Config `yaml:",inline"`
}

// Defaults of what a configuration leaves out.
const (
	DefaultListen    = "127.0.0.1:10122"
	DefaultUsersFile = "users.yaml"
)

// DefaultConfig returns the configuration that needs no file.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.UsersFile = cmp.Or(c.UsersFile, DefaultUsersFile)
	c.SignIn = c.SignIn.WithDefaults()
	return c
}

// Validate reports all problems at once, each with its path. It reads the users
// file and the certificate, since both decide whether the console can start.
func (c Config) Validate() error {
	_, _, err := c.withDefaults().load()
	return err
}

// load reads what the configuration names.
func (c Config) load() (*users.Set, *credfile.Set, error) {
	var errs []error
	host, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		var n uint64
		if n, err = strconv.ParseUint(port, 10, 16); err == nil {
			port = strconv.FormatUint(n, 10)
		}
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("listen: must be host:port, like %s, got %q", DefaultListen, c.Listen))
	}
	set, usersErr := users.Load(c.UsersFile)
	if usersErr != nil {
		errs = append(errs, fmt.Errorf("users_file: %w", usersErr))
	}
	if err == nil && usersErr == nil && c.open(set) && !loopback.Is(host) {
		errs = append(errs, fmt.Errorf("listen: %q is not loopback, and %q has no users: run `locksteward users add NAME --role viewer` first, or listen on %s", c.Listen, c.UsersFile, net.JoinHostPort("127.0.0.1", port)))
	}
	cert, err := c.openTLS()
	if err != nil {
		errs = append(errs, err)
	}
	if err := c.SignIn.Validate(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	return set, cert, nil
}

// open says that everyone who can reach the listener may read: there are no users, and
// none can come from elsewhere.
func (c Config) open(set *users.Set) bool {
	return set.Len() == 0 && c.SignIn.Proxy == nil && c.SignIn.OIDC == nil
}
