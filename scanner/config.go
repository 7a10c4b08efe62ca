package scanner

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// Defaults of [Config].
const (
	DefaultSchedule       = "@every 30s"
	DefaultTimezone       = "UTC"
	DefaultMaxServerShare = Share(0.02)
	DefaultTimeout        = 15 * time.Minute
)

// maxJitter bounds the default jitter, which is a tenth of the time between two
// sweeps.
const maxJitter = 5 * time.Second

// Share is a part of a whole, written "2%" or "0.02".
type Share float64

// UnmarshalText reads "2%" or "0.02".
func (s *Share) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(string(text)), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("share %q: must be a percentage such as 2%%", text)
	}
	if percent {
		v /= 100
	}
	*s = Share(v)
	return nil
}

// MarshalText writes a percentage.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns a percentage, "2%".
func (s Share) String() string { return strconv.FormatFloat(float64(s)*100, 'g', 6, 64) + "%" }

// Config says when and how gently a target is swept. The zero value of every
// field is the default.
type Config struct {
	// Schedule is when sweeps begin: a cron expression of five or six fields
	// (seconds first), @every 30s, @hourly and the like.
	Schedule string `yaml:"schedule"`
	// Timezone is the IANA name of the zone in which Schedule is read.
	Timezone string `yaml:"timezone"`
	// Jitter delays each sweep by a random time below it, so that many agents do
	// not knock at once; default a tenth of the time between two sweeps, at most
	// 5 s.
	Jitter time.Duration `yaml:"jitter"`
	// MaxServerShare is the largest part of server time that sweeping may take.
	MaxServerShare Share `yaml:"max_server_share"`
	// Timeout ends a sweep, which is then incomplete.
	Timeout time.Duration `yaml:"timeout"`
	// MetaPrefixes are prefixes of companion keys beside [record.DefaultPrefix],
	// for applications that moved theirs (lock.Options.KeyPrefix).
	MetaPrefixes []string `yaml:"meta_prefixes"`
	// Watch is how changes are told between sweeps: auto (the best that the server
	// offers), tracking, keyspace, off.
	Watch WatchMode `yaml:"watch"`
	// SweepOn is which servers are asked for the names of all keys: masters
	// (default), or replicas, which spares the masters nearly all that a sweep costs.
	// What stands in keys that may be locks is read on the masters either way.
	SweepOn SweepOn `yaml:"sweep_on"`
	// NoThrottle sweeps as fast as the server answers; for one-off scans.
	NoThrottle bool `yaml:"-"`
}

// DefaultConfig returns the configuration with all defaults filled in.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	if c.Schedule == "" {
		c.Schedule = DefaultSchedule
	}
	if c.Timezone == "" {
		c.Timezone = DefaultTimezone
	}
	if c.MaxServerShare == 0 {
		c.MaxServerShare = DefaultMaxServerShare
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Watch == "" {
		c.Watch = WatchAuto
	}
	if c.SweepOn == "" {
		c.SweepOn = SweepMasters
	}
	return c
}

// Validate reports all problems, each beginning with its YAML path.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if _, err := newSchedule(c); err != nil {
		errs = append(errs, err)
	}
	if c.Jitter < 0 {
		errs = append(errs, fmt.Errorf("jitter: must not be negative, got %s", c.Jitter))
	}
	if c.MaxServerShare < 0.0001 || c.MaxServerShare > 1 {
		errs = append(errs, fmt.Errorf("max_server_share: must be between 0.01%% and 100%%, got %s", c.MaxServerShare))
	}
	if c.Timeout < time.Second {
		errs = append(errs, fmt.Errorf("timeout: must be at least 1s, got %s", c.Timeout))
	}
	for i, p := range c.MetaPrefixes {
		if p == "" {
			errs = append(errs, fmt.Errorf("meta_prefixes[%d]: must not be empty; write the prefix with its separator, such as \"app:\"", i))
		}
	}
	switch c.Watch {
	case WatchAuto, WatchTracking, WatchKeyspace, WatchOff:
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
