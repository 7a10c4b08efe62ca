package connect

import (
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Defaults of [Config].
const (
	DefaultDialTimeout = 2 * time.Second
	DefaultReadTimeout = 3 * time.Second
	DefaultPoolSize    = 3
	DefaultClientName  = "locksteward"
)

// Config is how to reach one Redis deployment. The zero value of every field
// but URL is the default.
type Config struct {
	// URL is where it is, see [Parse].
	URL string `yaml:"url"`
	// Username and Password are of the Redis user; they win over the URL's own.
	// PasswordFile, if set, has the password on its first line, and wins over both:
	// each new connection logs in with what the file holds by then.
	Username     string             `yaml:"username"`
	Password     locksteward.Secret `yaml:"-"`
	PasswordFile string             `yaml:"password_file"`
	// SentinelUsername, SentinelPassword and SentinelPasswordFile are the same for
	// Sentinels that ask for one.
	SentinelUsername     string             `yaml:"sentinel_username"`
	SentinelPassword     locksteward.Secret `yaml:"-"`
	SentinelPasswordFile string             `yaml:"sentinel_password_file"`
	// CAFile, CertFile and KeyFile are PEM files for TLS, read again when they
	// change. The system's roots count where CAFile is empty.
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName is what the server's certificate must be for; empty: the host that
	// is dialed.
	ServerName string `yaml:"tls_server_name"`
	// MinVersion is the least version of TLS: 1.2 (default) or 1.3.
	MinVersion string `yaml:"tls_min_version"`
	// DialTimeout bounds one dial with its handshakes, ReadTimeout the wait for
	// one reply and for sending one request.
	DialTimeout time.Duration `yaml:"dial_timeout"`
	ReadTimeout time.Duration `yaml:"read_timeout"`
	// ClientName is what CLIENT LIST shows.
	ClientName string `yaml:"client_name"`
	// PoolSize is the most connections to one server.
	PoolSize int `yaml:"pool_size"`
	// AddrMap maps addresses that the servers announce to ones that can be
	// reached from here (port-forwards, containers).
	AddrMap map[string]string `yaml:"addr_map"`
	// Writes says that scripts of ours write over the connections: none of them gets
	// CLIENT NO-TOUCH. Redis 8.0 crashes where such a client wakes one that is blocked
	// on a list (signal 11, in lookupKey).
	Writes bool `yaml:"-"`

	// opened are the files, if [Config.Opened] made this.
	opened *credentials
}

func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.PoolSize == 0 {
		c.PoolSize = DefaultPoolSize
	}
	if c.ClientName == "" {
		c.ClientName = DefaultClientName
	}
	return c
}

// Validate reports all problems, each beginning with its YAML path. It reads
// the files.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	spec, err := Parse(c.URL)
	if err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	if _, err := c.open(); err != nil {
		errs = append(errs, err)
	}
	if err == nil && !spec.TLS && (c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" || c.ServerName != "" || c.MinVersion != "") {
		errs = append(errs, fmt.Errorf("url: TLS settings are given but %q is not TLS; write rediss://", spec))
	}
	if c.DialTimeout < 0 {
		errs = append(errs, fmt.Errorf("dial_timeout: must be positive, got %s", c.DialTimeout))
	}
	if c.ReadTimeout < 0 {
		errs = append(errs, fmt.Errorf("read_timeout: must be positive, got %s", c.ReadTimeout))
	}
	if c.PoolSize < 1 {
		errs = append(errs, fmt.Errorf("pool_size: must be at least 1, got %d", c.PoolSize))
	}
	for i := range len(c.ClientName) {
		if b := c.ClientName[i]; b <= ' ' || b > '~' {
			errs = append(errs, fmt.Errorf("client_name: must have printable ASCII without spaces alone, got %q", c.ClientName))
			break
		}
	}
	for from, to := range c.AddrMap {
		for _, addr := range []string{from, to} {
			if _, err := hostPort(addr, ""); err != nil {
				errs = append(errs, fmt.Errorf("addr_map: must map host:port to host:port, got %q", addr))
			}
		}
	}
	return errors.Join(errs...)
}
