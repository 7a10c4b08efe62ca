package store

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward/internal/credfile"
)

// credentialsLifetime is how long a connection is used that logged in with what
// stands in a file: then it makes place for one with the files of today.
const credentialsLifetime = 30 * time.Minute

// credentials are what each new connection to PostgreSQL reads again.
type credentials struct {
	dsn      string
	password *credfile.Secret // nil: no file of ours
	tls      *credfile.Set

	mu   sync.Mutex
	good *pgx.ConnConfig // the last that could be read
}

// openCredentials reads the files for the first time; cfg is the parsed dsn.
func openCredentials(dsn, passwordFile string, cfg *pgx.ConnConfig) (*credentials, error) {
	c := &credentials{dsn: dsn, good: cfg}
	var err error
	if passwordFile != "" {
		if c.password, err = credfile.OpenSecret(passwordFile); err != nil {
			return nil, fmt.Errorf("store.password_file: %w; write the path of a readable file", err)
		}
	}
	// The parser has read them well, so what fails here is for it to judge: a key
	// with a password, for instance.
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

// beforeConnect puts today's certificates and password into a connection that is
// about to be made. What cannot be used leaves the last good ones in use.
func (c *credentials) beforeConnect(_ context.Context, cfg *pgx.ConnConfig) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tls.Refused() == nil {
		if fresh, err := pgx.ParseConfig(c.dsn); err == nil {
			c.good = fresh
		}
	}
	today := c.good.Copy()
	cfg.TLSConfig, cfg.Fallbacks, cfg.Password = today.TLSConfig, today.Fallbacks, today.Password
	if c.password != nil {
		c.password.State(true)
		if secret := c.password.Secret(); secret != "" {
			cfg.Password = secret.Reveal()
		}
	}
	return nil
}

// lifetime is for the pools; 0 is no limit.
func (c *credentials) lifetime() time.Duration {
	if c.password != nil || c.good.TLSConfig != nil {
		return credentialsLifetime
	}
	return 0
}

// Files looks at the password and the certificates of a connection to PostgreSQL
// and says how each stands, under its name in the configuration or the DSN. A file
// of SQLite has none.
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
