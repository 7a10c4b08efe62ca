package main

import (
	"cmp"
	"maps"
	"os"
	"slices"

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
	flags.StringVar(&f.ca, "redis-ca-file", "", "PEM file of the CA that signed the server's certificate")
	flags.StringVar(&f.cert, "redis-cert-file", "", "PEM file of the client's certificate")
	flags.StringVar(&f.key, "redis-key-file", "", "PEM file of the client's key")
	flags.StringVar(&f.serverName, "redis-tls-server-name", "", "host name in the server's certificate (default: the host of the URL)")
	flags.StringToStringVar(&f.addrMap, "addr-map", nil, "announced=reachable address of a node behind a port-forward, host:port=host:port (may be repeated)")
}

// where is the URL of the server: the flag's, else the environment's; "" for neither.
func (f *redisFlags) where() string { return cmp.Or(f.url, os.Getenv(redisEnv)) }

// agentOnly are the flags of a command that asks a server or an agent which count
// for the agent alone.
var agentOnly = []string{"target", "since", "agent", "token-file", "ca-file", "cert-file", "key-file"}

// direct says whether cmd, which can ask an agent too, asks a server itself: --redis
// says so, or its variable where nothing names an agent, which knows more. Flags that
// would do nothing are refused: agentOnly with a server, and those of direct without.
func (f *redisFlags) direct(cmd *cobra.Command, direct ...string) (bool, error) {
	changed := cmd.Flags().Changed
	named := os.Getenv(agentEnv) != "" || slices.ContainsFunc(agentOnly, changed)
	if f.url == "" && (f.where() == "" || named) {
		for _, name := range direct {
			if changed(name) {
				return false, usagef("--%s: %s only uses it without an agent, add --redis URL", name, cmd.Name())
			}
		}
		return false, nil
	}
	for _, name := range agentOnly {
		if changed(name) {
			return false, usagef("--%s: %s only uses it with an agent, remove it or --redis", name, cmd.Name())
		}
	}
	return true, nil
}

// words are the flags with which another command asks the server of conn, which is
// the config of f. A password is not among them: it stays in the environment, and so
// does a URL that has one.
func (f *redisFlags) words(conn connect.Config) []string {
	var out []string
	spec, err := connect.Parse(f.where())
	if err != nil || !spec.HasPassword {
		out = append(out, "--redis", conn.URL)
	}
	for _, flag := range [][2]string{
		{"--redis-username", conn.Username},
		{"--redis-password-file", conn.PasswordFile},
		{"--redis-ca-file", conn.CAFile},
		{"--redis-cert-file", conn.CertFile},
		{"--redis-key-file", conn.KeyFile},
		{"--redis-tls-server-name", conn.ServerName},
	} {
		if flag[1] != "" {
			out = append(out, flag[0], flag[1])
		}
	}
	for _, from := range slices.Sorted(maps.Keys(conn.AddrMap)) {
		out = append(out, "--addr-map", from+"="+conn.AddrMap[from])
	}
	return out
}

// config returns how to reach the server. A password in the URL of the flag is
// refused: the command line is readable by every process of the machine. One in the
// URL of the environment is moved out of it, so that no URL that is printed or
// written has one.
func (f *redisFlags) config() (connect.Config, error) {
	where := f.where()
	if where == "" {
		return connect.Config{}, usagef("--redis is missing, write --redis redis://127.0.0.1:6379/0 or set %s", redisEnv)
	}
	spec, err := connect.Parse(where)
	if err != nil {
		return connect.Config{}, usagef("%s: %w", f.source(), err)
	}
	if spec.HasPassword && f.url != "" {
		return connect.Config{}, usagef("--redis: the URL contains a password, which every process on this machine can read; "+
			"remove it and use --redis-password-file FILE or %s", redisPasswordEnv)
	}
	c := connect.Config{
		URL: where, Username: f.or(f.username, "USERNAME"), Password: locksteward.Secret(os.Getenv(redisPasswordEnv)),
		PasswordFile: f.or(f.passwordFile, "PASSWORD_FILE"), CAFile: f.or(f.ca, "CA_FILE"), CertFile: f.or(f.cert, "CERT_FILE"),
		KeyFile: f.or(f.key, "KEY_FILE"), ServerName: f.or(f.serverName, "TLS_SERVER_NAME"), AddrMap: f.addrMap,
	}
	if f.passwordFile == "" && c.Password != "" {
		c.PasswordFile = "" // of two variables the password itself
	}
	if spec.HasPassword {
		c.URL, c.Username, c.Password = spec.String(), cmp.Or(c.Username, spec.Username), cmp.Or(c.Password, spec.Password)
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

// source names what the URL is from.
func (f *redisFlags) source() string {
	if f.url != "" {
		return "--redis"
	}
	return redisEnv
}

// or returns the value of a flag, else that of its variable.
func (f *redisFlags) or(flag, variable string) string {
	return cmp.Or(flag, os.Getenv(redisEnv+"_"+variable))
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
