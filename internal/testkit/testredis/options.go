package testredis

import (
	"slices"
	"strings"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// Option says what a server is like.
type Option func(*options)

type options struct {
	config  []string
	tls     bool
	acl     []string
	socket  bool
	cluster bool
	env     []string
}

// WithConfig adds lines of redis.conf. They come last, so they win.
func WithConfig(lines ...string) Option {
	return func(o *options) { o.config = append(o.config, lines...) }
}

// WithTLS makes the port speak TLS only, with a certificate for 127.0.0.1 and
// localhost from a CA of this test run. Client certificates are optional.
func WithTLS() Option { return func(o *options) { o.tls = true } }

// WithACL adds ACL users, each as in redis.conf with or without the leading
// word "user": "scanner on >secret ~* +@read". A line for "default" changes
// the default user; of two lines for one user the last one counts.
// [Server.Client] then logs in as a user of its own that may do everything,
// [AdminUser].
func WithACL(userlines ...string) Option {
	return func(o *options) {
		for _, line := range userlines {
			words := strings.Fields(strings.TrimPrefix(line, "user "))
			if len(words) == 0 {
				continue
			}
			// Redis takes one line per user.
			o.acl = slices.DeleteFunc(o.acl, func(old string) bool {
				return strings.Fields(old)[1] == words[0]
			})
			o.acl = append(o.acl, "user "+strings.Join(words, " "))
		}
	}
}

// WithSocket makes the server listen on a unix socket in place of a port.
func WithSocket() Option { return func(o *options) { o.socket = true } }

func withEnv(vars ...string) Option {
	return func(o *options) { o.env = append(o.env, vars...) }
}

func withClusterNode() Option { return func(o *options) { o.cluster = true } }

func collect(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// AdminUser is the user with all permissions on servers started [WithACL].
const AdminUser = "testredis"

// adminPassword guards nothing: the servers listen on the loopback only.
const adminPassword = "testredis-admin"

// login returns what Client and the readiness check log in with.
func (o *options) login() (user, password string) {
	if len(o.acl) > 0 {
		return AdminUser, adminPassword
	}
	for _, line := range o.config {
		if f := strings.Fields(line); len(f) == 2 && strings.EqualFold(f[0], "requirepass") {
			password = strings.Trim(f[1], `"`)
		}
	}
	return "", password
}

// since7 are the commands in users of tests that came with Redis 6.2 and 7.0.
// Older servers take no line with a command that they do not know.
var since7 = []string{
	"acl|dryrun", "client|no-evict", "client|trackinginfo", "cluster|shards", "copy", "expiretime", "getdel", "getex",
	"pexpiretime", "spublish", "ssubscribe", "sunsubscribe",
}

// userLine writes a user for a server before Redis 7.0, which knows no patterns
// for reading alone, takes back no subcommand that was granted before, and has
// fewer commands; before 6.2 it knows no channels either: everybody hears them all.
func userLine(line string) string {
	path, err := program()
	if err != nil {
		return line
	}
	v, err := redisproc.VersionOf(path)
	if err != nil {
		return line
	}
	return userLineFor(v, line)
}

func userLineFor(v redisproc.Version, line string) string {
	if v.AtLeast(7, 0) {
		return line
	}
	var words []string
	for word := range strings.FieldsSeq(line) {
		name := strings.TrimLeft(word, "+-")
		switch {
		case name != word && slices.Contains(since7, name):
			continue
		case word[0] == '-' && strings.Contains(word, "|"):
			if i := slices.Index(words, "+"+name); i >= 0 {
				words = slices.Delete(words, i, i+1)
				continue
			}
		case word == "resetchannels" || word == "allchannels" || word[0] == '&':
			if !v.AtLeast(6, 2) {
				continue
			}
		}
		words = append(words, strings.Replace(word, "%R~", "~", 1))
	}
	return strings.Join(words, " ")
}

// lines returns the redis.conf of the options.
func (o *options) lines() []string {
	lines := []string{"enable-debug-command yes"}
	if len(o.acl) > 0 {
		lines = append(lines, userLine("user "+AdminUser+" on >"+adminPassword+" ~* &* +@all"))
		for _, line := range o.acl {
			lines = append(lines, userLine(line))
		}
	}
	return append(lines, o.config...)
}
