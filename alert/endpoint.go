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

// Endpoint is where notifications are sent, what signs them, and how long they are tried. It
// is the webhook of a heartbeat and of an audit sink, and its keys are among those of a
// receiver.
type Endpoint struct {
	// URL is a secret: many services put their token into it. One of URL and URLFile is
	// required. For all kinds but email.
	URL     locksteward.Secret `yaml:"url" kinds:"webhook alertmanager pagerduty slack dingtalk feishu wecom"`
	URLFile string             `yaml:"url_file" kinds:"webhook alertmanager pagerduty slack dingtalk feishu wecom"`
	// SecretFiles hold one signing secret each: for webhook whsec_ and base64, and several
	// sign with each, for rotation; for dingtalk and feishu the one that the robot shows.
	// None: notifications are not signed. For no other kind.
	SecretFiles []string `yaml:"secret_files" kinds:"webhook dingtalk feishu"`
	// Secrets are in place of SecretFiles the secrets themselves, from the environment.
	Secrets []locksteward.Secret `yaml:"secrets" from:"env" kinds:"webhook dingtalk feishu"`
	// CAFile adds certificate authorities (PEM) to those of the system. For all kinds.
	CAFile string `yaml:"ca_file"`
	// AllowPrivate permits addresses inside the own network, and plain http. For all kinds.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout bounds one attempt. For all kinds.
	Timeout time.Duration `yaml:"timeout"`
	// MaxAttempts and MaxAge bound all attempts of one notification. For all kinds.
	MaxAttempts int           `yaml:"max_attempts"`
	MaxAge      time.Duration `yaml:"max_age"`
}

func (e Endpoint) withDefaults() Endpoint {
	e.Timeout = cmp.Or(e.Timeout, DefaultTimeout)
	e.MaxAttempts = cmp.Or(e.MaxAttempts, DefaultMaxAttempts)
	e.MaxAge = cmp.Or(e.MaxAge, DefaultMaxAge)
	return e
}

// urlProblems reports what is wrong with the URL.
func (e Endpoint) urlProblems() []error {
	switch {
	case e.URL == "" && e.URLFile == "":
		return []error{errors.New("url_file: is missing: write the path of a file that holds the URL, or url")}
	case e.URL != "" && e.URLFile != "":
		return []error{fmt.Errorf("url_file: %q is given beside url: write one of them", e.URLFile)}
	case e.URL != "":
		if err := urlProblem(e.URL, e.AllowPrivate); err != nil {
			return []error{fmt.Errorf("url: %w", err)}
		}
	}
	return nil
}

// limitProblems reports what is wrong with the bounds of attempts. It expects the defaults
// to be filled in.
func (e Endpoint) limitProblems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	least := e.Timeout
	if e.Timeout < minTimeout || e.Timeout > time.Minute {
		bad("timeout: must be 100ms to 1m, got %s", e.Timeout)
		least = 0 // whether max_age is too short is not known
	}
	if e.MaxAttempts < 1 {
		bad("max_attempts: must be at least 1, got %d", e.MaxAttempts)
	}
	switch {
	case e.MaxAge > 7*24*time.Hour || e.MaxAge < 0:
		bad("max_age: must be at most 168h, and at least timeout, got %s", e.MaxAge)
	case e.MaxAge < least:
		bad("max_age: must be timeout (%s) to 168h, got %s", e.Timeout, e.MaxAge)
	}
	return errs
}

// secretProblems reports what is wrong with the places of the signing secrets.
func (e Endpoint) secretProblems() []error {
	var errs []error
	for i, f := range e.SecretFiles {
		if f == "" {
			errs = append(errs, fmt.Errorf("secret_files[%d]: must be the path of a file, got %q", i, f))
		}
	}
	if len(e.Secrets) > 0 && len(e.SecretFiles) > 0 {
		errs = append(errs, fmt.Errorf("secret_files: %q are given beside secrets (%d of %s): write one of them", e.SecretFiles, len(e.Secrets), locksteward.SecretMask))
	}
	return errs
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
