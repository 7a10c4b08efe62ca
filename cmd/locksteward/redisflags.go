package main

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/connect"
)

// redisPasswordEnv is the environment's way to give a password.
const redisPasswordEnv = "LOCKSTEWARD_REDIS_PASSWORD"

// redisFlags say which server a command without an agent talks to.
type redisFlags struct {
	url          string
	username     string
	passwordFile string
	ca           string
	cert         string
	key          string
	addrMap      map[string]string
}

func (f *redisFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.url, "redis", "", "server: redis:// rediss:// unix:// redis+cluster://a,b redis+sentinel://a,b/master")
	flags.StringVar(&f.username, "redis-username", "", "ACL user")
	flags.StringVar(&f.passwordFile, "redis-password-file", "", "file with the password (or set "+redisPasswordEnv+")")
	flags.StringVar(&f.ca, "redis-ca-file", "", "PEM file of the authority that signed the server's certificate")
	flags.StringVar(&f.cert, "redis-cert-file", "", "PEM file of the client's certificate")
	flags.StringVar(&f.key, "redis-key-file", "", "PEM file of the client's key")
	flags.StringToStringVar(&f.addrMap, "addr-map", nil, "announced=reachable address of a node behind a port-forward, host:port=host:port (may be repeated)")
}

// config checks the flags. A password in the URL is refused: the command line
// is readable by every process of the machine.
func (f *redisFlags) config() (connect.Config, error) {
	if f.url == "" {
		return connect.Config{}, usagef("--redis is missing, write --redis redis://127.0.0.1:6379/0")
	}
	spec, err := connect.Parse(f.url)
	if err != nil {
		return connect.Config{}, usagef("--redis: %w", err)
	}
	if spec.HasPassword {
		return connect.Config{}, usagef("--redis: the URL holds a password, which every process of this machine can read; "+
			"take it out and use --redis-password-file FILE or %s", redisPasswordEnv)
	}
	password := locksteward.Secret(os.Getenv(redisPasswordEnv))
	if f.passwordFile != "" {
		if password, err = config.ReadSecret(f.passwordFile); err != nil {
			return connect.Config{}, usagef("--redis-password-file: %w", err)
		}
	}
	return connect.Config{
		URL: f.url, Username: f.username, Password: password,
		CAFile: f.ca, CertFile: f.cert, KeyFile: f.key, AddrMap: f.addrMap,
	}, nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
