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
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// serverPasswordEnv is the environment's way to give a password; of each flag there
// is one too.
const (
	serverPasswordEnv = "LOCKSTEWARD_SERVER_PASSWORD"
	serverEnv         = "LOCKSTEWARD_SERVER"
)

// serverFlags say which server a command without an agent talks to.
type serverFlags struct {
	url          string
	inFlag       bool // --server gives the URL, no argument
	username     string
	passwordFile string
	ca           string
	cert         string
	key          string
	serverName   string
	addrMap      map[string]string
}

// Forms of a server's URL, for help texts: of Redis, and of every store.
const (
	redisForms = "redis://, rediss://, unix:///path, redis+cluster://a,b or redis+sentinel://a,b/master"
	storeForms = redisForms + ",\npostgres://host/db, mysql://host/db, etcd://a,b (etcds://) or zookeeper://a,b (zookeeper+tls://)"
)

// register adds the URL of the server, in one of the forms, as the last argument of c, and the flags.
func (f *serverFlags) register(c *cobra.Command, forms string) {
	f.registerFlags(c)
	f.registerURL(c)
	c.Long += "\n\nURL is " + forms + "\n(or set " + serverEnv + ")."
}

// registerURL adds the URL of the server as an optional argument after those that c has.
func (f *serverFlags) registerURL(c *cobra.Command) {
	before := len(wanted(c))
	count := cobra.RangeArgs(before, before+1)
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := count(cmd, args); err != nil {
			return err
		}
		if len(args) > before {
			f.url = args[before]
		}
		return nil
	}
}

// registerFlags adds all but the URL.
func (f *serverFlags) registerFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.username, "server-username", "", "user to log in as")
	flags.StringVar(&f.passwordFile, "server-password-file", "", "file with the password (or set "+serverPasswordEnv+")")
	flags.StringVar(&f.ca, "server-ca-file", "", "PEM file of the CA that signed the server's certificate")
	flags.StringVar(&f.cert, "server-cert-file", "", "PEM file of the client's certificate")
	flags.StringVar(&f.key, "server-key-file", "", "PEM file of the client's key")
	flags.StringVar(&f.serverName, "server-tls-server-name", "", "host name in the server's certificate (default: the host of the URL)")
	flags.StringToStringVar(&f.addrMap, "addr-map", nil, "announced=reachable address of a node behind a port-forward, host:port=host:port (may be repeated)")
}

// where is the URL of the server: the argument, else the environment's; "" for neither.
func (f *serverFlags) where() string { return cmp.Or(f.url, os.Getenv(serverEnv)) }

// agentOnly are the flags of a command that asks a server or an agent which count
// for the agent alone.
var agentOnly = []string{"target", "since", "agent", "token-file", "ca-file", "cert-file", "key-file"}

// direct says whether cmd, which can ask an agent too, asks a server itself: a URL
// says so, or its variable where nothing names an agent, which knows more. Flags that
// would do nothing are refused: agentOnly with a server, and those of direct without.
func (f *serverFlags) direct(cmd *cobra.Command, direct ...string) (bool, error) {
	changed := cmd.Flags().Changed
	named := os.Getenv(agentEnv) != "" || slices.ContainsFunc(agentOnly, changed)
	if f.url == "" && (f.where() == "" || named) {
		for _, name := range direct {
			if changed(name) {
				return false, usagef("--%s: %s only uses it without an agent, add the URL of a server", name, cmd.Name())
			}
		}
		return false, nil
	}
	for _, name := range agentOnly {
		if changed(name) {
			return false, usagef("--%s: %s only uses it with an agent, remove it or the URL", name, cmd.Name())
		}
	}
	return true, nil
}

// words are the flags and the URL with which another command asks the server of conn,
// which is the config of f. A password is not among them: it stays in the environment,
// and so does a URL that has one: url is empty then.
func (f *serverFlags) words(conn connect.Config) (out []string, url string) {
	address, err := lockstore.Parse(f.where())
	if err != nil || !address.HasPassword {
		url = conn.URL
	}
	for _, flag := range [][2]string{
		{"--server-username", conn.Username},
		{"--server-password-file", conn.PasswordFile},
		{"--server-ca-file", conn.CAFile},
		{"--server-cert-file", conn.CertFile},
		{"--server-key-file", conn.KeyFile},
		{"--server-tls-server-name", conn.ServerName},
	} {
		if flag[1] != "" {
			out = append(out, flag[0], flag[1])
		}
	}
	for _, from := range slices.Sorted(maps.Keys(conn.AddrMap)) {
		out = append(out, "--addr-map", from+"="+conn.AddrMap[from])
	}
	return out, url
}

// config returns how to reach the server. A password in the URL of the argument is
// refused: the command line is readable by every process of the machine. One in the
// URL of the environment is moved out of it, so that no URL that is printed or
// written has one.
func (f *serverFlags) config() (connect.Config, error) {
	where := f.where()
	if where == "" {
		return connect.Config{}, usagef("%s is missing, write one such as redis://127.0.0.1:6379/0 or set %s", f.argument(), serverEnv)
	}
	address, err := lockstore.Parse(where)
	if err != nil {
		return connect.Config{}, usagef("%s: %w", f.source(), err)
	}
	if address.HasPassword && f.url != "" {
		return connect.Config{}, usagef("%s: contains a password, which every process on this machine can read; "+
			"remove it and use --server-password-file FILE or %s", f.argument(), serverPasswordEnv)
	}
	c := connect.Config{
		URL: where, Username: f.or(f.username, "USERNAME"), Password: locksteward.Secret(os.Getenv(serverPasswordEnv)),
		PasswordFile: f.or(f.passwordFile, "PASSWORD_FILE"), CAFile: f.or(f.ca, "CA_FILE"), CertFile: f.or(f.cert, "CERT_FILE"),
		KeyFile: f.or(f.key, "KEY_FILE"), ServerName: f.or(f.serverName, "TLS_SERVER_NAME"), AddrMap: f.addrMap,
	}
	if f.passwordFile == "" && c.Password != "" {
		c.PasswordFile = "" // of two variables the password itself
	}
	if address.HasPassword {
		c.URL, c.Username, c.Password = address.String(), cmp.Or(c.Username, address.Username), cmp.Or(c.Password, address.Password)
	}
	if c.PasswordFile != "" {
		if _, err := config.ReadSecret(c.PasswordFile); err != nil {
			return connect.Config{}, usagef("--server-password-file: %w", err)
		}
	}
	if !address.TLS {
		// Variables for another server must not be in the way of this one; flags are
		// meant.
		c.CAFile, c.CertFile, c.KeyFile, c.ServerName = f.ca, f.cert, f.key, f.serverName
	}
	return c, nil
}

// source names what the URL is from.
func (f *serverFlags) source() string {
	if f.url != "" {
		return f.argument()
	}
	return serverEnv
}

// argument is how the command line gives the URL.
func (f *serverFlags) argument() string {
	if f.inFlag {
		return "--server"
	}
	return "URL"
}

// or returns the value of a flag, else that of its variable.
func (f *serverFlags) or(flag, variable string) string {
	return cmp.Or(flag, os.Getenv(serverEnv+"_"+variable))
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
