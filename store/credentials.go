package store

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward/internal/credfile"
)

// credentialsLifetime is how long a connection is used that logged in with the content of
// a file: the next one reads the file again.
const credentialsLifetime = 30 * time.Minute

// credentials are the files that each new connection to PostgreSQL reads again.
type credentials struct {
	dsn      string
	password *credfile.Secret // nil: no password_file
	tls      *credfile.Set
	// lastGood is the last configuration whose files could be read. It is not modified.
	lastGood atomic.Pointer[pgx.ConnConfig]
}

// openCredentials reads the files for the first time; cfg is the parsed dsn.
func openCredentials(dsn, passwordFile string, cfg *pgx.ConnConfig) (*credentials, error) {
	c := &credentials{dsn: dsn}
	c.lastGood.Store(cfg)
	var err error
	if passwordFile != "" {
		if c.password, err = credfile.OpenSecret(passwordFile); err != nil {
			return nil, fmt.Errorf("store.password_file: %w; write the path of a readable file", err)
		}
	}
	// The parser could read them, so it decides about what fails here: a key with a
	// password, for instance.
	if c.tls, err = credfile.Open(sslFiles(dsn), credfile.Keys{CA: "sslrootcert", Cert: "sslcert", Key: "sslkey"}); err != nil {
		c.tls = nil
	}
	return c, nil
}

// sslFiles are the files of a DSN, or of the environment as libpq reads it.
func sslFiles(dsn string) credfile.Files {
	var query url.Values
	if u, err := url.Parse(dsn); err == nil {
		query = u.Query()
	}
	of := func(parameter, variable string) string { return cmp.Or(query.Get(parameter), os.Getenv(variable)) }
	files := credfile.Files{CA: of("sslrootcert", "PGSSLROOTCERT"), Cert: of("sslcert", "PGSSLCERT"), Key: of("sslkey", "PGSSLKEY")}
	if files.CA == "system" {
		files.CA = ""
	}
	if of("sslmode", "PGSSLMODE") == "disable" {
		return credfile.Files{}
	}
	return files
}

// beforeConnect sets current certificates and password before a connection is made. Of
// files that cannot be used the last good content stays in use.
func (c *credentials) beforeConnect(_ context.Context, cfg *pgx.ConnConfig) error {
	if c.tls.Refused() == nil {
		if fresh, err := pgx.ParseConfig(c.dsn); err == nil {
			c.lastGood.Store(fresh)
		}
	}
	current := c.lastGood.Load().Copy()
	cfg.TLSConfig, cfg.Fallbacks, cfg.Password = current.TLSConfig, current.Fallbacks, current.Password
	if c.password != nil {
		c.password.State(true)
		if secret := c.password.Secret(); secret != "" {
			cfg.Password = secret.Reveal()
		}
	}
	return nil
}

// lifetime is how long the pools use a connection; 0 is no limit.
func (c *credentials) lifetime() time.Duration {
	if c.password != nil || c.lastGood.Load().TLSConfig != nil {
		return credentialsLifetime
	}
	return 0
}

// Files returns the state of the password and certificate files of a connection to
// PostgreSQL, each under its name in the configuration or the DSN. An SQLite store has none.
func (s *Store) Files() []credfile.File {
	if s.creds == nil {
		return nil
	}
	out := s.creds.tls.States(true)
	if s.creds.password != nil {
		out = append(out, credfile.File{Key: "password_file", State: s.creds.password.State(true)})
	}
	return out
}
