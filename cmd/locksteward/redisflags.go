package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/connect"
)

// redisPasswordEnv is the environment's way to give a password; of each flag there
// is one too.
const (
	redisPasswordEnv = "LOCKSTEWARD_REDIS_PASSWORD"
	redisEnv         = "LOCKSTEWARD_REDIS"
)

// redisFlags say which server a command without an agent talks to.
type redisFlags struct {
	url          string
	username     string
	passwordFile string
	ca           string
	cert         string
	key          string
	serverName   string
	addrMap      map[string]string
}

func (f *redisFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.url, "redis", "", "server: redis:// rediss:// unix:// redis+cluster://a,b redis+sentinel://a,b/master (or set "+redisEnv+")")
	flags.StringVar(&f.username, "redis-username", "", "ACL user")
	flags.StringVar(&f.passwordFile, "redis-password-file", "", "file with the password (or set "+redisPasswordEnv+")")
	flags.StringVar(&f.ca, "redis-ca-file", "", "PEM file of the authority that signed the server's certificate")
	flags.StringVar(&f.cert, "redis-cert-file", "", "PEM file of the client's certificate")
	flags.StringVar(&f.key, "redis-key-file", "", "PEM file of the client's key")
	flags.StringVar(&f.serverName, "redis-tls-server-name", "", "what the server's certificate must be for (default: the host of the URL)")
	flags.StringToStringVar(&f.addrMap, "addr-map", nil, "announced=reachable address of a node behind a port-forward, host:port=host:port (may be repeated)")
}

// config checks the flags. A password in the URL is refused: the command line
// is readable by every process of the machine.
func (f *redisFlags) config() (connect.Config, error) {
	where := cmp.Or(f.url, os.Getenv(redisEnv))
	if where == "" {
		return connect.Config{}, usagef("--redis is missing, write --redis redis://127.0.0.1:6379/0")
	}
	spec, err := connect.Parse(where)
	if err != nil {
		return connect.Config{}, usagef("--redis: %w", err)
	}
	if spec.HasPassword && f.url != "" {
		return connect.Config{}, usagef("--redis: the URL holds a password, which every process of this machine can read; "+
			"take it out and use --redis-password-file FILE or %s", redisPasswordEnv)
	}
	c := connect.Config{
		URL: where, Username: f.or(f.username, "USERNAME"), Password: locksteward.Secret(os.Getenv(redisPasswordEnv)),
		PasswordFile: f.or(f.passwordFile, "PASSWORD_FILE"), CAFile: f.or(f.ca, "CA_FILE"), CertFile: f.or(f.cert, "CERT_FILE"),
		KeyFile: f.or(f.key, "KEY_FILE"), ServerName: f.or(f.serverName, "TLS_SERVER_NAME"), AddrMap: f.addrMap,
	}
	if f.passwordFile == "" && c.Password != "" {
		c.PasswordFile = "" // of two variables the password itself
	}
	if c.PasswordFile != "" {
		if _, err := config.ReadSecret(c.PasswordFile); err != nil {
			return connect.Config{}, usagef("--redis-password-file: %w", err)
		}
	}
	if !spec.TLS {
		// Variables for another server must not be in the way of this one; flags are
		// meant.
		c.CAFile, c.CertFile, c.KeyFile, c.ServerName = f.ca, f.cert, f.key, f.serverName
	}
	return c, nil
}

// or returns the value of a flag, else that of its variable.
func (f *redisFlags) or(flag, variable string) string {
	return cmp.Or(flag, os.Getenv(redisEnv+"_"+variable))
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
