package audit

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/locksteward/locksteward/alert"
)

// Config is `audit:` in the configuration.
type Config struct {
	// CheckpointEvery and CheckpointEntries are when the head of the chain is signed:
	// after a time in which entries came, or after so many of them.
	CheckpointEvery   time.Duration `yaml:"checkpoint_every"`
	CheckpointEntries int           `yaml:"checkpoint_entries"`
	// AnchorFile is a file to which every checkpoint is appended; empty: none.
	AnchorFile string `yaml:"anchor_file"`
	// Sinks get every entry as it is written.
	Sinks []SinkConfig `yaml:"sinks"`
}

// SinkConfig is one receiver of the live trail: one of Stdout, File, Syslog and
// Webhook.
type SinkConfig struct {
	// Name is under what its place is kept: another name begins at the first entry.
	Name string `yaml:"name"`
	// Stdout writes to the agent's standard output.
	Stdout bool `yaml:"stdout"`
	// File is appended to, and opened again at SIGHUP.
	File string `yaml:"file"`
	// Syslog is unix:///dev/log, udp://HOST:514, tcp://HOST:601 or tls://HOST:6514.
	Syslog string `yaml:"syslog"`
	// Webhook is an endpoint that keeps what it answers with 2xx. MaxAttempts and
	// MaxAge do not count: an entry is not given up.
	Webhook *alert.Endpoint `yaml:"webhook"`
}

// DefaultConfig returns the configuration of an agent without settings.
func DefaultConfig() Config { return Config{CheckpointEvery: time.Hour, CheckpointEntries: 1000} }

const (
	shortestCheckpoint = time.Minute
	longestCheckpoint  = 7 * 24 * time.Hour
	mostEntries        = 1_000_000
)

// Validate reports all that is wrong with c, each with its key.
func (c Config) Validate() error {
	var errs []error
	if c.CheckpointEvery < shortestCheckpoint || c.CheckpointEvery > longestCheckpoint {
		errs = append(errs, fmt.Errorf("checkpoint_every: got %s, write %s to %s", c.CheckpointEvery, shortestCheckpoint, longestCheckpoint))
	}
	if c.CheckpointEntries < 1 || c.CheckpointEntries > mostEntries {
		errs = append(errs, fmt.Errorf("checkpoint_entries: got %d, write 1 to %d", c.CheckpointEntries, mostEntries))
	}
	names, files := map[string]int{}, map[string]string{}
	if c.AnchorFile != "" {
		files[c.AnchorFile] = "anchor_file"
	}
	stdout := false
	for i, s := range c.Sinks {
		at := fmt.Sprintf("sinks[%d]", i)
		switch first, twice := names[s.Name]; {
		case s.Name == "":
			errs = append(errs, errors.New(at+".name: empty, write a name: how far the sink is stands under it"))
		case s.Name == anchorName:
			errs = append(errs, fmt.Errorf("%s.name: got %q, which is the name of anchor_file, write another", at, s.Name))
		case twice:
			errs = append(errs, fmt.Errorf("%s.name: got %q, which sinks[%d] has already, write another", at, s.Name, first))
		default:
			names[s.Name] = i
		}
		errs = append(errs, s.validate(at))
		if other, twice := files[s.File]; twice && s.File != "" {
			errs = append(errs, fmt.Errorf("%s.file: got %q, which %s has already, write another", at, s.File, other))
		}
		files[s.File] = at + ".file"
		if s.Stdout && stdout {
			errs = append(errs, errors.New(at+".stdout: another sink writes there already, keep one"))
		}
		stdout = stdout || s.Stdout
	}
	return errors.Join(errs...)
}

func (c SinkConfig) validate(at string) error {
	kinds := 0
	for _, set := range []bool{c.Stdout, c.File != "", c.Syslog != "", c.Webhook != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("%s: got %d receivers, write one of stdout: true, file: PATH, syslog: URL and webhook: {url_file: PATH}", at, kinds)
	}
	if c.Webhook != nil {
		var errs []error
		for _, err := range split(c.Webhook.Validate()) {
			errs = append(errs, fmt.Errorf("%s.webhook.%w", at, err))
		}
		return errors.Join(errs...)
	}
	if c.Syslog != "" {
		if _, err := parseSyslog(c.Syslog); err != nil {
			return fmt.Errorf("%s.syslog: %w", at, err)
		}
	}
	return nil
}

// split takes joined errors apart.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of this very error
		return joined.Unwrap()
	}
	return nil
}

// syslogAddress is where a syslog server listens.
type syslogAddress struct{ network, address, host string }

func parseSyslog(text string) (syslogAddress, error) {
	u, err := url.Parse(text)
	wrong := fmt.Errorf("got %q, write unix:///dev/log, udp://HOST:514, tcp://HOST:601 or tls://HOST:6514", text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return syslogAddress{}, wrong
	}
	switch u.Scheme {
	case "unix":
		if u.Host != "" || u.Path == "" {
			return syslogAddress{}, wrong
		}
		return syslogAddress{network: "unix", address: u.Path}, nil
	case "udp", "tcp", "tls":
		host, port, err := net.SplitHostPort(u.Host)
		if err != nil || host == "" || port == "" || u.Path != "" {
			return syslogAddress{}, wrong
		}
		return syslogAddress{network: u.Scheme, address: u.Host, host: host}, nil
	default:
		return syslogAddress{}, wrong
	}
}
