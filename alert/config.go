package alert

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"
)

// Config is who is notified, and how.
type Config struct {
	Receivers []Receiver `yaml:"receivers"`
	// Grouping is how findings are combined in notifications, unless a receiver overrides
	// it.
	Grouping Grouping `yaml:"grouping"`
	// FirstSweep is what becomes of the findings of a target's first sweep: "digest"
	// (one notification per receiver), "fire" (as all others), "mute".
	FirstSweep string `yaml:"first_sweep"`
	// ConsoleURL is where people reach the console: links in notifications begin with it.
	// Empty: only runbooks are linked, as public pages.
	ConsoleURL string `yaml:"console_url"`
	// Team is the team of classes that have none; empty: none.
	Team string `yaml:"team"`
	// Heartbeat reports to a monitor outside that the agent runs; nil: no heartbeat.
	Heartbeat *Heartbeat `yaml:"heartbeat"`
	// DrainTimeout bounds how long a shutdown sends what is due.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
}

// Grouping is how findings are combined in notifications.
type Grouping struct {
	// By are the labels that findings of one notification share.
	By []string `yaml:"by"`
	// Wait is how long the first finding of a group waits for others, Interval the least
	// time between two notifications of a group, Repeat the time until a group that still
	// fires is repeated; 0: never.
	Wait     time.Duration `yaml:"wait"`
	Interval time.Duration `yaml:"interval"`
	Repeat   time.Duration `yaml:"repeat"`
}

// Regrouping is a [Grouping] of which parts can be left out.
type Regrouping struct {
	By       []string       `yaml:"by"`
	Wait     *time.Duration `yaml:"wait"`
	Interval *time.Duration `yaml:"interval"`
	Repeat   *time.Duration `yaml:"repeat"`
}

// What becomes of the findings of a target's first sweep.
const (
	FirstSweepDigest = "digest"
	FirstSweepFire   = "fire"
	FirstSweepMute   = "mute"
)

// Defaults of what a configuration leaves out.
const (
	DefaultDrainTimeout = 10 * time.Second
	DefaultTimeout      = 10 * time.Second
	DefaultMaxAttempts  = 100
	DefaultMaxAge       = 6 * time.Hour
)

// DefaultConfig returns the configuration without receivers.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	if c.Grouping.isZero() {
		c.Grouping = DefaultGrouping()
	}
	c.FirstSweep = cmp.Or(c.FirstSweep, FirstSweepDigest)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.Receivers = slices.Clone(c.Receivers)
	for i, r := range c.Receivers {
		c.Receivers[i] = r.withDefaults()
	}
	return c
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Validate reports all problems at once, each with its path. It reads no file:
// [New] does.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.DrainTimeout < 0 || c.DrainTimeout > 5*time.Minute {
		bad("drain_timeout: must be 0s to 5m, got %s", c.DrainTimeout)
	}
	for _, err := range c.Grouping.problems() {
		bad("grouping.%w", err)
	}
	if !slices.Contains([]string{FirstSweepDigest, FirstSweepFire, FirstSweepMute}, c.FirstSweep) {
		bad("first_sweep: must be %s, %s or %s, got %q", FirstSweepDigest, FirstSweepFire, FirstSweepMute, c.FirstSweep)
	}
	if c.ConsoleURL != "" {
		if u, err := url.Parse(c.ConsoleURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			bad("console_url: must be https://host or http://host, with a path if the console has one, got %q", c.ConsoleURL)
		}
	}
	if c.Heartbeat != nil {
		for _, err := range c.Heartbeat.WithDefaults().problems() {
			bad("heartbeat.%w", err)
		}
	}
	seen := map[string]int{}
	for i, r := range c.Receivers {
		at := fmt.Sprintf("receivers[%d]", i)
		if !namePattern.MatchString(r.Name) {
			bad("%s.name: must be 1 to 63 letters, digits or . _ -, got %q", at, r.Name)
		} else if first, dup := seen[r.Name]; dup {
			bad("%s.name: %q is already receivers[%d]: choose another name", at, r.Name, first)
		} else {
			seen[r.Name] = i
		}
		for _, err := range r.problems(c.Grouping) {
			bad("%s.%w", at, err)
		}
	}
	return errors.Join(errs...)
}
