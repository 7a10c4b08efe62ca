package replicas

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// DefaultLease is how long a replica that vanished keeps others waiting.
const DefaultLease = 2 * time.Second

// Bounds of [Config.Lease]: below the first a garbage collector would end it, and
// beyond the second nobody would call it a take-over.
const (
	leastLease = time.Second
	mostLease  = time.Minute
)

// beatsPerLease is how often a replica says within one lease that it is there.
const beatsPerLease = 5

// Config is `cluster:` in the configuration.
type Config struct {
	// Name is what people call this replica. Empty: the name of the host.
	Name string `yaml:"name"`
	// Listen is where other replicas reach this one, HOST:PORT. Empty: a free port of
	// 127.0.0.1, which replicas on the same host reach.
	Listen string `yaml:"listen"`
	// Advertise is Listen as others see it, HOST:PORT. Empty: Listen, which must name
	// a host then.
	Advertise string `yaml:"advertise"`
	// Lease is how long the work of a replica that vanished waits for another. 0 is
	// [DefaultLease].
	Lease time.Duration `yaml:"lease"`
}

// DefaultConfig is that of an agent that was told nothing.
func DefaultConfig() Config { return Config{Lease: DefaultLease} }

// IsZero says that nothing is configured.
func (c Config) IsZero() bool { return c == Config{} || c == DefaultConfig() }

// WithDefaults fills in what is empty, but for Name.
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
	if c.Lease < leastLease || c.Lease > mostLease {
		errs = append(errs, fmt.Errorf("lease: got %s, write %s to %s", c.Lease, leastLease, mostLease))
	}
	return errors.Join(errs...)
}

// address reads HOST:PORT and returns the host.
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
