package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/scanner"
)

// Target is one element of `targets:`.
type Target struct {
	// Name is the label on everything of this target.
	Name string `yaml:"name"`
	// Redis is where it is: redis:// rediss:// unix:// redis+cluster://a,b,c
	// redis+sentinel://a,b/mymaster, with the database as path or ?db=.
	Redis        string `yaml:"redis"`
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
	CAFile       string `yaml:"ca_file"`
	CertFile     string `yaml:"cert_file"`
	KeyFile      string `yaml:"key_file"`
	// AddrMap maps host:port that nodes of a Cluster or Sentinel announce to
	// host:port that can be reached from here.
	AddrMap map[string]string `yaml:"addr_map"`
	// ReleaseCredentials are those of the user that may delete. Without them the
	// agent cannot; `{}` is "the same server, without a login".
	ReleaseCredentials *Credentials `yaml:"release_credentials"`

	Scan scanner.Config `yaml:",inline"`
}

// Credentials log in to Redis.
type Credentials struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file"`
}

// labelSafe is what a name may look like that becomes a metric label, a URL
// part and a file name.
var labelSafe = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (t Target) validate(path string) error {
	var errs []error
	if !labelSafe.MatchString(t.Name) {
		errs = append(errs, fmt.Errorf("%s.name: got %q, write 1 to 63 letters, digits, dots, dashes or underscores", path, t.Name))
	}
	if t.Redis == "" {
		errs = append(errs, fmt.Errorf("%s.redis: missing, write a URL such as redis://127.0.0.1:6379/0", path))
	} else if _, err := connect.Parse(t.Redis); err != nil {
		errs = append(errs, fmt.Errorf("%s.redis: %w", path, err))
	}
	errs = append(errs, prefixed(path, t.Scan.Validate()))
	if t.Redis != "" {
		// The URL was checked above with a better word for what is wrong with it.
		c := connect.Config{URL: "redis://127.0.0.1", AddrMap: t.AddrMap}
		errs = append(errs, prefixed(path, c.Validate()))
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		errs = append(errs, fmt.Errorf("%s.cert_file, %s.key_file: got one of the two, write both or none", path, path))
	}
	for _, f := range []struct{ key, file string }{
		{"password_file", t.PasswordFile},
		{"release_credentials.password_file", t.releaseCredentials().PasswordFile},
		{"ca_file", t.CAFile},
		{"cert_file", t.CertFile},
		{"key_file", t.KeyFile},
	} {
		if f.file == "" {
			continue
		}
		if _, err := os.Stat(f.file); err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: got %q: %w; write the path of a readable file", path, f.key, f.file, unwrapPath(err)))
		}
	}
	return errors.Join(errs...)
}

func (t Target) releaseCredentials() Credentials {
	if t.ReleaseCredentials == nil {
		return Credentials{}
	}
	return *t.ReleaseCredentials
}

// Connect returns what internal/connect needs to reach the target as the
// scanning user. It reads the password file, so that a rotated password is used
// after a reload.
func (t Target) Connect() (connect.Config, error) {
	return t.connect(t.Username, t.PasswordFile)
}

// ConnectRelease is the same for the releasing user; false means that this
// agent cannot delete on the target.
func (t Target) ConnectRelease() (connect.Config, bool, error) {
	if t.ReleaseCredentials == nil {
		return connect.Config{}, false, nil
	}
	c, err := t.connect(t.ReleaseCredentials.Username, t.ReleaseCredentials.PasswordFile)
	return c, err == nil, err
}

func (t Target) connect(username, passwordFile string) (connect.Config, error) {
	password, err := ReadSecret(passwordFile)
	if err != nil {
		return connect.Config{}, fmt.Errorf("target %q: %w", t.Name, err)
	}
	return connect.Config{
		URL:      t.Redis,
		Username: username,
		Password: password,
		CAFile:   t.CAFile,
		CertFile: t.CertFile,
		KeyFile:  t.KeyFile,
		AddrMap:  t.AddrMap,
	}, nil
}

// ReadSecret returns the first line of a file; "" for no file. Neither the
// error nor anything else shows the secret.
func ReadSecret(file string) (locksteward.Secret, error) {
	if file == "" {
		return "", nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return locksteward.Secret(strings.TrimRight(line, "\r")), nil
}

// prefixed puts path in front of each of the joined problems in err.
func prefixed(path string, err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for _, e := range flatten(err) {
		errs = append(errs, fmt.Errorf("%s.%w", path, e))
	}
	return errors.Join(errs...)
}

// flatten lists the problems inside joined errors.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}

// unwrapPath drops the operation and path that os errors repeat.
func unwrapPath(err error) error {
	if inner, ok := errors.AsType[*os.PathError](err); ok {
		return inner.Err
	}
	return err
}
