package alert

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/locksteward/locksteward"
)

// minTimeout is the least that an attempt may take.
const minTimeout = 100 * time.Millisecond

// Patience bounds the attempts to deliver one notification.
type Patience struct {
	// Timeout bounds one attempt.
	Timeout time.Duration `yaml:"timeout"`
	// MaxAttempts and MaxAge bound all attempts of one notification.
	MaxAttempts int           `yaml:"max_attempts"`
	MaxAge      time.Duration `yaml:"max_age"`
}

func (p Patience) withDefaults() Patience {
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	p.MaxAttempts = cmp.Or(p.MaxAttempts, DefaultMaxAttempts)
	p.MaxAge = cmp.Or(p.MaxAge, DefaultMaxAge)
	return p
}

// problems expects the defaults to be filled in.
func (p Patience) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	least := p.Timeout
	if p.Timeout < minTimeout || p.Timeout > time.Minute {
		bad("timeout: must be 100ms to 1m, got %s", p.Timeout)
		least = 0 // whether max_age is too short is not known
	}
	if p.MaxAttempts < 1 {
		bad("max_attempts: must be at least 1, got %d", p.MaxAttempts)
	}
	switch {
	case p.MaxAge > 7*24*time.Hour || p.MaxAge < 0:
		bad("max_age: must be at most 168h, and at least timeout, got %s", p.MaxAge)
	case p.MaxAge < least:
		bad("max_age: must be timeout (%s) to 168h, got %s", p.Timeout, p.MaxAge)
	}
	return errs
}

// Network is how a receiver is reached.
type Network struct {
	// CAFile adds certificate authorities (PEM) to those of the system.
	CAFile string `yaml:"ca_file"`
	// AllowPrivate permits addresses inside the own network, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
}

// Endpoint is one URL that notifications are posted to.
type Endpoint struct {
	// URL is a secret: many services put their token into it. One of URL and
	// URLFile is required.
	URL      locksteward.Secret `yaml:"url"`
	URLFile  string             `yaml:"url_file"`
	Network  `yaml:",inline"`
	Patience `yaml:",inline"`
}

func (e Endpoint) withDefaults() Endpoint {
	e.Patience = e.Patience.withDefaults()
	return e
}

// problems expects the defaults to be filled in.
func (e Endpoint) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case e.URL == "" && e.URLFile == "":
		bad("url_file: is missing: write the path of a file that holds the URL, or url")
	case e.URL != "" && e.URLFile != "":
		bad("url_file: %q is given beside url: write one of them", e.URLFile)
	case e.URL != "":
		if err := urlProblem(e.URL, e.AllowPrivate); err != nil {
			bad("url: %w", err)
		}
	}
	return append(errs, e.Patience.problems()...)
}

// errLogin is what is wrong with a URL that has a user in it.
var errLogin = errors.New("has credentials in it")

// urlProblem is what is wrong with a URL in the configuration.
func urlProblem(secret locksteward.Secret, allowPrivate bool) error {
	u, err := parseURL(secret, allowPrivate)
	switch {
	case err != nil:
		return err
	case u.User != nil:
		return fmt.Errorf("%w: put the whole URL into a file and name it as url_file", errLogin)
	default:
		return nil
	}
}

// read returns the URL, from its file if it is in one. The error begins with the
// key.
func (e Endpoint) read(fs *files) (*url.URL, error) {
	if e.URLFile != "" {
		u, err := fs.url("url_file", e.URLFile, e.AllowPrivate)
		if err != nil {
			return nil, fmt.Errorf("url_file: %w", err)
		}
		return u, nil
	}
	u, err := parseURL(e.URL, e.AllowPrivate)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return u, nil
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
		return nil, fmt.Errorf("%s must be https: http is for receivers in your own network, which need allow_private: true", schemeAndHost(u))
	default:
		return nil, fmt.Errorf("%s must begin with https://", schemeAndHost(u))
	}
	return u, nil
}

// schemeAndHost is the part of a URL that may be shown.
func schemeAndHost(u *url.URL) string { return u.Scheme + "://" + u.Host }
