package release

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/class"
)

// Defaults of [Config].
const (
	DefaultRequestTTL     = time.Hour
	DefaultApprovalTTL    = 5 * time.Minute
	DefaultExecuteTimeout = 10 * time.Second
	DefaultUndoWindow     = 10 * time.Minute
	DefaultRemindBefore   = 15 * time.Minute
	DefaultMaxPerHour     = 300
	DefaultAutoPerHour    = 20
	DefaultBreakerLocks   = 20
	DefaultBreakerFor     = 30 * time.Minute
	DefaultWatchFor       = 2 * time.Minute
)

// Config is `release:` in the configuration. The zero value of every field is
// the default.
type Config struct {
	// RequestTTL is how long a request waits for approval.
	RequestTTL time.Duration `yaml:"request_ttl"`
	// ApprovalTTL is how long an approved request may wait for its execution.
	ApprovalTTL time.Duration `yaml:"approval_ttl"`
	// RemindBefore is how long before its end people are reminded of a request that waits
	// again; at most half of RequestTTL.
	RemindBefore time.Duration `yaml:"remind_before"`
	// ExecuteTimeout bounds one act, connection included.
	ExecuteTimeout time.Duration `yaml:"execute_timeout"`
	// UndoWindow is how long a lock is kept aside after its release; below 0:
	// nothing is kept.
	UndoWindow time.Duration `yaml:"undo_window"`
	// WatchFor is how long a released key is watched for its old holder to write
	// it again; below 0: not at all.
	WatchFor time.Duration `yaml:"watch_for"`
	// MaxPerHour is how many locks of all classes may be released in an hour;
	// AutoPerHour is how many of them without a person.
	MaxPerHour  int `yaml:"max_per_hour"`
	AutoPerHour int `yaml:"auto_per_hour"`
	// BreakerLocks is how many locks of a target must look dead at once for the
	// circuit breaker to open: then nothing is released without a person, for
	// BreakerFor after it was so last.
	BreakerLocks int           `yaml:"breaker_locks"`
	BreakerFor   time.Duration `yaml:"breaker_for"`
	// PauseWindows are the times in which nothing is released without a person.
	PauseWindows []PauseWindow `yaml:"pause_windows"`
	// Paused refuses requests and approvals and executes nothing; denying and
	// undoing still work.
	Paused bool `yaml:"paused"`
}

// DefaultConfig returns the configuration of an agent without settings.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	c.RequestTTL = cmp.Or(c.RequestTTL, DefaultRequestTTL)
	c.ApprovalTTL = cmp.Or(c.ApprovalTTL, DefaultApprovalTTL)
	c.RemindBefore = min(cmp.Or(c.RemindBefore, DefaultRemindBefore), c.RequestTTL/2)
	c.ExecuteTimeout = cmp.Or(c.ExecuteTimeout, DefaultExecuteTimeout)
	c.UndoWindow = cmp.Or(c.UndoWindow, DefaultUndoWindow)
	c.WatchFor = cmp.Or(c.WatchFor, DefaultWatchFor)
	c.MaxPerHour = cmp.Or(c.MaxPerHour, DefaultMaxPerHour)
	c.AutoPerHour = cmp.Or(c.AutoPerHour, DefaultAutoPerHour)
	c.BreakerLocks = cmp.Or(c.BreakerLocks, DefaultBreakerLocks)
	c.BreakerFor = cmp.Or(c.BreakerFor, DefaultBreakerFor)
	if c.PauseWindows == nil {
		c.PauseWindows = []PauseWindow{}
	}
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
	positive := func(path string, got int) {
		if got < 0 {
			errs = append(errs, fmt.Errorf("%s: must not be negative, got %d, write a number, or 0 for the default", path, got))
		}
	}
	within("request_ttl", c.RequestTTL, time.Minute, 7*24*time.Hour)
	// The record of an act lives seven days; what an approval starts must be
	// resolved well before.
	within("approval_ttl", c.ApprovalTTL, 10*time.Second, 24*time.Hour)
	within("execute_timeout", c.ExecuteTimeout, time.Second, time.Minute)
	if c.RequestTTL > 0 { // else its default, which is computed from it, is invalid, too
		within("remind_before", c.RemindBefore, 0, 24*time.Hour)
	}
	if c.UndoWindow > 0 {
		within("undo_window", c.UndoWindow, time.Second, class.MaxPlaceholder)
	}
	if c.WatchFor > 0 {
		within("watch_for", c.WatchFor, time.Second, time.Hour)
	}
	within("breaker_for", c.BreakerFor, time.Minute, 7*24*time.Hour)
	positive("max_per_hour", c.MaxPerHour)
	positive("auto_per_hour", c.AutoPerHour)
	positive("breaker_locks", c.BreakerLocks)
	for i, f := range c.PauseWindows {
		if err := f.validate(); err != nil {
			errs = append(errs, fmt.Errorf("pause_windows[%d].%w", i, err))
		}
	}
	return errors.Join(errs...)
}
