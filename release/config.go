package release

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Defaults of [Config].
const (
	DefaultRequestTTL     = time.Hour
	DefaultApprovalTTL    = 5 * time.Minute
	DefaultExecuteTimeout = 10 * time.Second
)

// Config is `release:` in the configuration. The zero value of every field is
// the default.
type Config struct {
	// RequestTTL is how long a request waits for approval.
	RequestTTL time.Duration `yaml:"request_ttl"`
	// ApprovalTTL is how long an approved request may wait for its execution.
	ApprovalTTL time.Duration `yaml:"approval_ttl"`
	// ExecuteTimeout bounds one act, connection included.
	ExecuteTimeout time.Duration `yaml:"execute_timeout"`
	// KillSwitch refuses requests and approvals and executes nothing; denying
	// still works.
	KillSwitch bool `yaml:"kill_switch"`
}

// DefaultConfig returns the configuration of an agent that was told nothing.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	c.RequestTTL = cmp.Or(c.RequestTTL, DefaultRequestTTL)
	c.ApprovalTTL = cmp.Or(c.ApprovalTTL, DefaultApprovalTTL)
	c.ExecuteTimeout = cmp.Or(c.ExecuteTimeout, DefaultExecuteTimeout)
	return c
}

// Validate reports all problems, each beginning with its YAML path.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	within := func(path string, got, low, high time.Duration) {
		if got < low || got > high {
			errs = append(errs, fmt.Errorf("%s: must be between %s and %s, got %s", path, low, high, got))
		}
	}
	within("request_ttl", c.RequestTTL, time.Minute, 7*24*time.Hour)
	// The record of an act lives seven days; what an approval starts must be
	// resolved well before.
	within("approval_ttl", c.ApprovalTTL, 10*time.Second, 24*time.Hour)
	within("execute_timeout", c.ExecuteTimeout, time.Second, time.Minute)
	return errors.Join(errs...)
}
