package scanner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward/internal/pace"
)

// Defaults of [Config].
const (
	DefaultSchedule = "@every 30s"
	DefaultTimezone = "UTC"
	DefaultTimeout  = 2 * time.Minute
)

// maxJitter bounds the default jitter, which is a tenth of the time between two
// sweeps.
const maxJitter = 5 * time.Second

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
	// Pace bounds the share of a server's time that sweeping may take; see docs/pace.md.
	Pace pace.Config `yaml:"pace"`
	// Timeout ends a sweep, which is then incomplete, when no server has answered for so long. A sweep that makes
	// progress is not cut.
	Timeout time.Duration `yaml:"timeout"`
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
	c.Pace = c.Pace.WithDefaults()
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
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
	if err := c.Pace.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			errs = append(errs, errors.New("pace."+line))
		}
	}
	if c.Timeout < time.Second {
		errs = append(errs, fmt.Errorf("timeout: must be at least 1s, got %s", c.Timeout))
	}
	return errors.Join(errs...)
}
