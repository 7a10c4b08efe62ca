package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// Target is one element of `targets:`.
type Target struct {
	// Name is the label on everything of this target.
	Name string `yaml:"name"`
	// URL is where it is: redis:// rediss:// unix:// redis+cluster://a,b,c
	// redis+sentinel://a,b/mymaster, with the database as path or ?db=.
	URL          string `yaml:"url"`
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	// SentinelUsername and SentinelPasswordFile are for Sentinels that ask for a login.
	SentinelUsername     string `yaml:"sentinel_username"`
	SentinelPasswordFile string `yaml:"sentinel_password_file"`
	// CAFile, CertFile and KeyFile are PEM files for TLS (rediss://).
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// TLSServerName is what the server's certificate must be for; empty: the host of
	// the URL. TLSMinVersion is 1.2 (default) or 1.3.
	TLSServerName string `yaml:"tls_server_name"`
	TLSMinVersion string `yaml:"tls_min_version"`
	// AddrMap maps host:port that nodes of a Cluster or Sentinel announce to
	// host:port that can be reached from here.
	AddrMap map[string]string `yaml:"addr_map"`
	// ReleaseCredentials are those of the user that may delete. Without them the
	// agent cannot; `{}` is "the same server, without a login".
	ReleaseCredentials *Credentials `yaml:"release_credentials"`

	// Tables describe lock tables of a database (postgres://, mysql://) beside those that are known.
	Tables []sqlsource.Table `yaml:"tables"`

	Scan scanner.Config `yaml:",inline"`
	// RedisScan is what is particular to reading Redis.
	RedisScan redis.Config `yaml:",inline"`

	// source is the file or DNS name it is from; empty: the list.
	source string
}

// Source says where the target stands: "" for the list of the configuration, else
// "file PATH" or "srv NAME".
func (t Target) Source() string { return t.source }

// Credentials log in to the store of a target.
type Credentials struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	// CertFile and KeyFile are a client certificate of their own; empty: the target's.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// labelSafe is what a name may look like that becomes a metric label, a URL
// part and a file name.
var labelSafe = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (t Target) validate(path string) error {
	var errs []error
	if !labelSafe.MatchString(t.Name) {
		errs = append(errs, fmt.Errorf("%s.name: got %q, write 1 to 63 letters, digits, dots, dashes or underscores", path, t.Name))
	}
	if t.URL == "" {
		errs = append(errs, fmt.Errorf("%s.url: missing, write a URL such as redis://127.0.0.1:6379/0", path))
	}
	errs = append(errs, prefixed(path, errors.Join(t.Scan.Validate(), t.RedisScan.Validate())))
	reach := flatten(lockstore.Validate(t.connect()))
	if t.URL == "" {
		reach = slices.DeleteFunc(reach, func(e error) bool { return strings.HasPrefix(e.Error(), "url: ") })
	}
	errs = append(errs, prefixed(path, errors.Join(reach...)))
	if a, err := lockstore.Parse(t.URL); err == nil {
		errs = append(errs, prefixed(path, t.validateTables(a.Kind)))
	}
	if t.ReleaseCredentials != nil {
		errs = append(errs, prefixed(path+".release_credentials", t.ReleaseCredentials.validate()))
	}
	return errors.Join(errs...)
}

func (t Target) validateTables(kind lockstore.Kind) error {
	if len(t.Tables) > 0 && !kind.IsSQL() {
		return fmt.Errorf("tables: only databases have tables, and %s is not a database; remove it, or write a URL such as postgres://host:5432/database", kind)
	}
	var errs []error
	for i, table := range t.Tables {
		if err := table.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("tables[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// validate reads the files.
func (c Credentials) validate() error {
	var errs []error
	if _, err := credfile.Open(credfile.Files{Cert: c.CertFile, Key: c.KeyFile}, credfile.Keys{Cert: "cert_file", Key: "key_file"}); err != nil {
		errs = append(errs, err)
	}
	if c.PasswordFile != "" {
		if _, err := credfile.OpenSecret(c.PasswordFile); err != nil {
			errs = append(errs, fmt.Errorf("password_file: %w; write the path of a readable file", err))
		}
	}
	return errors.Join(errs...)
}

// Connect returns what package lockstore needs to reach the target as the
// scanning user, its files opened: what is opened with it follows what becomes of
// them.
func (t Target) Connect() (connect.Config, error) {
	c, err := t.connect().Opened()
	if err != nil {
		return c, fmt.Errorf("target %q: %w", t.Name, err)
	}
	return c, nil
}

// ConnectRelease is the same for the releasing user; false means that this
// agent cannot delete on the target.
func (t Target) ConnectRelease() (connect.Config, bool, error) {
	if t.ReleaseCredentials == nil {
		return connect.Config{}, false, nil
	}
	c := t.connect()
	c.Username, c.PasswordFile = t.ReleaseCredentials.Username, t.ReleaseCredentials.PasswordFile
	if t.ReleaseCredentials.CertFile != "" {
		c.CertFile, c.KeyFile = t.ReleaseCredentials.CertFile, t.ReleaseCredentials.KeyFile
	}
	c, err := c.Opened()
	if err != nil {
		return c, false, fmt.Errorf("target %q: release_credentials: %w", t.Name, err)
	}
	return c, true, nil
}

func (t Target) connect() connect.Config {
	return connect.Config{
		URL:                  t.URL,
		Username:             t.Username,
		PasswordFile:         t.PasswordFile,
		SentinelUsername:     t.SentinelUsername,
		SentinelPasswordFile: t.SentinelPasswordFile,
		CAFile:               t.CAFile,
		CertFile:             t.CertFile,
		KeyFile:              t.KeyFile,
		ServerName:           t.TLSServerName,
		MinVersion:           t.TLSMinVersion,
		AddrMap:              t.AddrMap,
	}
}

// ReadSecret returns the first line of a file; "" for no file. Neither the
// error nor anything else shows the secret.
func ReadSecret(file string) (locksteward.Secret, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return locksteward.Secret(strings.TrimRight(line, "\r")), nil
}

// prefixed puts path in front of each of the joined problems in err.
func prefixed(path string, err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for _, e := range flatten(err) {
		errs = append(errs, fmt.Errorf("%s.%w", path, e))
	}
	return errors.Join(errs...)
}

// flatten lists the problems inside joined errors.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}
