package store

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultDSN is the store of an agent without a configured one.
const DefaultDSN = "sqlite:data/locksteward.db"

// memoryPath is SQLite's name for a database without a file.
const memoryPath = ":memory:"

// Config is `store:` in the configuration.
type Config struct {
	// DSN is "sqlite:PATH", PATH relative to the working directory, or
	// "postgres://USER@HOST:PORT/DATABASE". Empty is DefaultDSN.
	DSN string `yaml:"dsn"`
	// PasswordFile holds the password for PostgreSQL in its first line. If it is empty, the
	// password comes from the DSN or from the environment of libpq (PGPASSFILE). Each new
	// connection reads it again, and the files of the DSN's sslrootcert, sslcert and sslkey.
	PasswordFile string `yaml:"password_file"`
	// KeepRequests is how long requests are kept after they became final; their audit
	// entries are not deleted with them. 0 is for ever.
	KeepRequests time.Duration `yaml:"keep_requests"`
	// KeepAudit is how long audit entries are kept. 0 is for ever.
	KeepAudit time.Duration `yaml:"keep_audit"`
	// AuditKeyFile is the Ed25519 key that signs checkpoints of the audit trail, as PEM
	// (PKCS #8). If it is empty, a key is created beside the SQLite file, and with
	// PostgreSQL nothing is signed.
	AuditKeyFile string `yaml:"audit_key_file"`
}

// minKeepAudit keeps a typing error from deleting the trail.
const minKeepAudit = 30 * 24 * time.Hour

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{DSN: DefaultDSN, KeepRequests: 400 * 24 * time.Hour}
}

// Validate returns all errors in c, each with its key and what to write.
func (c Config) Validate() error {
	var errs []error
	where, err := parseDSN(c.dsn())
	if err != nil {
		errs = append(errs, fmt.Errorf("dsn: %w", err))
	}
	if c.PasswordFile != "" {
		if err == nil && where.path != "" {
			errs = append(errs, errors.New("password_file: set, but an SQLite file has no password; leave it out or write a postgres:// dsn"))
		}
		if _, err := os.Stat(c.PasswordFile); err != nil {
			errs = append(errs, fmt.Errorf("password_file: %w; write the path of a readable file", err))
		}
	}
	if c.KeepRequests != 0 && c.KeepRequests < 24*time.Hour {
		errs = append(errs, fmt.Errorf("keep_requests: got %s, write 24h or more, or 0 for ever", c.KeepRequests))
	}
	if c.KeepAudit != 0 && c.KeepAudit < minKeepAudit {
		errs = append(errs, fmt.Errorf("keep_audit: got %s, write %s or more, or 0 for ever", c.KeepAudit, minKeepAudit))
	}
	return errors.Join(errs...)
}

// Shared reports whether several processes can use the store at once.
func (c Config) Shared() bool {
	where, err := parseDSN(c.dsn())
	return err == nil && where.url != ""
}

// File returns the file of an SQLite store, "" for any other.
func (c Config) File() string {
	where, err := parseDSN(c.dsn())
	if err != nil || where.path == memoryPath {
		return ""
	}
	return where.path
}

func (c Config) dsn() string {
	if c.DSN == "" {
		return DefaultDSN
	}
	return c.DSN
}

// place is the location of a store: one of the two is set.
type place struct {
	path string // of an SQLite file
	url  string // of PostgreSQL
}

// errPostgresDSN does not show the DSN: it may contain a password.
var errPostgresDSN = errors.New("cannot be read as an address of PostgreSQL; write postgres://USER@HOST:5432/DATABASE and put the password into store.password_file")

// parseDSN returns the location that a DSN names. Its errors never show the DSN, which may
// contain a password.
func parseDSN(dsn string) (place, error) {
	scheme, path, found := strings.Cut(dsn, ":")
	switch strings.ToLower(scheme) {
	case "sqlite":
	case "postgres", "postgresql":
		if !strings.HasPrefix(path, "//") {
			return place{}, errPostgresDSN
		}
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return place{}, errPostgresDSN
		}
		if cfg.Database == "" {
			return place{}, errors.New("names no database; write postgres://USER@HOST:5432/DATABASE")
		}
		return place{url: dsn}, nil
	default:
		return place{}, fmt.Errorf("must be sqlite:PATH (for example %s) or postgres://USER@HOST:5432/DATABASE", DefaultDSN)
	}
	if !found || path == "" {
		return place{}, fmt.Errorf("sqlite: needs a path behind it (for example %s)", DefaultDSN)
	}
	if strings.HasPrefix(path, "//") {
		return place{}, fmt.Errorf("write sqlite:PATH without slashes in front of the path (for example %s, or sqlite:/var/lib/locksteward/locksteward.db)", DefaultDSN)
	}
	if strings.ContainsRune(path, 0) {
		return place{}, fmt.Errorf("the path holds a NUL byte; write a path like %s", DefaultDSN)
	}
	return place{path: path}, nil
}
