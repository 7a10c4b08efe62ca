package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/prometheus/exporter-toolkit/web"
)

// DefaultListen is [Config.Listen] unless another is given.
const DefaultListen = ":10121"

// Config is the block `metrics:` of the configuration. The zero value of each
// field is its default.
type Config struct {
	// Listen is host:port of metrics, health and readiness. This listener only
	// reads, so any address is allowed.
	Listen string `yaml:"listen"`
	// AllowedHosts are the hosts that a request may name beside those of this machine,
	// without a port: a listener on a loopback address answers no other, since the page
	// of a browser could have its name lead here. Elsewhere each is answered, unless
	// some are given.
	AllowedHosts []string `yaml:"allowed_hosts"`
	// WebConfigFile is exporter-toolkit's file with TLS, basic auth and headers;
	// none serves plain HTTP. It is read again on every connection.
	WebConfigFile string `yaml:"web_config_file"`
	// TopLocks is how many locks get a series of their own, with the key's name: those
	// held longest of all targets, at most 100. 0 (default): none, and no name of a
	// key is in a scrape.
	TopLocks int `yaml:"top_locks"`
	// KeyNames is how those names are shown: "full" (default; escaped, and cut at 128
	// bytes) or "hash" (the begin of the SHA-256).
	KeyNames string `yaml:"key_names"`
}

// DefaultConfig returns the configuration of an empty `metrics:` block.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.KeyNames = cmp.Or(c.KeyNames, KeyNamesFull)
	return c
}

// bounds checks what an Exporter depends on; c has its defaults.
func (c Config) bounds() error {
	var errs []error
	if c.TopLocks < 0 || c.TopLocks > maxTopLocks {
		errs = append(errs, fmt.Errorf("top_locks: got %d, write a number from 0 to %d: each is a series, and names of keys come and go", c.TopLocks, maxTopLocks))
	}
	if c.KeyNames != KeyNamesFull && c.KeyNames != KeyNamesHash {
		errs = append(errs, fmt.Errorf("key_names: got %q, write %s or %s", c.KeyNames, KeyNamesFull, KeyNamesHash))
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong, each with its path, the value and
// what to write. It reads WebConfigFile and the certificates that it names.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if err := checkListen(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("listen: got %q: %w; write host:port, such as %q for all addresses", c.Listen, err, DefaultListen))
	}
	for i, host := range c.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/@ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			errs = append(errs, fmt.Errorf("allowed_hosts[%d]: got %q, write a host without scheme and port, such as metrics.example", i, host))
		}
	}
	if err := c.bounds(); err != nil {
		errs = append(errs, err)
	}
	if err := web.Validate(c.WebConfigFile); err != nil {
		errs = append(errs, fmt.Errorf("web_config_file: got %q: %w; write a file as in exporter-toolkit's docs/web-configuration.md, or leave it out", c.WebConfigFile, err))
	}
	return errors.Join(errs...)
}

func checkListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("no host:port")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	return nil
}
