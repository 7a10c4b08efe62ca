package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
)

// credentials are the opened files of a [Config].
type credentials struct {
	tls      *credfile.Set
	min      uint16
	password *credfile.Secret // nil: no file
	sentinel *credfile.Secret // nil: no file
}

// Opened returns c with its files read. What is opened with it from then on uses
// one state of them: a file that cannot be used any more leaves the last good
// one in use, also for connections that are opened later.
func (c Config) Opened() (Config, error) {
	opened, err := c.open()
	if err != nil {
		return c, err
	}
	c.opened = opened
	return c, nil
}

// open reads the files, unless they are open, and reports all problems at once.
func (c Config) open() (*credentials, error) {
	if c.opened != nil {
		return c.opened, nil
	}
	var errs []error
	out := &credentials{}
	var err error
	if out.tls, err = credfile.Open(credfile.Files{CA: c.CAFile, Cert: c.CertFile, Key: c.KeyFile}, credfile.Keys{CA: "ca_file", Cert: "cert_file", Key: "key_file"}); err != nil {
		errs = append(errs, err)
	}
	if out.min, err = credfile.ParseVersion(c.MinVersion); err != nil {
		errs = append(errs, fmt.Errorf("tls_min_version: %w", err))
	}
	for _, f := range []struct {
		key, path string
		to        **credfile.Secret
	}{
		{"password_file", c.PasswordFile, &out.password},
		{"sentinel_password_file", c.SentinelPasswordFile, &out.sentinel},
	} {
		if f.path == "" {
			continue
		}
		if *f.to, err = credfile.OpenSecret(f.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w; write the path of a readable file", f.key, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// Secret returns the password that counts now, of a store that is not Redis: that of the file,
// else Password. c was [Config.Opened].
func (c Config) Secret() locksteward.Secret {
	if c.opened.password != nil {
		return c.opened.password.Secret()
	}
	return c.Password
}

// TLS returns how to encrypt connections to a store that is not Redis, whose certificate must
// be for serverName; "" leaves the name to the store's library. c was [Config.Opened].
func (c Config) TLS(serverName string) *tls.Config {
	return c.opened.tls.Client(serverName, c.opened.min)
}

// Files looks at the files, at once if force is set, and says how each stands,
// under its key in the configuration. It is empty unless c was [Config.Opened].
func (c Config) Files(force bool) []credfile.File {
	if c.opened == nil {
		return nil
	}
	return c.opened.files(force)
}

func (c *credentials) files(force bool) []credfile.File {
	out := c.tls.States(force)
	if c.password != nil {
		out = append(out, credfile.File{Key: "password_file", State: c.password.State(force)})
	}
	if c.sentinel != nil {
		out = append(out, credfile.File{Key: "sentinel_password_file", State: c.sentinel.State(force)})
	}
	return out
}

// generation grows with each file that is taken into use.
func (c *credentials) generation() uint64 {
	var sum uint64
	for _, f := range c.files(false) {
		sum += f.Generation
	}
	return sum
}

// Files looks at the files of the target and says how each stands, under its key
// in the configuration. Who waits on [Conn.Renewed] is woken if one was taken into
// use.
func (c *Conn) Files() []credfile.File {
	out := c.creds.files(true)
	var sum uint64
	for _, f := range out {
		sum += f.Generation
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sum != c.used {
		c.used = sum
		close(c.renewed)
		c.renewed = make(chan struct{})
	}
	return out
}

// Renewed returns a channel that is closed when [Conn.Files] finds another
// password, certificate or authority in use: what was refused before is worth a
// try.
func (c *Conn) Renewed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}

// anyPassword replaces the password of a user that has none.
const anyPassword locksteward.Secret = "none"

// login is what a new connection logs in with.
func (c *Conn) login(context.Context) (username, password string, err error) {
	secret := c.cfg.Password
	if c.creds.password != nil {
		secret = c.creds.password.Secret()
	}
	return c.cfg.Username, passwordOf(c.cfg.Username, secret).Reveal(), nil
}

func (c *Conn) sentinelPassword() locksteward.Secret {
	if c.creds.sentinel != nil {
		return c.creds.sentinel.Secret()
	}
	return c.cfg.SentinelPassword
}

// renewFailover replaces the client that asks the Sentinels when their password
// is another one: it takes it but once. The caller holds c.mu.
func (c *Conn) renewFailover() {
	if c.creds.sentinel == nil || c.spec.Mode != locksteward.ModeSentinel || c.closed {
		return
	}
	now := c.creds.sentinel.State(false).Generation
	if c.sentinel == 0 {
		c.sentinel = now
	}
	if c.sentinel == now {
		return
	}
	c.sentinel = now
	// Requests under way finish with the old one.
	if c.retired = append(c.retired, c.universal); len(c.retired) > 1 {
		_ = c.retired[0].Close() // nobody uses it any more
		c.retired = c.retired[1:]
	}
	c.universal = c.newFailover()
}

// passwordOf makes a user without a password log in: go-redis sends no AUTH
// without a password, and the connection would silently be the default user's,
// with other rights. A user with nopass takes any password, every other user
// refuses this one aloud.
func passwordOf(username string, password locksteward.Secret) locksteward.Secret {
	if username != "" && password == "" {
		return anyPassword
	}
	return password
}
