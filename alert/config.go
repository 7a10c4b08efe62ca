package alert

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Config says who is told.
type Config struct {
	Receivers []Receiver `yaml:"receivers"`
	// DrainTimeout bounds how long a shutdown sends what is due.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
}

// Receiver is one place that is told.
type Receiver struct {
	// Name is the label of its metrics and log lines.
	Name    string   `yaml:"name"`
	Webhook *Webhook `yaml:"webhook"`
	// Lang is the language of all texts: "en" (default) or "zh".
	Lang string `yaml:"lang"`
}

// Webhook is an HTTP endpoint that takes the payload of docs/webhook.md.
type Webhook struct {
	// URL is a secret: many services put their token into it. One of URL and
	// URLFile is required.
	URL     locksteward.Secret `yaml:"url"`
	URLFile string             `yaml:"url_file"`
	// SecretFiles hold one signing secret each (whsec_ and base64); several sign
	// with each, for rotation. None: messages are not signed.
	SecretFiles []string `yaml:"secret_files"`
	// CAFile adds certificate authorities (PEM) to those of the system.
	CAFile string `yaml:"ca_file"`
	// Timeout bounds one attempt.
	Timeout time.Duration `yaml:"timeout"`
	// MaxAttempts and MaxAge bound all attempts of one message.
	MaxAttempts int           `yaml:"max_attempts"`
	MaxAge      time.Duration `yaml:"max_age"`
	// AllowPrivate permits addresses inside the own network, and http.
	AllowPrivate bool `yaml:"allow_private"`
}

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
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.Receivers = slices.Clone(c.Receivers)
	for i, r := range c.Receivers {
		r.Lang = cmp.Or(r.Lang, "en")
		if r.Webhook != nil {
			w := *r.Webhook
			w.Timeout = cmp.Or(w.Timeout, DefaultTimeout)
			w.MaxAttempts = cmp.Or(w.MaxAttempts, DefaultMaxAttempts)
			w.MaxAge = cmp.Or(w.MaxAge, DefaultMaxAge)
			r.Webhook = &w
		}
		c.Receivers[i] = r
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
		if r.Lang != "en" && r.Lang != "zh" {
			bad("%s.lang: must be en or zh, got %q", at, r.Lang)
		}
		if r.Webhook == nil {
			bad("%s.webhook: is missing: write webhook: {url_file: PATH}", at)
			continue
		}
		for _, err := range r.Webhook.problems() {
			bad("%s.webhook.%w", at, err)
		}
	}
	return errors.Join(errs...)
}

func (w Webhook) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case w.URL == "" && w.URLFile == "":
		bad("url_file: is missing: write the path of a file that holds the URL, or url")
	case w.URL != "" && w.URLFile != "":
		bad("url_file: %q is given beside url: write one of them", w.URLFile)
	case w.URL != "":
		u, err := parseURL(w.URL, w.AllowPrivate)
		switch {
		case err != nil:
			bad("url: %w", err)
		case u.User != nil:
			bad("url: has credentials in it: put the whole URL into a file and name it as url_file")
		}
	}
	for i, f := range w.SecretFiles {
		if f == "" {
			bad("secret_files[%d]: must be the path of a file, got %q", i, f)
		}
	}
	if w.Timeout < 100*time.Millisecond || w.Timeout > time.Minute {
		bad("timeout: must be 100ms to 1m, got %s", w.Timeout)
	}
	if w.MaxAttempts < 1 {
		bad("max_attempts: must be at least 1, got %d", w.MaxAttempts)
	}
	if w.MaxAge < w.Timeout || w.MaxAge > 7*24*time.Hour {
		bad("max_age: must be timeout (%s) to 168h, got %s", w.Timeout, w.MaxAge)
	}
	return errs
}

// parseURL never quotes the URL: its path is often the receiver's password.
func parseURL(secret locksteward.Secret, allowPrivate bool) (*url.URL, error) {
	u, err := url.Parse(secret.Reveal())
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return nil, errors.New("is not a URL: write https://host/path")
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && allowPrivate:
	case u.Scheme == "http":
		return nil, fmt.Errorf("%s must be https: http is for receivers in your own network, which need allow_private: true", shown(u))
	default:
		return nil, fmt.Errorf("%s must begin with https://", shown(u))
	}
	return u, nil
}

// shown is all of a URL that may be seen.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host }
