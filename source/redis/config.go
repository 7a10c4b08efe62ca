package redis

import (
	"errors"
	"fmt"

	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
)

// Config says how a Redis target is read. The zero value of every field is the default.
type Config struct {
	// MetaPrefixes are prefixes of companion keys beside [record.DefaultPrefix],
	// for applications that moved theirs (lock.Options.KeyPrefix).
	MetaPrefixes []string `yaml:"meta_prefixes"`
	// Watch is how changes are noticed between sweeps: auto (the best that the server
	// offers), tracking, keyspace, off.
	Watch source.WatchMode `yaml:"watch"`
	// SweepOn is which servers are asked for the names of all keys: masters
	// (default), or replicas, which spares the masters nearly all that a sweep costs.
	// The values of keys that may be locks are read on the masters either way.
	SweepOn SweepOn `yaml:"sweep_on"`
}

// WithDefaults returns the configuration with all defaults filled in.
func (c Config) WithDefaults() Config {
	if c.Watch == "" {
		c.Watch = source.WatchAuto
	}
	if c.SweepOn == "" {
		c.SweepOn = SweepMasters
	}
	return c
}

// Validate reports all problems, each beginning with its YAML path.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	for i, p := range c.MetaPrefixes {
		if p == "" {
			errs = append(errs, fmt.Errorf("meta_prefixes[%d]: must not be empty; write the prefix with its separator, such as \"app:\"", i))
		}
	}
	switch c.Watch {
	case source.WatchAuto, source.WatchTracking, source.WatchKeyspace, source.WatchOff:
	default:
		errs = append(errs, fmt.Errorf("watch: got %q, write auto, tracking, keyspace or off", string(c.Watch)))
	}
	if c.SweepOn != SweepMasters && c.SweepOn != SweepReplicas {
		errs = append(errs, fmt.Errorf("sweep_on: got %q, write masters or replicas", string(c.SweepOn)))
	}
	return errors.Join(errs...)
}

// prefixes returns all prefixes of companions, the default first, each once.
func (c Config) prefixes() []string {
	list := []string{record.DefaultPrefix}
	for _, p := range c.MetaPrefixes {
		if p != record.DefaultPrefix {
			list = append(list, p)
		}
	}
	return list
}
