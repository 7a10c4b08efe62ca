package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// DefaultLease is the length of leases unless configured.
const DefaultLease = 2 * time.Second

// Bounds of [Config.Lease]: a pause of the garbage collector must not end a lease, and a take-over must not take longer
// than a minute.
const (
	minLease = time.Second
	maxLease = time.Minute
)

// heartbeatsPerLease is how many heartbeats a replica sends within the length of a lease.
const heartbeatsPerLease = 5

// Config is `cluster:` in the configuration.
type Config struct {
	// Name is the name of this replica for people. Empty: the name of the host.
	Name string `yaml:"name"`
	// Listen is where other replicas reach this one, HOST:PORT. Empty: a free port of
	// 127.0.0.1, for replicas on the same host.
	Listen string `yaml:"listen"`
	// Advertise is Listen as others see it, HOST:PORT. Empty: Listen, which must name
	// a host then.
	Advertise string `yaml:"advertise"`
	// Lease is the length of leases: for so long duties of a replica that died wait for another one. 0 is
	// [DefaultLease].
	Lease time.Duration `yaml:"lease"`
}

// DefaultConfig is the configuration of an agent without `cluster:`.
func DefaultConfig() Config { return Config{Lease: DefaultLease} }

// IsZero reports whether nothing is configured.
func (c Config) IsZero() bool { return c == Config{} || c == DefaultConfig() }

// WithDefaults returns c with the defaults of empty fields but Name filled in.
func (c Config) WithDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	return c
}

// Validate reports what is wrong with c, with the key and what to write.
func (c Config) Validate() error {
	var errs []error
	c = c.WithDefaults()
	host, err := address(c.Listen, true)
	if err != nil {
		errs = append(errs, fmt.Errorf("listen: %w", err))
	}
	if c.Advertise != "" {
		if _, err := address(c.Advertise, false); err != nil {
			errs = append(errs, fmt.Errorf("advertise: %w", err))
		}
	} else if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		errs = append(errs, fmt.Errorf("advertise: empty, but listen %q takes all addresses; write the HOST:PORT at which other replicas reach this one", c.Listen))
	}
	if c.Lease < minLease || c.Lease > maxLease {
		errs = append(errs, fmt.Errorf("lease: got %s, write %s to %s", c.Lease, minLease, maxLease))
	}
	return errors.Join(errs...)
}

// address parses HOST:PORT and returns the host. If free, the port may be 0 and the host empty.
func address(text string, free bool) (host string, err error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("got %q, write HOST:PORT", text)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !free {
		return "", fmt.Errorf("got port %q in %q, write a number from 1 to 65535", port, text)
	}
	if host == "" && !free {
		return "", fmt.Errorf("got %q without a host, write HOST:PORT", text)
	}
	return host, nil
}
